"""Produce, Fetch, ListOffsets."""

import struct
import uuid

from differential.scripts import script
from differential.words import STRANGE_ID
from harness import wire
from harness.wire import batch

NO_ID = uuid.UUID(int=0)
# A time that is long ago, so that no broker takes it for its own.
T0 = 1_600_000_000_000
ATTRIBUTES_AT, CRC_AT = 21, 17


def with_bytes(records, at, new):
    """The batch with other bytes at a place behind its checksum, and a right checksum."""
    changed = bytearray(records)
    changed[at:at + len(new)] = new
    struct.pack_into(">I", changed, CRC_AT, wire.crc32c(bytes(changed[ATTRIBUTES_AT:])))
    return bytes(changed)


def raw(records, at, new):
    """The same before the checksum."""
    changed = bytearray(records)
    changed[at:at + len(new)] = new
    return bytes(changed)


def epochs(side):
    return (("right", side.epoch), ("next", side.epoch + 1), ("far", side.epoch + 100),
            ("-2", -2), ("greatest", 2**31 - 1))


def produce(side, version, label, rows, acks=-1, **values):
    """Rows of (name, id, partition, records)."""
    topics = {}
    for name, topic_id, partition, records in rows:
        topics.setdefault((name, topic_id), []).append({"Index": partition, "Records": records})
    return {"Acks": acks, "TimeoutMs": 10_000, **values, "TopicData": [
        {"Name": name, "TopicId": topic_id, "PartitionData": parts} for (name, topic_id), parts in topics.items()]}


@script("Produce", "CreateTopics")
def producing(side):
    good = batch([b"value"], timestamp=T0)
    bad = {
        "no bytes": b"", "ten bytes": good[:10], "a header only": good[:61], "cut off": good[:-3],
        "bytes behind": good + b"abc", "two batches": good + good, "magic 0": wire.old_message(b"old", 0),
        "magic 1": wire.old_message(b"old", 1), "magic 3": raw(good, 16, b"\3"), "magic -1": raw(good, 16, b"\xff"),
        "garbage": b"\xff" * 100, "wrong checksum": raw(good, CRC_AT, b"\0\0\0\0"),
        "a flipped bit": raw(good, len(good) - 2, bytes([good[-2] ^ 4])),
        "length too small": raw(good, 8, struct.pack(">i", 3)), "length 0": raw(good, 8, b"\0\0\0\0"),
        "length negative": raw(good, 8, b"\xff\xff\xff\xff"), "length too large": raw(good, 8, struct.pack(">i", 5000)),
        "base offset 7": raw(good, 0, struct.pack(">q", 7)), "base offset -1": raw(good, 0, struct.pack(">q", -1)),
        "leader epoch 5": raw(good, 12, struct.pack(">i", 5)),
        "codec 5": with_bytes(good, ATTRIBUTES_AT, b"\0\5"), "codec 7": with_bytes(good, ATTRIBUTES_AT, b"\0\7"),
        "says gzip": with_bytes(good, ATTRIBUTES_AT, b"\0\1"), "says zstd": with_bytes(good, ATTRIBUTES_AT, b"\0\4"),
        "control batch": with_bytes(good, ATTRIBUTES_AT, b"\0\x20"),
        "transactional": with_bytes(good, ATTRIBUTES_AT, b"\0\x10"),
        "append time bit": with_bytes(good, ATTRIBUTES_AT, b"\0\x08"),
        "delete horizon bit": with_bytes(good, ATTRIBUTES_AT, b"\0\x40"),
        "unknown attributes": with_bytes(good, ATTRIBUTES_AT, b"\x80\0"),
        "last delta 5 of 1": with_bytes(good, 23, struct.pack(">i", 5)),
        "last delta -1": with_bytes(good, 23, struct.pack(">i", -1)),
        "count 0": with_bytes(good, 57, struct.pack(">i", 0)), "count 5": with_bytes(good, 57, struct.pack(">i", 5)),
        "count -1": with_bytes(good, 57, struct.pack(">i", -1)),
        "negative time": batch([b"v"], timestamp=-5), "no time": batch([b"v"], timestamp=-1),
        "time 0": batch([b"v"], timestamp=0), "a year ahead": batch([b"v"], timestamp=4_000_000_000_000),
        "max time below first": with_bytes(good, 35, struct.pack(">q", T0 - 1000)),
        "max time above": with_bytes(good, 35, struct.pack(">q", T0 + 1000)),
        "record longer than the batch": with_bytes(good, 61, b"\x7e"), "record shorter": with_bytes(good, 61, b"\2"),
        "record of negative size": with_bytes(good, 61, b"\1"), "good": good,
    }
    for version in side.versions("Produce"):
        name = f"produce-{version}"
        topic_id = side.topic(name, 2)

        def ask(label, rows, number=version, **values):
            return side.ask("Produce", number, produce(side, number, label, rows, **values), label)
        if version in (3, 7, 8, 9, 12, 13):
            for label, records in bad.items():
                ask(label, [(name, topic_id, 0, records)])
            for label in ("no bytes", "wrong checksum", "magic 1", "good", "magic 3"):
                ask(f"{label}, acks 1", [(name, topic_id, 0, bad[label])], acks=1)
        ask("good at last", [(name, topic_id, 0, good)])
        ask("no topic", [])
        ask("no partition", [])
        for acks in (2, -2, 32767, -32768):
            ask(f"acks {acks}", [(name, topic_id, 0, good)], acks=acks)
        for label, partition in (("unknown", 2), ("negative", -1), ("least", -2**31), ("greatest", 2**31 - 1)):
            ask(f"{label} partition", [(name, topic_id, partition, good)])
        ask("unknown topic", [("nobody", STRANGE_ID, 0, good)])
        ask("bad name", [("a b", STRANGE_ID, 0, good)])
        ask("empty name and no id", [("", NO_ID, 0, good)])
        ask("good and bad partitions", [(name, topic_id, 0, good), (name, topic_id, 9, good),
                                        (name, topic_id, 1, bad["wrong checksum"]), ("nobody", STRANGE_ID, 0, good)])
        ask("timeout 0", [(name, topic_id, 0, good)], TimeoutMs=0)
        ask("timeout -1", [(name, topic_id, 0, good)], TimeoutMs=-1)
        ask("transactional id", [(name, topic_id, 0, good)], TransactionalId="tx")
        ask("empty transactional id", [(name, topic_id, 0, good)], TransactionalId="")
        unanswered = produce(side, version, "", [(name, topic_id, 0, good)], acks=0)
        side.send_unanswered("Produce", version, unanswered, "acks 0")
        for label, records, partition in (("wrong checksum", bad["wrong checksum"], 0), ("no bytes", b"", 0),
                                          ("unknown partition", good, 7)):
            values = produce(side, version, "", [(name, topic_id, partition, records)], acks=0)
            side.send_unanswered("Produce", version, values, f"acks 0, {label}")
        ask("after all", [(name, topic_id, 0, good), (name, topic_id, 1, good)])
        name += "-twice"
        topic_id = side.topic(name)
        ask("partition twice", [(name, topic_id, 0, good), (name, topic_id, 0, good)])


