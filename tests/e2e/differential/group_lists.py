"""DescribeGroups, ListGroups, DeleteGroups."""

from differential.groups import MEMBERSHIP, join, join_values, leave, sync
from differential.offsets import ODD_GROUPS, commit_values
from differential.scripts import script


def describe(side, version, label, *groups, **values):
    return side.ask("DescribeGroups", version, {"Groups": list(groups), **values}, label)


@script("DescribeGroups", "OffsetCommit", *MEMBERSHIP)
def describing(side):
    topic_id = side.topic("described", 1)
    for version in side.versions("DescribeGroups"):
        def ask(label, *groups, number=version, **values):
            return describe(side, number, label, *groups, **values)
        group = f"described-{version}"
        ask("nothing")
        ask("unknown", group)
        ask("empty id", "")
        ask("operations of an unknown one", group, IncludeAuthorizedOperations=True)
        for index, odd in enumerate(ODD_GROUPS):
            ask(f"group {index}", odd)
        side.ask("OffsetCommit", 8, commit_values(group, [("described", topic_id, 0, 1)]), "commit")
        ask("simple", group)
        wanted = side.ask("JoinGroup", 5, join_values(group), "wants an id")
        ask("with a pending member", group)
        joined = join(side, 5, group, wanted["MemberId"], "joins")
        ask("before sync", group)
        sync(side, 3, group, joined)
        ask("stable", group)
        ask("operations", group, IncludeAuthorizedOperations=True)
        ask("twice", group, group)
        ask("known, unknown, empty", group, "none", "")
        second = join(side, 5, group + "-static", label="static joins", GroupInstanceId="i1",
                      protocols=[{"Name": "range", "Metadata": b"\0\xff"}])
        ask("static before sync", group + "-static")
        sync(side, 3, group + "-static", second, label="static syncs", GroupInstanceId="i1")
        ask("static", group + "-static")
        third = side.ask("JoinGroup", 5, join_values(group), "third wants an id", on="b")
        waits = side.send("JoinGroup", 5, join_values(group, third["MemberId"]), "third joins", on="b")
        side.wait_for(lambda: side.quietly("DescribeGroups", 0, {"Groups": [group]})["Groups"][0][
            "GroupState"] == "PreparingRebalance")
        ask("rebalancing", group)
        leave(side, 3, group, joined["MemberId"])
        side.receive(waits)
        ask("second alone before sync", group)
        leave(side, 3, group, third["MemberId"], label="third leaves")
        ask("empty", group)


@script("ListGroups", "OffsetCommit", *MEMBERSHIP, first=True)
def listing(side):
    topic_id = side.topic("listed", 1)

    def ask_all(label):
        for version in side.versions("ListGroups"):
            side.ask("ListGroups", version, {}, label)
    ask_all("before all")
    side.ask("OffsetCommit", 8, commit_values("listed-simple", [("listed", topic_id, 0, 1)]), "commit")
    ask_all("a simple one")
    joined = join(side, 5, "listed-stable")
    ask_all("one before sync")
    sync(side, 3, "listed-stable", joined)
    empty = join(side, 5, "listed-empty", label="join and leave", ProtocolType="connect")
    leave(side, 3, "listed-empty", empty["MemberId"])
    ask_all("stable and empty")
    for version in side.versions("ListGroups"):
        for states in (["Stable"], ["Empty"], ["stable"], ["EMPTY", "Stable"], ["Dead"], ["PreparingRebalance"],
                       ["CompletingRebalance"], ["NoSuchState"], [""], ["Stable", "Stable"], ["Assigning"]):
            side.ask("ListGroups", version, {"StatesFilter": states}, f"states {states}")
            if version >= 5:
                side.ask("ListGroups", version, {"StatesFilter": states, "TypesFilter": ["classic"]},
                         f"classic, states {states}")
        if version >= 5:
            for types in (["classic"], ["Classic"], ["consumer"], ["share"], ["no-such-type"], [""], ["classic", "consumer"],
                          ["streams"], ["CLASSIC", "share"]):
                side.ask("ListGroups", version, {"TypesFilter": types}, f"types {types}")
    side.ask("DeleteGroups", 2, {"GroupsNames": ["listed-simple"]}, "delete one")
    ask_all("after a deletion")
    leave(side, 3, "listed-stable", joined["MemberId"])
    ask_all("after the last left")


@script("DeleteGroups", "OffsetCommit", *MEMBERSHIP)
def deleting_groups(side):
    topic_id = side.topic("group-of-deleted", 1)
    for version in side.versions("DeleteGroups"):
        def ask(label, *groups, number=version):
            return side.ask("DeleteGroups", number, {"GroupsNames": list(groups)}, label)

        def commit(group):
            side.ask("OffsetCommit", 8, commit_values(group, [("group-of-deleted", topic_id, 0, 1)]), "commit")
        group = f"deleted-{version}"
        ask("nothing")
        ask("unknown", group)
        ask("empty id", "")
        ask("unknown twice", group, group)
        for index, odd in enumerate(ODD_GROUPS):
            ask(f"unknown group {index}", odd)
            commit(odd)
            ask(f"group {index}", odd)
        commit(group)
        ask("simple", group)
        side.ask("OffsetFetch", 7, {"GroupId": group, "Topics": None}, "offsets after it")
        ask("again", group)
        commit(group)
        ask("twice", group, group)
        commit(group)
        ask("known, unknown, empty", group, "none", "")
        wanted = side.ask("JoinGroup", 5, join_values(group), "wants an id")
        ask("with a pending member", group)
        side.ask("JoinGroup", 5, join_values(group, wanted["MemberId"]), "joins after that")
        joined = join(side, 5, group + "-stable", label="joins at once")
        ask("before sync", group + "-stable")
        sync(side, 3, group + "-stable", joined)
        ask("stable", group + "-stable")
        ask("stable and unknown", group + "-stable", "none")
        leave(side, 3, group + "-stable", joined["MemberId"])
        ask("after the last left", group + "-stable")
        join(side, 5, group + "-stable", label="joins a deleted group")
