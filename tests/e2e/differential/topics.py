"""CreateTopics, DeleteTopics, Metadata."""

import uuid

from differential.scripts import script
from differential.words import STRANGE_ID

NO_ID = uuid.UUID(int=0)
ODD_NAMES = ("", ".", "..", "a b", "a/b", "\u00e9", "n" * 249, "n" * 250, "a\n", "__consumer_offsetsx", "UPPER_lower.1-2")


def creatable(name, partitions=1, replicas=1, **values):
    return {"Name": name, "NumPartitions": partitions, "ReplicationFactor": replicas, **values}


def create(side, version, label, *topics, **values):
    return side.ask("CreateTopics", version, {"Topics": list(topics), "timeoutMs": 10_000, **values}, label)


def configs(**values):
    return [{"Name": name.replace("_", "."), "Value": value} for name, value in values.items()]


@script("CreateTopics")
def creating(side):
    for version in side.versions("CreateTopics"):
        def ask(label, *topics, number=version, **values):
            return create(side, number, label, *topics, **values)
        ask("nothing")
        ask("one", creatable(f"create-{version}", 3))
        side.await_topic(f"create-{version}", 3)
        ask("one that is there", creatable(f"create-{version}"))
        ask("one that is there, other shape", creatable(f"create-{version}", 7, 5))
        ask("two, one there", creatable(f"create-{version}"), creatable(f"second-{version}"))
        ask("named twice", creatable(f"twice-{version}"), creatable(f"twice-{version}", 2))
        ask("named twice beside another", creatable(f"twice-{version}"), creatable(f"beside-{version}"),
            creatable(f"twice-{version}"))
        for count in (0, -2, -2**31):
            ask(f"{count} partitions", creatable(f"shape-{version}", count))
        for count in (0, -2, 2, 3, 32767, -32768):
            ask(f"{count} replicas", creatable(f"shape-{version}", 1, count))
        ask("no numbers", creatable(f"defaults-{version}", -1, -1))
        ask("only told", creatable(f"told-{version}", 2), validateOnly=True)
        ask("only told, wrong", creatable(f"told-{version}", 0), validateOnly=True)
        ask("assignment", creatable(f"assigned-{version}", -1, -1, Assignments=[
            {"PartitionIndex": index, "BrokerIds": [1]} for index in (0, 1)]))
        for label, rows in (("of nobody", [{"PartitionIndex": 0, "BrokerIds": []}]),
                            ("of an unknown broker", [{"PartitionIndex": 0, "BrokerIds": [99]}]),
                            ("of a broker twice", [{"PartitionIndex": 0, "BrokerIds": [1, 1]}]),
                            ("with a gap", [{"PartitionIndex": 0, "BrokerIds": [1]},
                                            {"PartitionIndex": 2, "BrokerIds": [1]}]),
                            ("that begins at 1", [{"PartitionIndex": 1, "BrokerIds": [1]}]),
                            ("of partition -1", [{"PartitionIndex": -1, "BrokerIds": [1]}]),
                            ("of a negative broker", [{"PartitionIndex": 0, "BrokerIds": [-1]}]),
                            ("of a partition twice", [{"PartitionIndex": 0, "BrokerIds": [1]}] * 2),
                            ("of another number of replicas", [{"PartitionIndex": 0, "BrokerIds": [1]},
                                                               {"PartitionIndex": 1, "BrokerIds": [1, 99]}])):
            ask(f"assignment {label}", creatable(f"assign-{version}", -1, -1, Assignments=rows))
        ask("assignment and numbers", creatable(f"assign-{version}", 1, 1, Assignments=[
            {"PartitionIndex": 0, "BrokerIds": [1]}]))
        ask("no time", creatable(f"no-time-{version}"), timeoutMs=0)
        ask("negative time", creatable(f"less-time-{version}"), timeoutMs=-1)


