"""Replaces what cannot be equal on two brokers by words: ids by the order in which a script meets them, ports, times,
the text of error messages. Equal answers are then equal dicts."""

import re
import struct
import time
import uuid

from harness import wire

_MEMBER = re.compile(r"^(.*)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.DOTALL)
_NO_ID = uuid.UUID(int=0)
# An id that no topic has.
STRANGE_ID = uuid.UUID(int=0x1234 << 64)
# Lists whose order means nothing: Kafka takes them out of a hash table. By the field that tells their items apart.
_UNORDERED = {
    ("Metadata", "Brokers"): "NodeId", ("Metadata", "Topics"): ("Name", "TopicId"),
    ("ApiVersions", "ApiKeys"): "ApiKey", ("CreateTopics", "Topics"): "Name", ("CreateTopics", "Configs"): "Name",
    ("Produce", "Responses"): ("Name", "TopicId"), ("Produce", "PartitionResponses"): "Index",
    ("Fetch", "Responses"): ("Topic", "TopicId"), ("Fetch", "Partitions"): "PartitionIndex",
    ("ListOffsets", "Topics"): "Name", ("ListOffsets", "Partitions"): "PartitionIndex",
    ("DeleteTopics", "Responses"): ("Name", "TopicId"), ("DescribeConfigs", "Configs"): "Name",
    ("DescribeConfigs", "Results"): ("ResourceType", "ResourceName"),
    ("JoinGroup", "Members"): "MemberId", ("DescribeGroups", "Members"): "MemberId",
    ("ListGroups", "Groups"): "GroupId", ("CreatePartitions", "Results"): "Name",
    ("IncrementalAlterConfigs", "Responses"): ("ResourceType", "ResourceName"),
    ("AlterConfigs", "Responses"): ("ResourceType", "ResourceName"),
    ("OffsetFetch", "Topics"): ("Name", "TopicId"), ("OffsetFetch", "Partitions"): "PartitionIndex",
    ("OffsetCommit", "Topics"): ("Name", "TopicId"), ("OffsetCommit", "Partitions"): "PartitionIndex",
    ("OffsetDelete", "Topics"): "Name", ("OffsetDelete", "Partitions"): "PartitionIndex",
    ("DeleteGroups", "Results"): "GroupId", ("DeleteRecords", "Topics"): "Name",
    ("DeleteRecords", "Partitions"): "PartitionIndex", ("DescribeLogDirs", "Topics"): "Name",
    ("DescribeLogDirs", "Partitions"): "PartitionIndex",
}


def key_of(api, name):
    """The fields that tell the items of an unordered list apart; None for a list that has an order."""
    keys = _UNORDERED.get((api, name))
    return (keys,) if isinstance(keys, str) else keys


class Words:
    def __init__(self, cluster, port, epoch):
        self._known = {cluster: "the cluster", STRANGE_ID: "<strange id>"}
        self._port, self._epoch = port, epoch
        self._counts = {}
        self._began_ms = int(time.time() * 1000) - 60_000

    def add(self, value, word):
        if value != _NO_ID:
            self._known[value] = f"<{word}>"

    def of(self, api, reply):
        name = reply.get("Name") or reply.get("Topic") or reply.get("TopicName")
        if name and reply.get("TopicId") not in (None, *self._known):
            self.add(reply["TopicId"], f"id of {name}")
        return {name: self._value(api, name, value) for name, value in reply.items()}

    def _value(self, api, name, value):
        if isinstance(value, dict):
            return self.of(api, value)
        if isinstance(value, list):
            items = [self._value(api, name, item) for item in value]
            if (api, name) == ("Fetch", "Responses"):
                items = _merged(items)
            keys = key_of(api, name)
            if keys:
                items.sort(key=lambda item: tuple(str(item.get(key)) for key in keys))
            return items
        if isinstance(value, (str, uuid.UUID)):
            return self._text(name, value)
        if isinstance(value, bytes):
            return batches(value) if name == "Records" else value.hex()
        if isinstance(value, int) and not isinstance(value, bool):
            return self._number(name, value)
        return value

    def _text(self, name, value):
        if name.endswith("ErrorMessage") or name == "Documentation":
            return value and "<text>"
        if name == "LogDir":
            return "<folder>"
        if value in self._known:
            return self._known[value]
        if isinstance(value, uuid.UUID):
            return "<no id>" if value == _NO_ID else f"<id {value}>"
        match = _MEMBER.match(value)
        if match:
            return self._numbered(value, f"{match[1]} member")
        return value

    def _number(self, name, value):
        if name == "Port" and value == self._port:
            return "<port>"
        if name in ("TotalBytes", "UsableBytes") and value > 0:
            return "<bytes>"
        if name == "ProducerId" and value >= 0:
            return self._numbered(value, "producer")
        if name == "SessionId" and value > 0:
            return self._known.get(("session", value)) or self._known.setdefault(("session", value), "<old>") and "<new>"
        if name.endswith("LeaderEpoch") and value == self._epoch:
            return "<epoch>"
        if name.endswith(("Timestamp", "TimeMs", "TimestampMs")) and value > self._began_ms:
            return "<now>"
        return value

    def _numbered(self, value, kind):
        if value not in self._known:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[value] = f"<{kind} {self._counts[kind]}>"
        return self._known[value]


def _merged(rows):
    """Where a topic's partitions stand in two rows, they mean the same as in one."""
    merged = {}
    for row in rows:
        merged.setdefault((row.get("Topic"), row.get("TopicId")), {**row, "Partitions": []})["Partitions"] += row[
            "Partitions"]
    return [{**row, "Partitions": sorted(row["Partitions"], key=lambda one: one["PartitionIndex"])}
            for row in merged.values()]


def batches(data):
    """What a client can tell of record batches; the partition leader epoch in them is left to other fields."""
    found, at = [], 0
    while at + 61 <= len(data):
        base, size = struct.unpack_from(">qi", data, at)
        end = at + 12 + size
        if end > len(data):
            break
        _, magic, crc, attributes, last, first_ms, max_ms, producer, epoch, sequence, count = struct.unpack_from(
            ">ibIhiqqqhii", data, at + 12)
        found.append({"base": base, "magic": magic, "attributes": attributes, "last delta": last,
                      "times": [first_ms, max_ms] if not attributes & 8 else [first_ms, "<now>"],
                      "producer": [producer >= 0, epoch, sequence], "count": count, "bytes": size,
                      "crc is right": crc == wire.crc32c(data[at + 21:end])})
        at = end
    return {"batches": found, "bytes behind": len(data) - at}
