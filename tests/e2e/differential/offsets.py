"""OffsetCommit, OffsetFetch, OffsetDelete: offsets of groups with and without members."""

import uuid

from differential.groups import MEMBERSHIP, heartbeat, join, join_values, leave, sync
from differential.scripts import script
from differential.words import STRANGE_ID

NO_ID = uuid.UUID(int=0)
ODD_GROUPS = ("a b", "\u00e9\U0001F600", "a\nb", "/", "..", "g" * 249, "g" * 1000, "__consumer_offsets")


def commit_values(group, rows, generation=-1, member="", **values):
    """Rows of (topic name, topic id, partition, offset, more)."""
    topics = {}
    for name, topic_id, partition, offset, *more in rows:
        topics.setdefault((name, topic_id), []).append({"PartitionIndex": partition, "CommittedOffset": offset,
                                                        "CommittedMetadata": "", **(more[0] if more else {})})
    return {"GroupId": group, "GenerationIdOrMemberEpoch": generation, "MemberId": member, **values, "Topics": [
        {"Name": name, "TopicId": topic_id, "Partitions": parts} for (name, topic_id), parts in topics.items()]}


def fetch_values(version, group, topics, **values):
    """Topics of (name, id, partitions), or None for all."""
    rows = topics and [{"Name": name, "TopicId": topic_id, "PartitionIndexes": list(parts)}
                       for name, topic_id, parts in topics]
    rows = None if topics is None else rows or []
    if version < 8:
        for row in rows or ():
            del row["TopicId"]
        return {"GroupId": group, "Topics": rows, **values}
    more = {key: values.pop(key) for key in ("MemberId", "MemberEpoch") if key in values}
    return {"Groups": [{"GroupId": group, "Topics": rows, **more}], **values}


def fetch(side, version, group, topics, label="fetch", **values):
    return side.ask("OffsetFetch", version, fetch_values(version, group, topics, **values), label)


@script("OffsetCommit", "OffsetFetch")
def simple(side):
    """A consumer without a group's membership: generation -1."""
    topic_id = side.topic("simple", 3)
    known = ("simple", topic_id)
    for version in side.versions("OffsetCommit"):
        def commit(label, *rows, number=version, group=f"simple-{version}", **values):
            return side.ask("OffsetCommit", number, commit_values(group, rows, **values), label)

        def look(label, group=f"simple-{version}"):
            fetch(side, 7, group, [("simple", topic_id, range(4))], f"after {label}")
            fetch(side, 9, group, None, f"all after {label}")
        look("nothing")
        commit("one", (*known, 0, 5))
        look("one")
        commit("with metadata", (*known, 0, 6, {"CommittedMetadata": "m\u00e9\n"}), (*known, 1, 7))
        look("metadata")
        commit("null metadata", (*known, 0, 6, {"CommittedMetadata": None}))
        look("null metadata")
        commit("lower", (*known, 0, 1))
        commit("zero", (*known, 0, 0))
        for offset in (-1, -2, -2**63, 2**63 - 1):
            commit(f"offset {offset}", (*known, 2, offset))
        look("odd offsets")
        for size in (4095, 4096, 4097, 30_000):
            commit(f"metadata of {size}", (*known, 2, 3, {"CommittedMetadata": "m" * size}))
        commit("metadata of 4096 bytes in two-byte letters", (*known, 2, 3, {"CommittedMetadata": "\u00e9" * 2048}))
        commit("metadata of 4096 two-byte letters", (*known, 2, 3, {"CommittedMetadata": "\u00e9" * 4096}))
        look("long metadata")
        for epoch in (7, 5, -1, -2):
            commit(f"epoch {epoch}", (*known, 1, 8, {"CommittedLeaderEpoch": epoch}))
            look(f"epoch {epoch}")
        for partition in (3, -1, 2**31 - 1):
            commit(f"partition {partition}", (*known, partition, 1))
        commit("unknown topic", ("nobody", STRANGE_ID, 0, 1))
        commit("bad name", ("a b", STRANGE_ID, 0, 1))
        commit("no name and no id", ("", NO_ID, 0, 1))
        commit("known and unknown", (*known, 0, 9), ("nobody", STRANGE_ID, 0, 1), (*known, 9, 1))
        look("known and unknown")
        commit("partition twice", (*known, 0, 10), (*known, 0, 11))
        look("partition twice")
        commit("nothing")
        side.ask("OffsetCommit", version, {"GroupId": f"simple-{version}", "MemberId": "", "Topics": [
            {"Name": "simple", "TopicId": topic_id, "Partitions": []}]}, "topic without partitions")
        commit("empty group id", (*known, 0, 1), group="")
        commit("empty group id, nothing", group="")
        for index, group in enumerate(ODD_GROUPS):
            commit(f"group {index}", (*known, 0, index), group=f"{group}{version}")
            look(f"group {index}", f"{group}{version}")
        commit("generation 0 of an unknown group", (*known, 0, 1), group=f"none-{version}", generation=0)
        commit("generation 5, member, of an unknown group", (*known, 0, 1), group=f"none-{version}", generation=5,
               member="nobody")
        commit("member of an unknown group", (*known, 0, 1), group=f"none-{version}", member="nobody")
        commit("member of a simple group", (*known, 0, 1), member="nobody")
        commit("generation 0 of a simple group", (*known, 0, 1), generation=0)
        commit("generation -2", (*known, 0, 1), generation=-2)
        commit("retention 0", (*known, 0, 1), RetentionTimeMs=0)
        commit("retention of a day", (*known, 1, 1), RetentionTimeMs=86_400_000)
        for retention in (-5, -2**63, 2**63 - 1):
            commit(f"retention {retention}", (*known, 1, 1), RetentionTimeMs=retention)
            look(f"retention {retention}")
        if version >= 7:
            commit("instance of an unknown group", (*known, 0, 1), group=f"none-{version}", GroupInstanceId="i1")
            commit("instance of a simple group", (*known, 0, 1), GroupInstanceId="i1")
        look("all")


