#!/usr/bin/env python3
"""Writes src/protocol/schemas/*.schema (notation: docs/schemas.md) from the message definitions that
kafka-clients jars carry. Run by hand when a newer Kafka is taken; the build never runs it.

    tools/convert_schemas.py NEW_JAR OLD_JAR

NEW_JAR decides names, types and versions. OLD_JAR adds the versions in OLD_VERSIONS, which the newer Kafka
dropped and varve still serves. Only facts are taken; no comment or description is carried over.
"""

import json
import re
import sys
import zipfile
from pathlib import Path

SCHEMAS = Path(__file__).resolve().parent.parent / "src/protocol/schemas"

APIS = """
Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat LeaveGroup
SyncGroup DescribeGroups ListGroups ApiVersions CreateTopics DeleteTopics DeleteRecords InitProducerId
OffsetForLeaderEpoch DescribeConfigs AlterConfigs DescribeLogDirs CreatePartitions DeleteGroups
IncrementalAlterConfigs OffsetDelete DescribeCluster DescribeTopicPartitions SaslHandshake SaslAuthenticate
""".split()

# Lowest version to take from OLD_JAR.
OLD_VERSIONS = {"ListOffsets": 0, "CreateTopics": 0, "DeleteTopics": 0}

# Strings whose value must not reach a log, as (message, field); bytes are never printed.
SECRETS = {
    ("AlterConfigsRequest", "Value"),
    ("IncrementalAlterConfigsRequest", "Value"),
}

MAX = 32767


def load(jar, message):
    text = jar.read(f"common/message/{message}.json").decode()
    return json.loads(re.sub(r"(^|\s)//.*$", "", text, flags=re.M))


def span(text):
    """The versions of a definition as (low, high); None for none."""
    if text is None or text == "none":
        return None
    low, dash, high = text.partition("-")
    if text.endswith("+"):
        return int(text[:-1]), MAX
    return int(low), int(high) if dash else int(low)


def clip(versions, window):
    if versions is None or window is None:
        return None
    low, high = max(versions[0], window[0]), min(versions[1], window[1])
    return (low, high) if low <= high else None


def join(a, b, what):
    if a is None or b is None:
        return a or b
    if max(a[0], b[0]) > min(a[1], b[1]) + 1:
        raise SystemExit(f"{what}: versions with a gap")
    return min(a[0], b[0]), max(a[1], b[1])


def resolve(definition):
    """Fields of the definition as plain dictionaries, versions as pairs, common structs in their own list."""

    def fields_of(fields):
        return [
            {
                "name": f["name"],
                "type": f["type"],
                "versions": span(f["versions"]),
                "nullable": span(f.get("nullableVersions")),
                "tagged": span(f.get("taggedVersions")),
                "tag": f.get("tag"),
                "default": f.get("default"),
                "entity": f.get("entityType"),
                "key": f.get("mapKey", False),
                "flexible": f.get("flexibleVersions"),
                "fields": fields_of(f.get("fields", [])),
            }
            for f in fields
        ]

    structs = {c["name"]: fields_of(c["fields"]) for c in definition.get("commonStructs", [])}
    return fields_of(definition["fields"]), structs


def restrict(fields, window):
    kept = []
    for f in fields:
        f = dict(f, versions=clip(f["versions"], window))
        if f["versions"] is None:
            continue
        f["nullable"] = clip(f["nullable"], f["versions"])
        f["tagged"] = clip(f["tagged"], f["versions"])
        if f["tagged"] not in (None, f["versions"]):
            raise SystemExit(f"{f['name']}: tagged in some versions only")
        f["fields"] = restrict(f["fields"], f["versions"])
        kept.append(f)
    return kept


def merge(old, new):
    """Fields of both, in order, each with the versions of both."""
    merged = []
    names = [f["name"] for f in new]
    pending = list(new)
    for f in old:
        if f["name"] not in names:
            merged.append(f)
            continue
        while pending[0]["name"] != f["name"]:
            merged.append(pending.pop(0))
        n = pending.pop(0)
        if n["type"] != f["type"] or n["tag"] != f["tag"]:
            raise SystemExit(f"{f['name']}: changed between the jars")
        merged.append(
            dict(
                n,
                versions=join(f["versions"], n["versions"], f["name"]),
                nullable=join(f["nullable"], n["nullable"], f["name"]),
                fields=merge(f["fields"], n["fields"]),
            )
        )
    return merged + pending


def show_span(versions, window):
    low, high = versions
    if high == window[1]:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"


def show_fields(message, fields, window, depth):
    lines = []
    for f in fields:
        words = [f["name"], f["type"]]
        if f["nullable"]:
            words[1] += "?"
            if f["nullable"] != f["versions"]:
                words[1] += show_span(f["nullable"], f["versions"])
        if f["versions"] != window:
            words.append(show_span(f["versions"], window))
        if f["tag"] is not None:
            words.append(f"tag {f['tag']}")
        if f["default"] is not None:
            text = str(f["default"])
            text = text.lower() if isinstance(f["default"], bool) else text
            words.append("= " + (text if re.fullmatch(r"[\w.-]+", text) else json.dumps(text)))
        if f["entity"]:
            words.append("@" + f["entity"])
        if f["key"]:
            words.append("key")
        if (message, f["name"]) in SECRETS:
            words.append("secret")
        if f["flexible"] == "none":
            words.append("inflexible")
        lines.append("  " * depth + " ".join(words))
        lines += show_fields(message, f["fields"], f["versions"], depth + 1)
    return lines


def convert(message, api, new_jar, old_jar):
    definition = load(new_jar, message)
    window = span(definition["validVersions"])
    flexible = clip(span(definition["flexibleVersions"]), (0, MAX))
    request = load(new_jar, api + "Request") if api else definition
    if request.get("latestVersionUnstable"):
        window = (window[0], window[1] - 1)
    fields, structs = resolve(definition)
    fields = restrict(fields, window)
    structs = {name: restrict(inner, window) for name, inner in structs.items()}
    if api in OLD_VERSIONS:
        old_window = (OLD_VERSIONS[api], window[0] - 1)
        old_fields, _ = resolve(load(old_jar, message))
        window = (old_window[0], window[1])
        fields = merge(restrict(old_fields, old_window), fields)
    head = [definition["type"], message]
    if api:
        head += ["api", str(definition["apiKey"])]
    head += ["versions", show_span(window, (0, MAX)), "flexible", f"{flexible[0]}+" if flexible else "none"]
    lines = [" ".join(head)]
    lines += show_fields(message, fields, window, 1)
    for name, inner in structs.items():
        lines.append(f"struct {name}")
        lines += show_fields(message, inner, window, 1)
    (SCHEMAS / f"{message}.schema").write_text("\n".join(lines) + "\n")


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    SCHEMAS.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(sys.argv[1]) as new_jar, zipfile.ZipFile(sys.argv[2]) as old_jar:
        for message in ("RequestHeader", "ResponseHeader"):
            convert(message, None, new_jar, old_jar)
        for api in APIS:
            convert(api + "Request", api, new_jar, old_jar)
            convert(api + "Response", api, new_jar, old_jar)


if __name__ == "__main__":
    main()