@script("Produce", "InitProducerId")
def sequences(side):
    for version in (3, 9, 13):
        name = f"sequences-{version}"
        topic_id = side.topic(name)
        producer = side.quietly("InitProducerId", 4, {"TransactionalId": None})["ProducerId"]

        def ask(label, number=version, who=producer, count=1, **values):
            records = batch([b"v"] * count, producer_id=who, timestamp=T0, **{"producer_epoch": 0, **values})
            return side.ask("Produce", number, produce(side, number, label, [(name, topic_id, 0, records)]), label)
        ask("first", sequence=0, count=3)
        ask("first again", sequence=0, count=3)
        ask("second", sequence=3)
        ask("first once more", sequence=0, count=3)
        ask("part of the first", sequence=1, count=2)
        ask("overlap", sequence=3, count=2)
        ask("gap", sequence=9)
        ask("old", sequence=2)
        ask("negative", sequence=-1)
        ask("very negative", sequence=-5)
        ask("next epoch, sequence 5", sequence=5, producer_epoch=1)
        ask("next epoch", sequence=0, producer_epoch=1)
        ask("old epoch", sequence=4, producer_epoch=0)
        ask("epoch -1 after epoch 1", sequence=4, producer_epoch=-1)
        for sequence in range(1, 8):
            ask("run", sequence=sequence, producer_epoch=1)
        for sequence in range(1, 8):
            ask("run again", sequence=sequence, producer_epoch=1)
        ask("producer -7", who=-7, sequence=0)
        ask("producer -1 with a sequence", who=-1, sequence=3)