@script("OffsetCommit", "OffsetFetch", *MEMBERSHIP)
def of_members(side):
    topic_id = side.topic("members", 2)
    known = ("members", topic_id)
    for version in side.versions("OffsetCommit"):
        group = f"members-{version}"

        def commit(label, *rows, number=version, to=group, **values):
            return side.ask("OffsetCommit", number, commit_values(to, rows or [(*known, 0, 1)], **values), label)
        joined = join(side, 5, group)
        member, generation = joined["MemberId"], joined["GenerationId"]
        commit("before sync", member=member, generation=generation)
        commit("before sync, simple")
        sync(side, 3, group, joined)
        commit("right", member=member, generation=generation)
        commit("right, unknown partition", (*known, 9, 1), (*known, 1, 2), member=member, generation=generation)
        commit("old generation", member=member, generation=generation - 1)
        commit("future generation", member=member, generation=generation + 1)
        commit("generation -1 with the member", member=member, generation=-1)
        commit("unknown member", member="nobody", generation=generation)
        commit("no member", member="", generation=generation)
        commit("simple while there are members")
        commit("unknown member, generation -1", member="nobody")
        if version >= 7:
            commit("unknown instance", member=member, generation=generation, GroupInstanceId="i1")
            commit("unknown instance, no member", generation=generation, GroupInstanceId="i1")
        fetch(side, 7, group, [(*known, range(2))], "what is there")
        # While a second member joins.
        second = side.ask("JoinGroup", 5, join_values(group), "second wants an id", on="b")
        waits = side.send("JoinGroup", 5, join_values(group, second["MemberId"]), "second joins", on="b")
        side.wait_for(lambda: side.quietly("Heartbeat", 3, {
            "GroupId": group, "GenerationId": generation, "MemberId": member})["ErrorCode"] == 27)
        commit("during a rebalance", (*known, 0, 20), member=member, generation=generation)
        commit("during a rebalance, second", (*known, 0, 21), member=second["MemberId"], generation=generation)
        leave(side, 3, group, member, label="first leaves")
        joined = side.receive(waits)
        commit("of who left", member=member, generation=generation)
        commit("second in the old generation", member=joined["MemberId"], generation=generation)
        commit("second before sync", member=joined["MemberId"], generation=joined["GenerationId"])
        sync(side, 3, group, joined, label="second syncs")
        commit("second after sync", (*known, 1, 30), member=joined["MemberId"], generation=joined["GenerationId"])
        leave(side, 3, group, joined["MemberId"], label="second leaves")
        commit("simple after all left", (*known, 0, 40))
        commit("old generation after all left", generation=joined["GenerationId"], member=joined["MemberId"])
        commit("generation of nobody after all left", generation=joined["GenerationId"])
        fetch(side, 7, group, [(*known, range(2))], "what is there at last")


