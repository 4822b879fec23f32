"""Group ids, member ids and metadata of odd letters are data; and groups that are too large."""

from differential.groups import MEMBERSHIP, heartbeat, join, join_values, leave, sync
from differential.offsets import ODD_GROUPS, commit_values, fetch
from differential.scripts import script
from differential.words import STRANGE_ID

ODD = ("", "a b", "\u00e9\U0001F600", "a\nb\t", "\0", "/../", "'\"\\", "x" * 5000)
KIB = 1024


@script("DescribeGroups", "ListGroups", "DeleteGroups", "OffsetCommit", "OffsetFetch", *MEMBERSHIP)
def lives_of_groups_with_odd_ids(side):
    topic_id = side.topic("of-odd-groups", 1)
    for version in (4, side.versions("JoinGroup")[-1]):
        for index, odd in enumerate((*ODD_GROUPS, *ODD[1:])):
            group, other = f"{odd}-{version}", min(version, 4)

            def label(text, number=index):
                return f"group {number}: {text}"
            joined = join(side, version, group, label=label("joins"))
            sync(side, min(version, 5), group, joined, label=label("syncs"))
            member, generation = joined["MemberId"], joined["GenerationId"]
            heartbeat(side, other, group, generation, member, label("beats"))
            heartbeat(side, other, group, generation + 1, member, label("beats for the next generation"))
            heartbeat(side, other, group + " ", generation, member, label("beats for another group"))
            row = ("of-odd-groups", topic_id, 0, index, {"CommittedMetadata": odd[:100]})
            side.ask("OffsetCommit", 8, commit_values(group, [row], generation, member), label("commits"))
            fetch(side, 7, group, [("of-odd-groups", topic_id, [0])], label("fetches"))
            side.ask("DescribeGroups", 5, {"Groups": [group]}, label("is described"))
            side.ask("DeleteGroups", 2, {"GroupsNames": [group]}, label("is not deleted"))
            leave(side, min(version, 5), group, member, label=label("leaves"))
            side.ask("DeleteGroups", 2, {"GroupsNames": [group]}, label("is deleted"))
            side.ask("DescribeGroups", 6, {"Groups": [group]}, label("is gone"))


@script("DescribeGroups", *MEMBERSHIP)
def odd_texts_of_members(side):
    """Names and metadata that a member brings come back as they went."""
    for version in (5, side.versions("JoinGroup")[-1]):
        for index, odd in enumerate(ODD):
            group = f"odd-members-{version}-{index}"
            protocols = [{"Name": f"p{odd}", "Metadata": odd.encode() + bytes(range(256))}]
            joined = join(side, version, group, label=f"text {index}: joins", protocols=protocols, ProtocolType=f"t{odd}")
            side.ask("SyncGroup", min(version, 5), {
                "GroupId": group, "GenerationId": joined["GenerationId"], "MemberId": joined["MemberId"],
                "ProtocolType": f"t{odd}", "ProtocolName": f"p{odd}",
                "Assignments": [{"MemberId": joined["MemberId"], "Assignment": odd.encode() + b"\xff\0"}]},
                f"text {index}: syncs")
            side.ask("DescribeGroups", 5, {"Groups": [group]}, f"text {index}: is described")
            heartbeat(side, 4, group, joined["GenerationId"], f"m{odd}", f"text {index}: beats as another")
            side.ask("SyncGroup", min(version, 5), {
                "GroupId": group, "GenerationId": joined["GenerationId"], "MemberId": f"m{odd}",
                "ProtocolType": f"t{odd}", "ProtocolName": f"p{odd}"}, f"text {index}: syncs as another")
            leave(side, 5, group, {"MemberId": f"m{odd}"}, {"MemberId": "", "GroupInstanceId": f"i{odd}"},
                  {"MemberId": joined["MemberId"], "Reason": odd}, label=f"text {index}: leave")


