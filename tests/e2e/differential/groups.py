"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: members that come, stay and go."""

from differential.scripts import script

MEMBERSHIP = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")
PROTOCOLS = ({"Name": "range", "Metadata": b"r1"}, {"Name": "sticky", "Metadata": b"s1"})
JOIN_VERSIONS_WITHOUT_MEMBER_ID_REQUIRED = range(0, 4)


def join_values(group, member="", protocols=PROTOCOLS, **values):
    return {"GroupId": group, "MemberId": member, "SessionTimeoutMs": 300_000, "RebalanceTimeoutMs": 60_000,
            "ProtocolType": "consumer", "Protocols": list(protocols), **values}


def join(side, version, group, member="", label="join", on="", **values):
    """Joins, twice where the broker asks for it; the second reply."""
    reply = side.ask("JoinGroup", version, join_values(group, member, **values), label, on)
    if reply and reply["ErrorCode"] == 79:  # MEMBER_ID_REQUIRED
        reply = side.ask("JoinGroup", version, join_values(group, reply["MemberId"], **values), label + " with id", on)
    return reply


def sync(side, version, group, joined, assignments=None, label="sync", on="", **values):
    """Syncs; the leader gives each member its own id as assignment."""
    if assignments is None:
        assignments = [{"MemberId": row["MemberId"], "Assignment": b"to " + row.get("GroupInstanceId", "").encode()
                        if row.get("GroupInstanceId") else b"assigned"} for row in joined["Members"]]
    return side.ask("SyncGroup", version, {
        "GroupId": group, "GenerationId": joined["GenerationId"], "MemberId": joined["MemberId"],
        "ProtocolType": "consumer", "ProtocolName": joined["ProtocolName"], "Assignments": assignments, **values},
        label, on)


def heartbeat(side, version, group, generation, member, label="heartbeat", on="", instance=None):
    return side.ask("Heartbeat", version, {"GroupId": group, "GenerationId": generation, "MemberId": member,
                                           "GroupInstanceId": instance}, label, on)


def leave(side, version, group, *members, label="leave", on=""):
    """Each member is an id or a dict; before version 3 there is one."""
    rows = [row if isinstance(row, dict) else {"MemberId": row} for row in members]
    return side.ask("LeaveGroup", version, {"GroupId": group, "MemberId": rows[0]["MemberId"] if rows else "",
                                            "Members": rows}, label, on)


def settled(side, group, version=5, **values):
    """A group with one member that is stable: (member id, generation)."""
    joined = join(side, version, group, **values)
    sync(side, min(version, 5), group, joined)
    return joined["MemberId"], joined["GenerationId"]


@script(*MEMBERSHIP)
def one_member(side):
    """The whole life of a group of one, in each version."""
    for version in side.versions("JoinGroup"):
        group, other = f"one-{version}", min(version, 4)
        joined = join(side, version, group)
        member, generation = joined["MemberId"], joined["GenerationId"]
        heartbeat(side, other, group, generation, member, "before sync")
        synced = min(version, 5)
        sync(side, synced, group, joined)
        sync(side, synced, group, joined, label="sync again")
        heartbeat(side, other, group, generation, member, "stable")
        again = side.ask("JoinGroup", version, join_values(group, member), "join again alike")
        sync(side, synced, group, again, label="sync of the next generation")
        again = side.ask("JoinGroup", version, join_values(group, member, [{"Name": "range", "Metadata": b"new"}]),
                         "join again with other metadata")
        sync(side, synced, group, again, label="sync after other metadata")
        heartbeat(side, other, group, generation, member, "old generation")
        heartbeat(side, other, group, again["GenerationId"] + 1, member, "future generation")
        heartbeat(side, other, group, again["GenerationId"], member, "present generation")
        leave(side, synced, group, member)
        leave(side, synced, group, member, label="leave again")
        heartbeat(side, other, group, again["GenerationId"], member, "after leaving")
        join(side, version, group, label="join an emptied group")


@script("JoinGroup")
def bad_joins(side):
    for version in side.versions("JoinGroup"):
        def ask(label, number=version, **values):
            return side.ask("JoinGroup", number, {**join_values(f"bad-{number}"), **values}, label)
        ask("empty group id", GroupId="")
        ask("unknown member id", MemberId="nobody")
        ask("session too short", SessionTimeoutMs=5_999)
        ask("session too long", SessionTimeoutMs=1_800_001)
        ask("session of 0", SessionTimeoutMs=0)
        ask("negative session", SessionTimeoutMs=-1)
        ask("no protocol type", ProtocolType="")
        ask("no protocols", Protocols=[])
        ask("no protocols and no type", Protocols=[], ProtocolType="")
        ask("group id of 300 letters", GroupId="g" * 300, MemberId="nobody")
        ask("group id of odd letters", GroupId="a b/c\n\u00e9\U0001F600", MemberId="nobody")
        ask("empty group id, short session, unknown member", GroupId="", SessionTimeoutMs=1, MemberId="nobody")
        ask("short session, unknown member", SessionTimeoutMs=1, MemberId="nobody")
        if version >= 5:
            ask("empty instance id", GroupId=f"empty instance id {version}", GroupInstanceId="")
            ask("instance id of dots", GroupId=f"instance id of dots {version}", GroupInstanceId="..")
            ask("instance id with odd letters", GroupId=f"instance id with odd letters {version}", GroupInstanceId="a b")
            ask("instance id too long", GroupId=f"instance id too long {version}", GroupInstanceId="i" * 250)
            ask("unknown instance id with a member id", GroupInstanceId="i1", MemberId="nobody")


