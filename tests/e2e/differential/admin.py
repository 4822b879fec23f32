"""CreatePartitions, DeleteRecords, DescribeTopicPartitions, OffsetForLeaderEpoch, DescribeLogDirs."""

from differential.records import T0, epochs
from differential.scripts import script
from harness.wire import batch


@script("CreatePartitions")
def adding_partitions(side):
    for version in side.versions("CreatePartitions"):
        name = f"grow-{version}"
        side.topic(name, 2)

        def ask(label, *topics, number=version, **values):
            return side.ask("CreatePartitions", number, {"Topics": [
                {"Name": row[0], "Count": row[1], "Assignments": row[2] if len(row) > 2 else None} for row in topics],
                "TimeoutMs": 10_000, "ValidateOnly": False, **values}, label)
        ask("nothing")
        for count in (2, 1, 0, -1, -2**31):
            ask(f"{count} partitions", (name, count))
        ask("told only", (name, 3), ValidateOnly=True)
        ask("told only, wrong", (name, 1), ValidateOnly=True)
        ask("one more", (name, 3))
        side.await_topic(name, 3)
        ask("unknown", ("nobody", 3))
        ask("bad name", ("a b", 3))
        ask("empty name", ("", 3))
        ask("known and unknown", (name, 4), ("nobody", 4))
        side.await_topic(name, 4)
        ask("twice", (name, 5), (name, 6))
        ask("twice beside another", (name, 5), ("nobody", 1), (name, 5))
        ask("unknown twice", ("nobody", 5), ("nobody", 5))
        ask("with an assignment", (name, 6, [{"BrokerIds": [1]}, {"BrokerIds": [1]}]))
        side.await_topic(name, 6)
        for label, rows in (("too short", [{"BrokerIds": [1]}]), ("too long", [{"BrokerIds": [1]}] * 3), ("empty", []),
                            ("of nobody", [{"BrokerIds": []}] * 2), ("of an unknown broker", [{"BrokerIds": [9]}] * 2),
                            ("of a broker twice", [{"BrokerIds": [1, 1]}] * 2), ("of broker -1", [{"BrokerIds": [-1]}] * 2),
                            ("of different sizes", [{"BrokerIds": [1]}, {"BrokerIds": [1, 9]}])):
            ask(f"assignment {label}", (name, 8, rows))
        ask("assignment of another count", (name, 6, [{"BrokerIds": [1]}]))
        ask("no time", (name, 9), TimeoutMs=0)
        ask("negative time", (name, 9), TimeoutMs=-1)
        ask("internal", ("__consumer_offsets_x", 9))
        ask("far too many", (name, 1_000_000))


@script("DeleteRecords", "ListOffsets")
def deleting_records(side):
    for version in side.versions("DeleteRecords"):
        name = f"cut-{version}"
        side.topic(name, 3)
        for _ in range(5):
            side.produce(name, batch([b"a", b"b"], timestamp=T0))

        def ask(label, *rows, number=version, topic=name, **values):
            return side.ask("DeleteRecords", number, {"Topics": [{"Name": topic, "Partitions": [
                {"PartitionIndex": partition, "Offset": offset} for partition, offset in rows]}],
                "TimeoutMs": 10_000, **values}, label)

        def look(label):
            for time in (-2, -1, T0):
                side.ask("ListOffsets", 6, {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": [
                    {"PartitionIndex": 0, "Timestamp": time}]}]}, f"after {label}, time {time}")
        for offset in (0, 1, 3, 2, 3, 0, 4, 11, -2, -2**63, 2**63 - 1):
            ask(f"to {offset}", (0, offset))
            ask(f"empty partition to {offset}", (1, offset))
        look("some")
        side.ask("Fetch", 11, {"MaxWaitMs": 0, "MinBytes": 0, "Topics": [{"Topic": name, "Partitions": [
            {"Partition": 0, "FetchOffset": offset, "PartitionMaxBytes": 10_000} for offset in (3,)]}]}, "fetch below the start")
        ask("to the end", (0, -1))
        look("all")
        ask("to the end again", (0, -1))
        ask("empty partition to the end", (1, -1))
        for partition in (3, -1, 2**31 - 1):
            ask(f"partition {partition}", (partition, 0))
        ask("unknown topic", (0, 0), topic="nobody")
        ask("bad name", (0, 0), topic="a b")
        ask("empty name", (0, 0), topic="")
        ask("no partitions")
        side.ask("DeleteRecords", version, {"Topics": [], "TimeoutMs": 1000}, "nothing")
        ask("several", (0, 10), (1, 0), (7, 0))
        ask("partition twice", (2, 0), (2, 0))
        ask("no time", (2, 0), TimeoutMs=0)
        ask("negative time", (2, 0), TimeoutMs=-1)
        side.produce(name, batch([b"more"], timestamp=T0))
        look("more")
        ask("to the end at last", (0, -1))