@script("OffsetCommit", "OffsetFetch", "OffsetDelete", "DescribeGroups", "DeleteGroups", "FindCoordinator", *MEMBERSHIP)
def many_at_once(side):
    topic_id = side.topic("of-many", 2)
    known, many = ("of-many", topic_id), 2_000
    joined = join(side, 5, "many")
    sync(side, 3, "many", joined)
    leave(side, 3, "many", *[f"nobody-{index}" for index in range(many)], label="many leave that are not there")
    leave(side, 3, "many", *[{"MemberId": "", "GroupInstanceId": f"i{index}"} for index in range(many)],
          label="many instances leave that are not there")
    heartbeat(side, 3, "many", joined["GenerationId"], joined["MemberId"])
    side.ask("DescribeGroups", 5, {"Groups": [f"none-{index}" for index in range(many)]}, "many groups")
    side.ask("DeleteGroups", 2, {"GroupsNames": [f"none-{index}" for index in range(many)]}, "many groups")
    side.ask("FindCoordinator", 4, {"CoordinatorKeys": [f"none-{index}" for index in range(many)]}, "many groups")
    side.ask("OffsetCommit", 8, commit_values("many-simple", [(*known, index, index) for index in range(many)]),
             "many partitions, two of them known")
    side.ask("OffsetCommit", 8, commit_values("many-simple", [
        (f"nobody-{index}", STRANGE_ID, 0, 1) for index in range(many)]), "many unknown topics")
    side.ask("OffsetCommit", 8, commit_values("many-simple", [(*known, 0, index) for index in range(many)]),
             "a partition many times")
    fetch(side, 7, "many-simple", [(*known, range(many))], "many partitions")
    fetch(side, 9, "many-simple", None, "all")
    side.ask("OffsetFetch", 8, {"Groups": [{"GroupId": f"none-{index}", "Topics": None} for index in range(many)]},
             "many groups")
    side.ask("OffsetDelete", 0, {"GroupId": "many-simple", "Topics": [{"Name": "of-many", "Partitions": [
        {"PartitionIndex": index % 50} for index in range(many)]}]}, "many partitions, each many times")
    fetch(side, 9, "many-simple", None, "all after that")


@script(*MEMBERSHIP)
def large_members(side):
    for version in (0, 4, side.versions("JoinGroup")[-1]):
        def ask(label, group, number=version, **values):
            return join(side, number, f"large-{number}-{group}", label=label, **values)
        for size in (100, 250):
            ask(f"metadata of {size} KiB", size, protocols=[{"Name": "range", "Metadata": b"m" * size * KIB}])
        ask("a thousand protocols", "protocols", protocols=[{"Name": f"p{index}", "Metadata": b""} for index in range(1000)])
        ask("a rebalance timeout of 0", "timeout-0", RebalanceTimeoutMs=0)
        ask("a negative rebalance timeout", "timeout-negative", RebalanceTimeoutMs=-5)
    for version in (0, side.versions("SyncGroup")[-1]):
        for size in (100, 250):
            group = f"large-assignment-{version}-{size}"
            joined = join(side, 5, group, label=f"{size} KiB: joins")
            sync(side, version, group, joined, [{"MemberId": joined["MemberId"], "Assignment": b"a" * size * KIB}],
                 f"assignment of {size} KiB")
            heartbeat(side, 3, group, joined["GenerationId"], joined["MemberId"], f"after {size} KiB")
        group = f"many-assignments-{version}"
        joined = join(side, 5, group, label="many: joins")
        sync(side, version, group, joined, [{"MemberId": f"nobody-{index}", "Assignment": b"a"} for index in range(2000)],
             "assignments of many who are not there")
        sync(side, version, group, joined, [], "what it got")


@script(*MEMBERSHIP)
def too_large_members(side):
    """What no broker stores: Kafka's own limit is what one message of its offsets topic may hold."""
    large = b"m" * 2000 * KIB
    for version in (0, side.versions("SyncGroup")[-1]):
        group = f"too-large-assignment-{version}"
        joined = join(side, 5, group, label="joins")
        sync(side, version, group, joined, [{"MemberId": joined["MemberId"], "Assignment": large}], "assignment of 2000 KiB")
        heartbeat(side, 3, group, joined["GenerationId"], joined["MemberId"], "after an assignment of 2000 KiB")
    for version in (0, 4, side.versions("JoinGroup")[-1]):
        side.ask("JoinGroup", version, join_values(f"too-large-{version}", protocols=[{"Name": "range", "Metadata": large}]),
                 "metadata of 2000 KiB")