@script(*MEMBERSHIP)
def joins_that_contradict_the_group(side):
    for version in side.versions("JoinGroup"):
        group = f"contradict-{version}"
        joined = join(side, version, group, protocols=PROTOCOLS[:1])
        sync(side, 3, group, joined)
        side.ask("JoinGroup", version, join_values(group, ProtocolType="connect"), "another type")
        side.ask("JoinGroup", version, join_values(group, protocols=PROTOCOLS[1:]), "no protocol in common")
        side.ask("JoinGroup", version, join_values(group, joined["MemberId"], ProtocolType="connect"),
                 "another type, known member")
        side.ask("JoinGroup", version, join_values(group, joined["MemberId"], PROTOCOLS[1:]),
                 "another protocol, known member and alone")
        side.ask("JoinGroup", version, join_values(group, joined["MemberId"], []), "no protocols, known member")
        heartbeat(side, 3, group, joined["GenerationId"], joined["MemberId"])


@script("SyncGroup", "JoinGroup")
def bad_syncs(side):
    for version in side.versions("SyncGroup"):
        group = f"sync-{version}"
        values = {"GroupId": group, "GenerationId": 1, "MemberId": "nobody", "ProtocolType": "consumer",
                  "ProtocolName": "range", "Assignments": []}

        def ask(label, number=version, **changes):
            return side.ask("SyncGroup", number, {**values, **changes}, label)
        ask("unknown group")
        ask("empty group", GroupId="")
        ask("unknown group, no member id", MemberId="")
        ask("unknown group, generation -1", GenerationId=-1)
        joined = join(side, 5, group)
        values["MemberId"] = joined["MemberId"]
        ask("unknown member", MemberId="nobody")
        ask("old generation", GenerationId=0)
        ask("future generation", GenerationId=2)
        ask("generation -1", GenerationId=-1)
        ask("unknown member and old generation", MemberId="nobody", GenerationId=0)
        ask("another protocol type", ProtocolType="connect")
        ask("another protocol", ProtocolName="sticky")
        ask("no protocol type", ProtocolType=None)
        ask("unknown instance", GroupInstanceId="i1")
        ask("assignment for somebody else", Assignments=[{"MemberId": "nobody", "Assignment": b"x"}])
        ask("after that")
        joined = side.ask("JoinGroup", 5, join_values(group, joined["MemberId"]), "join again")
        values["GenerationId"] = joined["GenerationId"]
        ask("assignment twice", Assignments=[{"MemberId": joined["MemberId"], "Assignment": text}
                                             for text in (b"one", b"two")])
        ask("what was kept of two")
        joined = side.ask("JoinGroup", 5, join_values(group, joined["MemberId"]), "join a third time")
        values["GenerationId"] = joined["GenerationId"]
        ask("empty assignment", Assignments=[{"MemberId": joined["MemberId"], "Assignment": b""}])
        joined = side.ask("JoinGroup", 5, join_values(group, joined["MemberId"]), "join a fourth time")
        values["GenerationId"] = joined["GenerationId"]
        ask("large assignment", Assignments=[{"MemberId": joined["MemberId"], "Assignment": b"x" * 100_000}])


@script("Heartbeat", "JoinGroup", "SyncGroup")
def bad_heartbeats(side):
    for version in side.versions("Heartbeat"):
        group = f"beat-{version}"
        heartbeat(side, version, group, 1, "nobody", "unknown group")
        heartbeat(side, version, "", 1, "nobody", "empty group id")
        heartbeat(side, version, group, -1, "", "unknown group, generation -1, no member")
        member, generation = settled(side, group)
        for label, number, name in (
                ("right", generation, member), ("old generation", generation - 1, member),
                ("future generation", generation + 1, member), ("generation -1", -1, member),
                ("least generation", -2**31, member), ("greatest generation", 2**31 - 1, member),
                ("unknown member", generation, "nobody"), ("no member", generation, ""),
                ("unknown member, old generation", generation - 1, "nobody"),
                ("member id of odd letters", generation, "a b\n\u00e9"), ("right again", generation, member)):
            heartbeat(side, version, group, number, name, label)
        if version >= 3:
            heartbeat(side, version, group, generation, member, "unknown instance", instance="i1")
            heartbeat(side, version, group, generation, "nobody", "unknown instance and member", instance="i1")
            heartbeat(side, version, group, generation, member, "empty instance", instance="")