@script("DescribeTopicPartitions")
def describing_partitions(side):
    for name, count in (("parts-a", 3), ("parts-b", 1), ("parts-c", 5)):
        side.topic(name, count)

    def ask(label, *names, limit=2000, cursor=None):
        return side.ask("DescribeTopicPartitions", 0, {
            "Topics": [{"Name": name} for name in names], "ResponsePartitionLimit": limit,
            "Cursor": cursor and {"TopicName": cursor[0], "PartitionIndex": cursor[1]}}, label)
    every = ("parts-a", "parts-b", "parts-c")
    for names in ((), ("parts-a",), every, tuple(reversed(every)), ("nobody",), ("parts-a", "nobody", "parts-c"), ("a b",),
                  ("",), ("parts-a", "parts-a"), ("nobody", "nobody")):
        if names:
            ask(f"{names}", *names)
        for limit in (1, 2, 3, 4, 5, 8, 9, 10, 0, -1, 2**31 - 1):
            if names:
                ask(f"{names}, at most {limit}", *names, limit=limit)
    for name in (*every, "nobody", "parts-0", "parts-bb", "z", "", "a b"):
        for partition in (0, 1, 4, 5, -1):
            ask(f"from {name} {partition}", *every, cursor=(name, partition))
            ask(f"from {name} {partition}, at most 2", *every, cursor=(name, partition), limit=2)


@script("OffsetForLeaderEpoch")
def leader_epochs(side):
    side.topic("epochs", 2)
    side.produce("epochs", batch([b"a"] * 5, timestamp=T0))
    for version in side.versions("OffsetForLeaderEpoch"):
        def ask(label, *rows, number=version, topic="epochs", **values):
            return side.ask("OffsetForLeaderEpoch", number, {"ReplicaId": -1, "Topics": [{"Topic": topic, "Partitions": [
                {"Partition": row[0], "LeaderEpoch": row[1], "CurrentLeaderEpoch": row[2] if len(row) > 2 else -1}
                for row in rows]}], **values}, label)
        for label, epoch in (*epochs(side), ("-1", -1), ("least", -2**31)):
            ask(f"epoch {label}", (0, epoch))
            ask(f"epoch {label}, empty partition", (1, epoch))
            ask(f"current {label}", (0, side.epoch, epoch))
        for partition in (2, -1, 2**31 - 1):
            ask(f"partition {partition}", (partition, side.epoch))
        ask("unknown topic", (0, side.epoch), topic="nobody")
        ask("bad name", (0, side.epoch), topic="a b")
        ask("empty name", (0, side.epoch), topic="")
        ask("no partitions")
        ask("two", (0, side.epoch), (1, side.epoch))
        ask("twice", (0, side.epoch), (0, side.epoch))
        side.ask("OffsetForLeaderEpoch", version, {"ReplicaId": -1, "Topics": []}, "nothing")
        for replica in (-2, -3, 0, 1, 5):
            ask(f"replica {replica}", (0, side.epoch), ReplicaId=replica)


@script("DescribeLogDirs")
def log_dirs(side):
    side.topic("dirs", 3)
    side.produce("dirs", batch([b"a" * 100] * 5, timestamp=T0))
    for version in side.versions("DescribeLogDirs"):
        def ask(label, *topics, number=version):
            return side.ask("DescribeLogDirs", number, {"Topics": [
                {"Topic": name, "Partitions": list(parts)} for name, parts in topics]}, label)
        ask("nothing")
        for parts in ((), (0,), (1,), (0, 1, 2), (7,), (-1,), (0, 0), (0, 7)):
            ask(f"partitions {parts}", ("dirs", parts))
        ask("unknown", ("nobody", (0,)))
        ask("bad name", ("a b", (0,)))
        ask("empty name", ("", (0,)))
        ask("known and unknown", ("dirs", (0,)), ("nobody", (0,)))
        ask("topic twice", ("dirs", (0,)), ("dirs", (1,)))
        for index in range(6):
            ask("again", ("dirs", (index % 3,)))


@script("DescribeLogDirs", first=True)
def every_log_dir(side):
    side.topic("every-dir", 2)
    for version in side.versions("DescribeLogDirs"):
        side.ask("DescribeLogDirs", version, {"Topics": None}, "all")