@script("OffsetFetch", "OffsetCommit")
def fetching_offsets(side):
    topic_id = side.topic("fetched", 3)
    other_id = side.topic("fetched-too", 1)
    unknown = ("nobody", STRANGE_ID)
    rows = [("fetched", topic_id, 0, 5, {"CommittedMetadata": "m", "CommittedLeaderEpoch": side.epoch}),
            ("fetched", topic_id, 2, 7), ("fetched-too", other_id, 0, 9)]
    side.ask("OffsetCommit", 8, commit_values("fetched", rows), "commit")
    for version in side.versions("OffsetFetch"):
        def ask(label, topics, number=version, group="fetched", **values):
            return fetch(side, number, group, topics, label, **values)
        for group in ("fetched", "no-such-group", ""):
            shown = group or "empty group id"
            ask(f"{shown}: one", [("fetched", topic_id, [0])], group=group)
            ask(f"{shown}: some", [("fetched", topic_id, [0, 1, 2, 3, -1]), ("fetched-too", other_id, [0])], group=group)
            ask(f"{shown}: nothing", [], group=group)
            ask(f"{shown}: no partitions", [("fetched", topic_id, [])], group=group)
            ask(f"{shown}: unknown topic", [(*unknown, [0])], group=group)
            if version >= 2:
                ask(f"{shown}: all", None, group=group)
            if version >= 7:
                ask(f"{shown}: all, stable", None, group=group, RequireStable=True)
        ask("partition twice", [("fetched", topic_id, [0, 0])])
        ask("topic twice", [("fetched", topic_id, [0]), ("fetched", topic_id, [1])])
        ask("no name and no id", [("", NO_ID, [0])])
        ask("bad name", [("a b", STRANGE_ID, [0])])
        if version >= 9:
            for member, epoch in (("nobody", -1), ("nobody", 0), ("nobody", 5), ("", 5), ("", -1), ("nobody", -2)):
                ask(f"member {member!r} epoch {epoch}", None, MemberId=member, MemberEpoch=epoch)
                ask(f"member {member!r} epoch {epoch}, no group", None, group="none", MemberId=member, MemberEpoch=epoch)
        if version >= 8:
            def many(label, *groups, number=version):
                side.ask("OffsetFetch", number, {"Groups": [{"GroupId": group, "Topics": None} for group in groups]}, label)
            many("no group")
            many("three groups", "fetched", "none", "")
            many("group twice", "fetched", "fetched")


@script("OffsetDelete", "OffsetCommit", *MEMBERSHIP)
def deleting_offsets(side):
    topic_id = side.topic("dropped", 3)
    side.topic("dropped-too", 1)
    rows = [("dropped", topic_id, partition, 5) for partition in range(3)]

    def ask(label, group, *topics):
        return side.ask("OffsetDelete", 0, {"GroupId": group, "Topics": [
            {"Name": name, "Partitions": [{"PartitionIndex": partition} for partition in parts]}
            for name, parts in topics]}, label)

    def look(group, label):
        fetch(side, 7, group, None, label)
    for round_ in range(4):
        group = f"drops-{round_}"
        ask("unknown group", group, ("dropped", [0]))
        ask("empty group id", "", ("dropped", [0]))
        side.ask("OffsetCommit", 8, commit_values(group, rows), "commit")
        ask("nothing", group)
        ask("no partitions", group, ("dropped", []))
        ask("unknown topic", group, ("nobody", [0]))
        ask("bad name", group, ("a b", [0]))
        ask("unknown partitions", group, ("dropped", [7, -1]))
        ask("without an offset", group, ("dropped-too", [0]))
        look(group, "before")
        ask("one", group, ("dropped", [0]))
        look(group, "after one")
        ask("again", group, ("dropped", [0]))
        ask("twice in one", group, ("dropped", [1, 1]))
        ask("known and unknown", group, ("dropped", [2, 9]), ("nobody", [1]))
        look(group, "after all")
        ask("of a group without offsets", group, ("dropped", [0]))
        # With a member that is subscribed by the consumer protocol, and one whose protocol is another.
        for kind, metadata in (("consumer", b"\0\0\0\0\0\1\0\7dropped\xff\xff\xff\xff"), ("consumer", b"r1"),
                               ("other", b"r1"), ("consumer", b"")):
            group = f"drops-{round_}-{kind}-{len(metadata)}"
            side.ask("OffsetCommit", 8, commit_values(group, rows + [("dropped-too", None, 0, 1)]), "commit")
            joined = join(side, 5, group, ProtocolType=kind, protocols=[{"Name": "range", "Metadata": metadata}])
            ask(f"{kind} {len(metadata)}: member before sync", group, ("dropped", [0]))
            sync(side, 3, group, joined)
            ask(f"{kind} {len(metadata)}: member", group, ("dropped", [0]), ("dropped-too", [0]))
            heartbeat(side, 3, group, joined["GenerationId"], joined["MemberId"])
            look(group, f"{kind} {len(metadata)}: after")
            leave(side, 3, group, joined["MemberId"])
            ask(f"{kind} {len(metadata)}: after leaving", group, ("dropped", [0]))
            look(group, f"{kind} {len(metadata)}: at last")
