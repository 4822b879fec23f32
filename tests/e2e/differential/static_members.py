"""Static members (KIP-345), what a rebalance does to members that are slow, and to what each member offers."""

from differential.groups import MEMBERSHIP, heartbeat, join, join_values, leave, sync
from differential.offsets import commit_values
from differential.scripts import script


def wait_for_rebalance(side, group):
    side.wait_for(lambda: side.quietly("DescribeGroups", 0, {"Groups": [group]})["Groups"][0][
        "GroupState"] == "PreparingRebalance")


@script("OffsetCommit", *MEMBERSHIP)
def static_members(side):
    topic_id = side.topic("static", 1)
    for version in side.versions("JoinGroup"):
        if version < 5:
            continue
        group, other = f"static-{version}", min(version, 4)

        def ask(label, member="", instance="i1", number=version, of=group, **values):
            return side.ask("JoinGroup", number, join_values(of, member, GroupInstanceId=instance, **values), label)

        def sync_static(joined, label, instance="i1", number=version, of=group):
            return sync(side, min(number, 5), of, joined, label=label, GroupInstanceId=instance)
        joined = ask("joins")
        old, generation = joined["MemberId"], joined["GenerationId"]
        sync_static(joined, "syncs")
        heartbeat(side, other, group, generation, old, "right", instance="i1")
        heartbeat(side, other, group, generation, old, "without its instance")
        heartbeat(side, other, group, generation, "nobody", "instance with another member id", instance="i1")
        heartbeat(side, other, group, generation, "", "instance with no member id", instance="i1")
        ask("joins again with its id", old)
        ask("another id", "nobody")
        # It restarts: the same instance without a member id keeps its place, and nobody rebalances.
        again = ask("restarts")
        new = again["MemberId"]
        sync_static(again, "syncs after its restart")
        heartbeat(side, other, group, generation, old, "old id after the restart", instance="i1")
        heartbeat(side, other, group, generation, old, "old id without its instance after the restart")
        heartbeat(side, other, group, again["GenerationId"], new, "new id", instance="i1")
        ask("joins with the old id", old)
        side.ask("SyncGroup", min(version, 5), {
            "GroupId": group, "GenerationId": again["GenerationId"], "MemberId": old, "GroupInstanceId": "i1",
            "ProtocolType": "consumer", "ProtocolName": "range", "Assignments": []}, "syncs with the old id")
        for member, instance in ((old, "i1"), (new, "i1"), (new, "i2"), (new, None)):
            shown = f"{'old' if member == old else 'new'} id, instance {instance}"
            side.ask("OffsetCommit", 8, commit_values(group, [("static", topic_id, 0, 1)], again["GenerationId"], member,
                                                      GroupInstanceId=instance), f"commits with {shown}")
        again = ask("restarts with another protocol", protocols=[{"Name": "sticky", "Metadata": b"s2"}])
        sync_static(again, "syncs another protocol")
        leave(side, 5, group, {"MemberId": old, "GroupInstanceId": "i1"}, label="leaves with the old id")
        leave(side, 5, group, {"MemberId": "", "GroupInstanceId": "i1"}, label="leaves by its instance")
        leave(side, 5, group, {"MemberId": "", "GroupInstanceId": "i1"}, label="leaves by its instance again")
        joined = ask("joins an emptied group")
        sync_static(joined, "syncs in an emptied group")
        leave(side, 2, group, joined["MemberId"], label="leaves by its id, without the instance")
        ask("two instances, second", instance="i2")


@script(*MEMBERSHIP)
def restarts_of_leaders_and_followers(side):
    """Two static members; a restart of either while the group is stable."""
    for version in side.versions("JoinGroup"):
        if version < 5:
            continue
        group = f"restart-{version}"

        def ask(label, instance, number=version, member="", of=group, **values):
            return side.ask("JoinGroup", number, join_values(of, member, GroupInstanceId=instance, **values), label,
                            instance)

        def send(label, instance, number=version, member="", of=group):
            return side.send("JoinGroup", number, join_values(of, member, GroupInstanceId=instance), label, instance)
        first = ask("first joins", "a")
        waits = send("second joins", "b")
        wait_for_rebalance(side, group)
        first = ask("first joins again", "a", member=first["MemberId"])
        second = side.receive(waits)
        sync(side, min(version, 5), group, first, label="leader syncs", GroupInstanceId="a")
        sync(side, min(version, 5), group, second, [], label="follower syncs", GroupInstanceId="b")
        again = ask("follower restarts", "b")
        sync(side, min(version, 5), group, again, [], label="follower syncs after its restart", GroupInstanceId="b")
        again = ask("leader restarts", "a")
        side.ask("SyncGroup", min(version, 5), {
            "GroupId": group, "GenerationId": again["GenerationId"], "MemberId": again["MemberId"],
            "GroupInstanceId": "a", "ProtocolType": "consumer", "ProtocolName": again["ProtocolName"],
            "Assignments": []}, "leader syncs after its restart")
        leave(side, 5, group, {"MemberId": "", "GroupInstanceId": "b"}, {"MemberId": "", "GroupInstanceId": "a"},
              label="both leave")