@script("LeaveGroup", "JoinGroup", "SyncGroup")
def bad_leaves(side):
    for version in side.versions("LeaveGroup"):
        group = f"leave-{version}"
        leave(side, version, group, "nobody", label="unknown group")
        leave(side, version, "", "nobody", label="empty group id")
        leave(side, version, group, "", label="unknown group, no member id")
        member, _ = settled(side, group)
        leave(side, version, group, "nobody", label="unknown member")
        leave(side, version, group, "", label="no member id")
        if version >= 3:
            leave(side, version, group, label="nobody at all")
            leave(side, version, group, "nobody", "no-one", label="two unknown")
            leave(side, version, group, {"MemberId": member, "GroupInstanceId": "i1"}, label="unknown instance")
            leave(side, version, group, {"MemberId": "", "GroupInstanceId": "i1"}, label="instance only, unknown")
            leave(side, version, group, {"MemberId": "", "GroupInstanceId": ""}, label="empty instance")
            leave(side, version, group, {"MemberId": "nobody", "Reason": "r" * 300}, label="long reason")
            leave(side, version, group, "nobody", member, member, label="unknown, right, and right again")
        else:
            leave(side, version, group, member, label="right")
        leave(side, version, group, member, label="gone already")
        heartbeat(side, 3, group, 1, member, "after leaving")
        # A member that has its id and did not join with it yet.
        asked = side.ask("JoinGroup", 5, join_values(group + "-pending"), "wants an id")
        leave(side, version, group + "-pending", asked["MemberId"], label="pending member")
        side.ask("JoinGroup", 5, join_values(group + "-pending", asked["MemberId"]), "joins after it left")


@script(*MEMBERSHIP)
def two_members(side):
    """A second member comes: the first learns it by a heartbeat, joins again, gets the leader's list."""
    for version in side.versions("JoinGroup"):
        group, synced, other = f"two-{version}", min(version, 5), min(version, 4)
        first = join(side, version, group, label="first joins", on="a")
        sync(side, synced, group, first, on="a", label="first syncs")
        second_values = join_values(group, protocols=[PROTOCOLS[0], {"Name": "other", "Metadata": b"o1"}])
        if version >= 4:
            reply = side.ask("JoinGroup", version, second_values, "second wants an id", on="b")
            heartbeat(side, other, group, 1, first["MemberId"], "a pending member is none yet", on="a")
            second_values["MemberId"] = reply["MemberId"]
        waits = side.send("JoinGroup", version, second_values, "second joins", on="b")
        side.wait_for(lambda: side.quietly("Heartbeat", 3, {
            "GroupId": group, "GenerationId": 1, "MemberId": first["MemberId"]})["ErrorCode"] == 27)
        heartbeat(side, other, group, 1, first["MemberId"], "a rebalance goes on", on="a")
        sync(side, synced, group, first, on="a", label="sync while a rebalance goes on")
        again = side.ask("JoinGroup", version, join_values(group, first["MemberId"]), "first joins again", on="a")
        joined = side.receive(waits)
        follower, leader, on = (joined, again, "b") if again["Leader"] == again["MemberId"] else (again, joined, "a")
        waits = side.send("SyncGroup", synced, {
            "GroupId": group, "GenerationId": follower["GenerationId"], "MemberId": follower["MemberId"],
            "ProtocolType": "consumer", "ProtocolName": follower["ProtocolName"]}, "follower syncs", on=on)
        heartbeat(side, other, group, 2, follower["MemberId"], "follower while it waits", on="c")
        side.ask("SyncGroup", synced, {
            "GroupId": group, "GenerationId": 2, "MemberId": leader["MemberId"], "ProtocolType": "consumer",
            "ProtocolName": leader["ProtocolName"], "Assignments": [
                {"MemberId": leader["MemberId"], "Assignment": b"\0\1leader's"},
                {"MemberId": follower["MemberId"], "Assignment": b"\xff\xfefollower's"}]}, "leader syncs", on="d")
        side.receive(waits)
        heartbeat(side, other, group, 2, follower["MemberId"], "follower is stable", on="c")
        # A follower that joins again alike gets the present generation; the leader begins a new one.
        side.ask("JoinGroup", version, join_values(group, follower["MemberId"], second_values["Protocols"]
                                                   if on == "b" else PROTOCOLS), "follower joins again alike", on="e")
        leave(side, synced, group, follower["MemberId"], label="follower leaves", on="c")
        heartbeat(side, other, group, 2, leader["MemberId"], "leader after that", on="c")
        leave(side, synced, group, leader["MemberId"], label="leader leaves", on="c")