@script("CreateTopics")
def names(side):
    versions = side.versions("CreateTopics")
    for version in versions:
        for index, name in enumerate(ODD_NAMES):
            # The same name is good or bad in all versions; only one may make it.
            create(side, version, f"name {index}", creatable(name), validateOnly=True)
    create(side, 7, "dot", creatable("like.this_one"))
    side.await_topic("like.this_one")
    for version in versions:
        create(side, version, "dots and underscores collide", creatable("like_this_one"))
        create(side, version, "collide, told only", creatable("like_this.one"), validateOnly=True)
        create(side, version, "two that collide", creatable("pair.a"), creatable("pair_a"), validateOnly=True)
        create(side, version, "bad name and bad numbers", creatable("a b", 0, 0))
        create(side, version, "internal topic", creatable("__transaction_state_x"), validateOnly=True)
        create(side, version, "the offsets topic", creatable("__consumer_offsets"), validateOnly=True)


@script("CreateTopics")
def configs_of_new_topics(side):
    wrong = ({"retention_ms": "x"}, {"retention_ms": "-2"}, {"retention_ms": "-1"}, {"no_such_config": "1"},
             {"cleanup_policy": "compact"}, {"cleanup_policy": "compact,delete"}, {"cleanup_policy": "delete,delete"},
             {"cleanup_policy": "other"}, {"cleanup_policy": ""}, {"compression_type": "zip"},
             {"compression_type": "ZSTD"}, {"max_message_bytes": "-1"}, {"max_message_bytes": "0"},
             {"segment_bytes": "1"}, {"segment_bytes": "1048576"}, {"min_insync_replicas": "0"},
             {"min_insync_replicas": "5"}, {"flush_ms": "0"}, {"preallocate": "maybe"}, {"preallocate": "TRUE"},
             {"message_timestamp_type": "LogAppendTime"}, {"message_timestamp_type": "logappendtime"},
             {"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "5"}, {"min_cleanable_dirty_ratio": "1.1"},
             {"min_cleanable_dirty_ratio": "1"}, {"retention_bytes": "12345678901234567890"},
             {"retention_bytes": " 5 "}, {"segment_ms": "0"}, {"segment_ms": "1e3"}, {"index_interval_bytes": "-1"},
             {"unclean_leader_election_enable": "true"}, {"compression_gzip_level": "10"},
             {"compression_gzip_level": "0"}, {"compression_zstd_level": "22"}, {"compression_lz4_level": "18"},
             {"leader_replication_throttled_replicas": "*"}, {"leader_replication_throttled_replicas": "0:1,1:1"},
             {"leader_replication_throttled_replicas": "x"}, {"file_delete_delay_ms": "-1"}, {"delete_retention_ms": "0"},
             {"message_format_version": "3.0"}, {"message_downconversion_enable": "true"},
             {"message_timestamp_difference_max_ms": "1000"}, {"message_timestamp_after_max_ms": "-1"},
             {"message_timestamp_before_max_ms": "1000"}, {"local_retention_ms": "-2"}, {"local_retention_ms": "5"},
             {"remote_storage_enable": "false"}, {"remote_storage_enable": "true"}, {"segment_jitter_ms": "-1"},
             {"segment_index_bytes": "3"}, {"segment_index_bytes": "4"})
    for index, values in enumerate(wrong):
        label = " ".join(f"{key}={value}" for key, value in values.items())
        for version in side.versions("CreateTopics"):
            if version in (2, 5, 7) or index < 4:
                create(side, version, label, creatable(f"config-{index}-{version}", Configs=configs(**values)))
    for version in side.versions("CreateTopics"):
        create(side, version, "no value", creatable(f"null-{version}", Configs=[
            {"Name": "retention.ms", "Value": None}]))
        create(side, version, "config twice", creatable(f"again-{version}", Configs=[
            {"Name": "retention.ms", "Value": "1"}, {"Name": "retention.ms", "Value": "2"}]))
        create(side, version, "config without a name", creatable(f"nameless-{version}", Configs=[
            {"Name": "", "Value": "1"}]))


@script("DeleteTopics", "CreateTopics")
def deleting(side):
    for version in side.versions("DeleteTopics"):
        names_of = [f"delete-{version}-{index}" for index in range(5)]
        ids = [side.topic(name) for name in names_of]

        def ask(label, *topics, number=version, **values):
            rows = [topic if isinstance(topic, dict) else {"Name": topic, "TopicId": NO_ID} for topic in topics]
            return side.ask("DeleteTopics", number, {
                "Topics": rows, "TopicNames": [row["Name"] for row in rows], "TimeoutMs": 10_000, **values}, label)
        ask("nothing")
        ask("unknown", "nobody")
        ask("bad name", "a b")
        ask("empty name", "")
        ask("long name", "n" * 300)
        ask("unknown twice", "nobody", "nobody")
        ask("twice", names_of[0], names_of[0])
        ask("one", names_of[0])
        side.await_no_topic(names_of[0])
        ask("again", names_of[0])
        ask("one and an unknown one", names_of[1], "nobody")
        ask("no time", names_of[2], TimeoutMs=0)
        ask("negative time", "nobody", TimeoutMs=-1)
        if version >= 6:
            ask("by id", {"Name": None, "TopicId": ids[3]})
            ask("by unknown id", {"Name": None, "TopicId": STRANGE_ID})
            ask("by no id", {"Name": None, "TopicId": NO_ID})
            ask("by name and id", {"Name": names_of[4], "TopicId": ids[4]})
            ask("by id twice", *[{"Name": None, "TopicId": ids[4]}] * 2)
            ask("by name, and by id", names_of[4], {"Name": None, "TopicId": ids[4]})
            ask("by id, and by name", {"Name": None, "TopicId": ids[4]}, names_of[4])
            ask("by name and another's id", {"Name": names_of[4], "TopicId": STRANGE_ID})
    for index in range(60):
        side.ask("DeleteTopics", index % 6 + 1, {"Topics": [{"Name": f"nobody-{index}", "TopicId": NO_ID}],
                                                "TopicNames": [f"nobody-{index}"], "TimeoutMs": 1000 + index}, "many")


@script("Metadata", "CreateTopics")
def metadata(side):
    topic_id = side.topic("known", 3)
    for version in side.versions("Metadata"):
        def ask(label, topics, number=version, **values):
            rows = topics and [row if isinstance(row, dict) else {"Name": row} for row in topics]
            return side.ask("Metadata", number, {"Topics": rows, "AllowAutoTopicCreation": False, **values}, label)
        if version >= 1:
            ask("no topic", [])
        ask("one", ["known"])
        ask("twice", ["known", "known"])
        ask("operations", ["known"], IncludeClusterAuthorizedOperations=True, IncludeTopicAuthorizedOperations=True)
        if version >= 4:
            ask("unknown", ["nobody"])
            ask("known and unknown", ["nobody", "known", "no-one"])
        for index, name in enumerate(ODD_NAMES[:6]):
            ask(f"name {index}", [name])
        ask("long name", ["n" * 250])
        ask("makes it", [f"made-{version}"], AllowAutoTopicCreation=True)
        side.await_topic(f"made-{version}")
        ask("made it", [f"made-{version}"])
        ask("makes one of a bad name", ["a b"], AllowAutoTopicCreation=True)
        if version >= 10:
            row = {"Name": None, "TopicId": topic_id}
            ask("by id", [row])
            ask("by id twice", [row, row])
            ask("by unknown id", [{"Name": None, "TopicId": STRANGE_ID}])
            ask("by no id", [{"Name": None, "TopicId": NO_ID}])
            ask("by name and id", [{"Name": "known", "TopicId": topic_id}])
            ask("by name and another id", [{"Name": "known", "TopicId": STRANGE_ID}])
            ask("by id, and by name", [row, {"Name": "known", "TopicId": NO_ID}])
            ask("by id of another, may make it", [{"Name": None, "TopicId": STRANGE_ID}], AllowAutoTopicCreation=True)


@script("Metadata", "CreateTopics", first=True)
def every_topic(side):
    for index in range(3):
        side.topic(f"every-{index}", index + 1)
    for version in side.versions("Metadata"):
        side.ask("Metadata", version, {"Topics": None if version else [], "AllowAutoTopicCreation": False}, "all")
        side.ask("Metadata", version, {"Topics": None if version else [], "IncludeTopicAuthorizedOperations": True,
                                       "IncludeClusterAuthorizedOperations": True}, "all, with operations")
