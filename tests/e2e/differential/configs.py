"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs."""

from differential.scripts import script

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
# Values to try, each on a topic: mostly at the edges of what is allowed.
VALUES = (
    ("retention.ms", ("-1", "-2", "0", "1", "x", "", " 7 ", "1.5", "0x10", "9223372036854775807", "9223372036854775808")),
    ("retention.bytes", ("-1", "-2", "0", "1")),
    ("cleanup.policy", ("compact", "delete", "compact,delete", "delete,compact", "compact, delete", "", "COMPACT", "x",
                        "delete,delete", ",", "delete,")),
    ("compression.type", ("zstd", "uncompressed", "none", "producer", "ZSTD", "")),
    ("max.message.bytes", ("0", "-1", "1", "2147483647", "2147483648")),
    ("segment.bytes", ("1048575", "1048576", "14", "1")), ("segment.ms", ("0", "1", "-1")),
    ("segment.jitter.ms", ("0", "-1", "5")), ("segment.index.bytes", ("3", "4")), ("index.interval.bytes", ("-1", "0")),
    ("flush.messages", ("0", "1")), ("flush.ms", ("-1", "0")), ("file.delete.delay.ms", ("-1", "0")),
    ("delete.retention.ms", ("-1", "0")), ("min.insync.replicas", ("0", "1", "2", "100")),
    ("min.cleanable.dirty.ratio", ("-0.1", "0", "0.7", "1", "1.1", "x", "NaN", ".5", "5e-1")),
    ("min.compaction.lag.ms", ("-1", "0", "5")), ("max.compaction.lag.ms", ("0", "1")),
    ("message.timestamp.type", ("CreateTime", "LogAppendTime", "logappendtime", "x")),
    ("message.timestamp.before.max.ms", ("-1", "0", "5")), ("message.timestamp.after.max.ms", ("-1", "0", "5")),
    ("preallocate", ("true", "false", "TRUE", "yes", "")), ("unclean.leader.election.enable", ("true", "false", "1")),
    ("compression.gzip.level", ("-1", "0", "1", "9", "10")), ("compression.lz4.level", ("0", "1", "17", "18")),
    ("compression.zstd.level", ("-131072", "-131073", "0", "22", "23")),
    ("leader.replication.throttled.replicas", ("*", "0:1", "0:1,2:3", "x", "", "0:1,", "none", "0", "0:x")),
    ("follower.replication.throttled.replicas", ("*", "x")),
    ("local.retention.ms", ("-2", "-3", "-1", "5")), ("local.retention.bytes", ("-2", "-3", "-1", "5")),
    ("remote.storage.enable", ("true", "false")), ("remote.log.copy.disable", ("true", "false")),
    ("remote.log.delete.on.disable", ("true", "false")), ("remote.copy.lag.ms", ("0", "-1", "-2", "5")),
    ("remote.copy.lag.bytes", ("0", "-1", "-2", "5")), ("max.decompressed.message.bytes", ("0", "1", "-1")),
    ("errors.deadletterqueue.group.enable", ("true", "false", "x")),
    ("message.format.version", ("3.0",)), ("message.downconversion.enable", ("true",)),
    ("message.timestamp.difference.max.ms", ("1",)), ("no.such.config", ("1",)), ("", ("1",)), ("RETENTION.MS", ("1",)),
)


def describe(side, version, label, *resources, **values):
    """Resources of (type, name, keys or None)."""
    return side.ask("DescribeConfigs", version, {"Resources": [
        {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys} for kind, name, keys in resources],
        **values}, label)