@script("Produce", "InitProducerId")
def producers_that_begin_in_the_middle(side):
    good = {"producer_epoch": 0, "timestamp": T0}
    for version in (3, 9, 13):  # varve waits a second for what may come before
        def ask(label, name, topic_id, number=version, **values):
            records = batch([b"v"] * values.pop("count", 1), **{**good, **values})
            return side.ask("Produce", number, produce(side, number, label, [(name, topic_id, 0, records)]), label)
        early = side.quietly("InitProducerId", 4, {"TransactionalId": None})["ProducerId"]
        name = f"middle-{version}"
        topic_id = side.topic(name)
        late = side.quietly("InitProducerId", 4, {"TransactionalId": None})["ProducerId"]
        ask("id older than the topic", name, topic_id, producer_id=early, sequence=7)
        ask("goes on", name, topic_id, producer_id=early, sequence=8)
        ask("id older than the topic, epoch -1", name, topic_id, producer_id=early, sequence=9, producer_epoch=-1)
        ask("epoch -1 at first", name, side.topic(name + "-epoch"), producer_id=late, sequence=0, producer_epoch=-1)
        end = 2**31 - 1
        for label, steps in (("younger", [(7, 1)]), ("at the end", [(end, 1), (0, 1), (0, 1), (1, 1)]),
                             ("over the end", [(end - 1, 4), (2, 1)])):
            other = f"{name}-{label.replace(' ', '-')}"
            who = late if label == "younger" else early
            other_id = side.topic(other)
            for sequence, count in steps:
                ask(f"{label}, sequence {sequence}", other, other_id, producer_id=who, sequence=sequence, count=count)
        stranger = f"{name}-stranger"
        ask("id that nobody gave out", stranger, side.topic(stranger), producer_id=2**40 + version, sequence=7)