@script(*MEMBERSHIP)
def slow_members(side):
    """Who does not join again within the rebalance timeout is out; who does not sync, too."""
    group = "slow"
    first = join(side, 5, group, RebalanceTimeoutMs=3000)
    sync(side, 3, group, first)
    wanted = side.ask("JoinGroup", 5, join_values(group, RebalanceTimeoutMs=3000), "second wants an id", on="b")
    second = side.ask("JoinGroup", 5, join_values(group, wanted["MemberId"], RebalanceTimeoutMs=3000),
                      "second joins and waits for the first in vain", on="b")
    heartbeat(side, 3, group, 1, first["MemberId"], "first is out")
    heartbeat(side, 3, group, second["GenerationId"], second["MemberId"], "second is alone")
    side.ask("JoinGroup", 5, join_values(group, first["MemberId"]), "first joins with its old id")
    # Nobody syncs in time.
    side.wait_for(lambda: side.quietly("Heartbeat", 3, {
        "GroupId": group, "GenerationId": second["GenerationId"], "MemberId": second["MemberId"]})["ErrorCode"] != 0)
    heartbeat(side, 3, group, second["GenerationId"], second["MemberId"], "second did not sync in time")
    joined = side.ask("JoinGroup", 5, join_values(group, second["MemberId"]), "second joins again")
    if joined["ErrorCode"] == 25:
        joined = join(side, 5, group, label="second begins anew")
    sync(side, 3, group, joined, label="second syncs")


@script(*MEMBERSHIP)
def choices_of_protocol(side):
    """Of what all members know, the one that most of them name first."""
    def named(*names):
        return [{"Name": name, "Metadata": name.encode()} for name in names]
    cases = {"one": [named("a")], "in common": [named("a", "b"), named("b", "c")],
             "most first": [named("a", "b"), named("b", "a"), named("b", "a")],
             "three in common": [named("x", "y", "z"), named("z", "y", "x"), named("z", "x", "y")],
             "a tie": [named("range", "sticky"), named("sticky", "range")],
             "a hundred": [named(*(f"p{index}" for index in range(100)))],
             "the empty name": [named("")], "odd names": [named("a b", "\u00e9")]}
    for label, offers in cases.items():
        group = f"choice-{label}"
        first = join(side, 5, group, label=f"{label}: first", on="0", protocols=offers[0])
        ids, waits = [first["MemberId"]], []
        for index, offer in enumerate(offers[1:], 1):
            wanted = side.ask("JoinGroup", 5, join_values(group, protocols=offer), f"{label}: {index} wants an id",
                              on=str(index))
            ids.append(wanted["MemberId"])
            waits.append(side.send("JoinGroup", 5, join_values(group, wanted["MemberId"], offer),
                                   f"{label}: {index} joins", on=str(index)))
        if waits:
            wait_for_rebalance(side, group)
            # All the others have to be there before the first closes the round.
            side.wait_for(lambda: len(side.quietly("DescribeGroups", 5, {"Groups": [group]})["Groups"][0]["Members"])
                          == len(offers))
            side.ask("JoinGroup", 5, join_values(group, ids[0], offers[0]), f"{label}: first again", on="0")
        for wait in waits:
            side.receive(wait)
    # Kafka fails inside on a name that is there twice, and never answers.
    wanted = side.ask("JoinGroup", 5, join_values("choice-twice"), "named twice: wants an id")
    side.send("JoinGroup", 5, join_values("choice-twice", wanted["MemberId"], named("a", "a")), on="twice")
    side.note("JoinGroup", 5, "a protocol named twice", answers=side.has_answer("twice", 3))