def settle(side):
    """Waits until the broker knows what has been changed: what was changed later, and quietly, is known."""
    topic, key = "settled-configs", "retention.ms"
    if side.quietly("Metadata", 8, {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": False})["Topics"][0]["ErrorCode"]:
        side.topic(topic)
    told = {"Resources": [{"ResourceType": TOPIC, "ResourceName": topic, "ConfigurationKeys": [key]}]}

    def value():
        return side.quietly("DescribeConfigs", 4, told)["Results"][0]["Configs"][0]["Value"]
    wanted = str(int(value()) % 1000 + 1)
    side.quietly("IncrementalAlterConfigs", 1, {"ValidateOnly": False, "Resources": [
        {"ResourceType": TOPIC, "ResourceName": topic, "Configs": [
            {"Name": key, "ConfigOperation": SET, "Value": wanted}]}]})
    side.wait_for(lambda: value() == wanted)


def change(side, version, label, *resources, only=False):
    """Resources of (type, name, [(config, operation, value)])."""
    return side.ask("IncrementalAlterConfigs", version, {"ValidateOnly": only, "Resources": [
        {"ResourceType": kind, "ResourceName": name, "Configs": [
            {"Name": key, "ConfigOperation": operation, "Value": value} for key, operation, value in rows]}
        for kind, name, rows in resources]}, label)


def replace(side, version, label, *resources, only=False):
    """Resources of (type, name, [(config, value)])."""
    return side.ask("AlterConfigs", version, {"ValidateOnly": only, "Resources": [
        {"ResourceType": kind, "ResourceName": name, "Configs": [{"Name": key, "Value": value} for key, value in rows]}
        for kind, name, rows in resources]}, label)


@script("DescribeConfigs", "CreateTopics")
def describing_configs(side):
    side.topic("told", 1, {"retention.ms": "5000", "cleanup.policy": "compact"})
    for version in side.versions("DescribeConfigs"):
        def ask(label, *resources, number=version, **values):
            return describe(side, number, label, *resources, **values)
        for synonyms in (False, True):
            for documentation in (False, True):
                more = {"IncludeSynonyms": synonyms, "IncludeDocumentation": documentation}
                ask("all", (TOPIC, "told", None), **more)
                ask("some", (TOPIC, "told", ["retention.ms", "segment.ms"]), **more)
        ask("nothing")
        ask("no keys", (TOPIC, "told", []))
        ask("unknown key", (TOPIC, "told", ["no.such.config"]))
        ask("known and unknown key", (TOPIC, "told", ["no.such.config", "retention.ms"]))
        ask("key twice", (TOPIC, "told", ["retention.ms", "retention.ms"]))
        ask("empty key", (TOPIC, "told", [""]))
        ask("upper case key", (TOPIC, "told", ["RETENTION.MS"]))
        for name in ("nobody", "a b", "", "n" * 250):
            ask(f"topic {name[:10]!r}", (TOPIC, name, None))
        ask("two topics", (TOPIC, "told", ["retention.ms"]), (TOPIC, "nobody", None))
        ask("topic twice", (TOPIC, "told", ["retention.ms"]), (TOPIC, "told", ["segment.ms"]))
        for kind in (0, 1, 3, 5, 64, 127, -1):
            ask(f"kind {kind}", (kind, "told", None))
        for name in ("2", "x", "-1", "1.0", " 1"):
            ask(f"broker {name!r}", (BROKER, name, ["log.retention.ms"]))
        ask("this broker, one key", (BROKER, "1", ["log.retention.bytes"]))
        ask("this broker, unknown key", (BROKER, "1", ["no.such.config"]))
        ask("default of brokers, one key", (BROKER, "", ["log.retention.bytes"]))
        ask("logger", (BROKER_LOGGER, "1", ["no.such.logger"]))
        ask("logger of another broker", (BROKER_LOGGER, "2", None))
        ask("logger of none", (BROKER_LOGGER, "", None))
        ask("metrics of none", (CLIENT_METRICS, "", None))
        ask("metrics", (CLIENT_METRICS, "x", None))
        ask("group of none", (GROUP, "", None))
        ask("group", (GROUP, "x", None))


@script("IncrementalAlterConfigs", "DescribeConfigs", "CreateTopics")
def values_of_configs(side):
    """Each value on a topic, told only and then set, and what is told of it."""
    side.topic("values")
    for key, values in VALUES:
        for index, value in enumerate(values):
            version = index % 2
            change(side, version, f"{key}={value} told only", (TOPIC, "values", [(key, SET, value)]), only=True)
            change(side, version, f"{key}={value}", (TOPIC, "values", [(key, SET, value)]))
            settle(side)
            describe(side, 4, f"{key}={value}", (TOPIC, "values", [key]))
        change(side, 1, f"{key} deleted", (TOPIC, "values", [(key, DELETE, None)]))
    settle(side)
    describe(side, 4, "all at last", (TOPIC, "values", None))


@script("IncrementalAlterConfigs", "DescribeConfigs", "CreateTopics")
def changing_configs(side):
    for version in side.versions("IncrementalAlterConfigs"):
        name = f"changed-{version}"
        side.topic(name)
        keys = ["retention.ms", "cleanup.policy", "leader.replication.throttled.replicas", "min.insync.replicas"]

        def ask(label, *rows, number=version, topic=name, only=False):
            change(side, number, label, (TOPIC, topic, list(rows)), only=only)
            settle(side)
            describe(side, 4, f"after {label}", (TOPIC, name, keys))
        ask("nothing")
        ask("set", ("retention.ms", SET, "5"))
        ask("set two", ("retention.ms", SET, "6"), ("min.insync.replicas", SET, "1"))
        ask("set again", ("retention.ms", SET, "6"))
        ask("one right and one wrong", ("retention.ms", SET, "7"), ("segment.ms", SET, "x"))
        ask("delete", ("retention.ms", DELETE, None))
        ask("delete again", ("retention.ms", DELETE, None))
        ask("delete with a value", ("min.insync.replicas", DELETE, "3"))
        ask("delete an unknown one", ("no.such.config", DELETE, None))
        ask("set null", ("retention.ms", SET, None))
        ask("set null and another", ("retention.ms", SET, None), ("min.insync.replicas", SET, "1"))
        ask("append to a default", ("cleanup.policy", APPEND, "compact"))
        ask("append what is there", ("cleanup.policy", APPEND, "compact"))
        ask("subtract", ("cleanup.policy", SUBTRACT, "delete"))
        ask("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete"))
        ask("subtract the last", ("cleanup.policy", SUBTRACT, "compact"))
        ask("append to nothing", ("cleanup.policy", APPEND, "delete"))
        ask("append a wrong one", ("cleanup.policy", APPEND, "x"))
        ask("append null", ("cleanup.policy", APPEND, None))
        ask("append two", ("leader.replication.throttled.replicas", APPEND, "0:1,1:1"))
        ask("append to no list", ("retention.ms", APPEND, "5"))
        ask("subtract from no list", ("retention.ms", SUBTRACT, "5"))
        ask("append to an unknown one", ("no.such.config", APPEND, "5"))
        for operation in (4, 5, -1, 127):
            ask(f"operation {operation}", ("retention.ms", operation, "5"))
        ask("set twice", ("retention.ms", SET, "8"), ("retention.ms", SET, "9"))
        ask("set and delete", ("retention.ms", SET, "8"), ("retention.ms", DELETE, None))
        ask("told only", ("retention.ms", SET, "10"), only=True)
        ask("lags that contradict", ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5"))
        ask("local beyond the total", ("retention.ms", SET, "10"), ("local.retention.ms", SET, "20"))
        for topic in ("nobody", "a b", ""):
            ask(f"topic {topic!r}", ("retention.ms", SET, "5"), topic=topic)
            ask(f"topic {topic!r}, nothing", topic=topic)
            ask(f"topic {topic!r}, wrong", ("retention.ms", SET, "x"), topic=topic)
        change(side, version, "no resource")
        change(side, version, "topic twice", *[(TOPIC, name, [("retention.ms", SET, "5")])] * 2)
        change(side, version, "known and unknown topic", (TOPIC, name, [("retention.ms", SET, "5")]),
               (TOPIC, "nobody", [("retention.ms", SET, "5")]))
        for kind in (0, 1, 3, 5, 64, -1):
            change(side, version, f"kind {kind}", (kind, name, [("retention.ms", SET, "5")]))
        for broker in ("2", "x", "-1"):
            change(side, version, f"broker {broker!r}", (BROKER, broker, [("log.retention.ms", SET, "5")]))
        change(side, version, "broker, read-only", (BROKER, "1", [("broker.id", SET, "5")]))
        change(side, version, "broker, read-only for one", (BROKER, "1", [("process.roles", SET, "broker")]))
        change(side, version, "brokers, read-only", (BROKER, "", [("process.roles", SET, "broker")]))
        change(side, version, "broker, unknown", (BROKER, "1", [("no.such.config", SET, "5")]), only=True)
        change(side, version, "broker, nothing", (BROKER, "1", []))
        change(side, version, "logger of another broker", (BROKER_LOGGER, "2", [("root", SET, "INFO")]))
        change(side, version, "unknown logger", (BROKER_LOGGER, "1", [("no.such.logger", SET, "INFO")]))


@script("AlterConfigs", "IncrementalAlterConfigs", "DescribeConfigs", "CreateTopics")
def replacing_configs(side):
    for version in side.versions("AlterConfigs"):
        name = f"replaced-{version}"
        side.topic(name, 1, {"retention.ms": "1", "segment.ms": "2"})
        keys = ["retention.ms", "segment.ms", "cleanup.policy"]

        def ask(label, *rows, number=version, topic=name, only=False):
            replace(side, number, label, (TOPIC, topic, list(rows)), only=only)
            settle(side)
            describe(side, 4, f"after {label}", (TOPIC, name, keys))
        ask("told only", ("retention.ms", "5"), only=True)
        ask("one, the other goes", ("retention.ms", "5"))
        ask("wrong value", ("retention.ms", "x"))
        ask("one right and one wrong", ("cleanup.policy", "compact"), ("segment.ms", "x"))
        ask("null", ("retention.ms", None))
        ask("unknown", ("no.such.config", "1"))
        ask("no name", ("", "1"))
        ask("config twice", ("retention.ms", "5"), ("retention.ms", "6"))
        ask("two", ("retention.ms", "7"), ("cleanup.policy", "compact"))
        ask("nothing, all go")
        ask("lags that contradict", ("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5"))
        for topic in ("nobody", "a b", ""):
            ask(f"topic {topic!r}", ("retention.ms", "5"), topic=topic)
            ask(f"topic {topic!r}, nothing", topic=topic)
        replace(side, version, "no resource")
        if version == 2:  # Kafka fails inside, and never answers
            twice = {"ResourceType": TOPIC, "ResourceName": name, "Configs": []}
            side.send("AlterConfigs", version, {"Resources": [twice, twice], "ValidateOnly": False}, on="twice")
            side.note("AlterConfigs", version, "topic twice", answers=side.has_answer("twice", 3))
        replace(side, version, "known and unknown topic", (TOPIC, name, [("retention.ms", "5")]),
                (TOPIC, "nobody", [("retention.ms", "5")]))
        for kind in (0, 1, 3, 5, 8, 64, -1):
            replace(side, version, f"kind {kind}", (kind, name, [("retention.ms", "5")]))
        for broker in ("2", "x", "-1"):
            replace(side, version, f"broker {broker!r}", (BROKER, broker, [("log.retention.ms", "5")]))
        replace(side, version, "broker, read-only", (BROKER, "1", [("broker.id", "5")]))
        for key, values in VALUES[:12]:
            for value in values[:3]:
                replace(side, version, f"{key}={value}", (TOPIC, name, [(key, value)]))