@script("ListOffsets", "CreateTopics")
def list_offsets(side):
    name = "offsets"
    side.topic(name, 3)
    for index in range(10):
        side.produce(name, batch([b"a", b"b"], timestamp=T0 + 1000 * index))
    side.produce(name, batch([b"late"], timestamp=T0 + 500))
    side.topic("offsets-empty")
    for version in side.versions("ListOffsets"):
        def ask(label, *rows, number=version, topic=name, **values):
            return side.ask("ListOffsets", number, {"ReplicaId": -1, "Topics": [{"Name": topic, "Partitions": [
                {"PartitionIndex": row[0], "Timestamp": row[1], **(row[2] if len(row) > 2 else {})} for row in rows]}],
                **values}, label)
        for time in (-1, -2, -3, -4, -5, -6, -7, -100, -2**63, 0, 1, T0 - 1, T0, T0 + 1, T0 + 500, T0 + 1500, T0 + 9000,
                     T0 + 9001, 2**63 - 1):
            ask(f"time {time}", (0, time))
            ask(f"time {time}, empty partition", (1, time))
        ask("nothing")
        ask("three", (0, -1), (1, -1), (2, -2))
        ask("twice", (0, -1), (0, -2))
        ask("twice beside another", (0, -1), (1, -1), (0, -1))
        for partition in (3, -1, -2**31, 2**31 - 1):
            ask(f"partition {partition}", (partition, -1))
        ask("unknown topic", (0, -1), topic="nobody")
        ask("bad name", (0, -1), topic="a b")
        ask("empty name", (0, -1), topic="")
        for label, epoch in epochs(side):
            ask(f"epoch {label}", (0, -1, {"CurrentLeaderEpoch": epoch}))
        for level in (0, 1, 2, -1):
            ask(f"isolation {level}", (0, -1), (0 + 1, -2), IsolationLevel=level)
        for replica in (-2, -3, 0, 1, 5):
            ask(f"replica {replica}", (0, -1), ReplicaId=replica)
        ask("timeout 0", (0, T0), TimeoutMs=0)
        ask("timeout -1", (0, T0), TimeoutMs=-1)
        side.ask("ListOffsets", version, {"ReplicaId": -1, "Topics": []}, "no topic")
        side.ask("ListOffsets", version, {"ReplicaId": -1, "Topics": [
            {"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}] * 2}, "topic twice")


def fetch_values(rows, **values):
    """Rows of (name, id, partition, offset, more)."""
    topics = {}
    for name, topic_id, partition, offset, *more in rows:
        topics.setdefault((name, topic_id), []).append({
            "Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1_000_000, **(more[0] if more else {})})
    return {"MaxWaitMs": 0, "MinBytes": 0, **values, "Topics": [
        {"Topic": name, "TopicId": topic_id, "Partitions": parts} for (name, topic_id), parts in topics.items()]}


@script("Fetch", "CreateTopics")
def fetching(side):
    name = "fetch"
    topic_id = side.topic(name, 3)
    for index in range(5):
        side.produce(name, batch([b"v%d" % index, b"x" * 100], timestamp=T0 + index))
    side.produce(name, batch([b"y" * 1000], timestamp=T0), partition=1)
    for version in side.versions("Fetch"):
        def ask(label, *rows, number=version, **values):
            return side.ask("Fetch", number, fetch_values(rows, **values), label)

        def one(label, offset=0, partition=0, number=version, more=None, **values):
            return side.ask("Fetch", number, fetch_values([(name, topic_id, partition, offset, more or {})], **values),
                            label)
        for offset in (0, 1, 5, 9, 10, 11, 1000, -1, -2, 2**63 - 1, -2**63):
            one(f"offset {offset}", offset)
        for partition in (3, -1, -2**31, 2**31 - 1):
            one(f"partition {partition}", partition=partition)
        one("empty partition", partition=2)
        one("empty partition, offset 1", 1, 2)
        ask("nothing")
        ask("unknown topic", ("nobody", STRANGE_ID, 0, 0))
        ask("no id, empty name", ("", NO_ID, 0, 0))
        ask("bad name", ("a b", STRANGE_ID, 0, 0))
        ask("three partitions", *[(name, topic_id, partition, 0) for partition in range(3)])
        ask("known and unknown", (name, topic_id, 0, 0), ("nobody", STRANGE_ID, 0, 0), (name, topic_id, 7, 0))
        ask("partition twice", (name, topic_id, 0, 0), (name, topic_id, 0, 2))
        for limit in (0, 1, -1, 100, 2**31 - 1, -2**31):
            one(f"partition max {limit}", more={"PartitionMaxBytes": limit})
            one(f"max {limit}", MaxBytes=limit)
            ask(f"max {limit} of two partitions", (name, topic_id, 0, 0), (name, topic_id, 1, 0), MaxBytes=limit)
        for least in (-1, 1, 2**31 - 1):
            one(f"min {least}", MinBytes=least)
        one("min more than there is, waits", MinBytes=2**31 - 1, MaxWaitMs=30)
        one("negative wait", MaxWaitMs=-1, MinBytes=1)
        one("at the end, waits", 10, MaxWaitMs=20, MinBytes=1)
        for level in (1, 2, -1):
            one(f"isolation {level}", IsolationLevel=level)
        for label, epoch in epochs(side):
            one(f"epoch {label}", more={"CurrentLeaderEpoch": epoch})
            one(f"last fetched epoch {label}", more={"LastFetchedEpoch": epoch})
        one("log start", more={"LogStartOffset": 5})
        one("rack", RackId="somewhere")
        if version < 15:
            for replica in (-2, -3, 1, 5):
                one(f"replica {replica}", ReplicaId=replica)
        else:
            for replica in (-2, -3, 1, 5):
                one(f"replica {replica}", ReplicaState={"ReplicaId": replica, "ReplicaEpoch": -1})
        if version >= 13:
            ask("id of another beside ours", (name, topic_id, 0, 0), ("", STRANGE_ID, 0, 0))


@script("Fetch", "CreateTopics")
def fetch_sessions(side):
    name = "session"
    topic_id = side.topic(name, 3)
    side.produce(name, batch([b"a"], timestamp=T0))
    for version in side.versions("Fetch"):
        if version < 7:
            continue

        def ask(label, session, epoch, *rows, number=version, forgotten=(), **values):
            values["ForgottenTopicsData"] = [{"Topic": name, "TopicId": topic_id, "Partitions": list(forgotten)}
                                             ] if forgotten else []
            return side.ask("Fetch", number, fetch_values(rows, SessionId=session, SessionEpoch=epoch, **values), label)
        rows = [(name, topic_id, partition, 0) for partition in range(2)]
        session = ask("begins", 0, 0, *rows)["SessionId"]
        ask("goes on with nothing new", session, 1)
        ask("goes on again", session, 2)
        ask("forgets one", session, 3, forgotten=[0])
        ask("adds it again", session, 4, rows[0])
        ask("adds an unknown one", session, 5, (name, topic_id, 9, 0))
        ask("that again", session, 6)
        ask("forgets it", session, 7, forgotten=[9])
        ask("forgets what is not there", session, 8, forgotten=[8])
        ask("wrong epoch", session, 20)
        ask("right epoch after that", session, 9)
        ask("old epoch", session, 3)
        ask("unknown session", 1, 1)
        ask("unknown session at epoch 0", 1, 0)
        ask("negative session", -5, 1)
        ask("ends", session, -1)
        ask("is ended", session, 10)
        ask("a session of nothing", 0, 0)
        ask("epoch without a session", 0, 5)
        ask("no session", 0, -1, *rows)
        ask("negative epoch", 0, -2, *rows)
        session = ask("begins with an unknown topic", 0, 0, rows[0], ("nobody", STRANGE_ID, 0, 0))["SessionId"]
        ask("goes on with an unknown topic", session, 1)
