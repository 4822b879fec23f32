"""Consumer groups of real clients: two members share a topic, one is killed, the broker stops and is killed, all of
them leave and one comes back. Every client at the same time, each in a group and with a topic of its own, under a
steady flow of records.

The tests run in the order of their names and stand on each other: the last one judges what all members noted in all
of them. What must hold is in harness/groups.py.
"""

import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import messages, wire
from harness.broker import broker_class
from harness.clients import ClientFailed, client
from harness.feeder import Feeder
from harness.groups import violations
from harness.members import Member
from harness.places import mode
from harness.records import PARTITIONS, draw_records
from harness.wire import Connection, insist

FIRST_RECORDS = 300
# More than Apache Kafka takes for a restart.
SESSION_MS = 45_000
# The one that is killed is missed sooner; 6 s is the least that Apache Kafka allows.
SHORT_SESSION_MS = 6_000
WAIT_SECONDS = 90
# A client may lose its patience with a broker that is gone for long, as on a busy machine, and join again of its own
# accord. What the broker does to a group it does each time.
RESTARTS_MAX = 3


class Group:
    """A client in one way of using it: its group, its topic, its members past and present."""

    def __init__(self, client_name, **options):
        self.client, self.options = client(client_name), options
        self.name = "-".join((client_name, *options.values()))
        self.is_static = options.pop("instance", None) is not None
        # Whom to kill. A leader of franz-go that comes back compares its old assignment with the one that it would make
        # now, and asks for a rebalance where they differ.
        self.victim = 1 if self.is_static and client_name == "franz-go" else 0
        self.topic = f"topic-{self.name}"
        self.places = {(self.topic, partition) for partition in range(PARTITIONS)}
        self.members, self.present, self.error = [], [], None
        self.noted = None, 0  # for is_quiet

    def join(self, bootstrap, session=SESSION_MS, instance=None):
        options = {**self.options, "session": session}
        if self.is_static:
            options["instance"] = instance or f"instance-{len(self.members)}"
        member = Member(self.client, bootstrap, self.name, [self.topic], **options)
        member.instance = options.get("instance")
        self.members.append(member)
        self.present.append(member)
        return member

    def update(self):
        for member in self.present:
            member.update()
            if member.process.poll() is not None:
                raise ClientFailed(f"{member.name} ended\n{member.trouble()}")

    def is_shared(self):
        """Whether each partition has an owner, and each member has one."""
        owned = [member.owned() for member in self.present]
        return all(owned) and len(set().union(*owned)) == sum(map(len, owned)) == len(self.places)

    def is_quiet(self):
        """Whether for a second nobody noted an assignment: then all have heard of the last rebalance."""
        now = disturbances(self)
        if now != self.noted[0]:
            self.noted = now, time.monotonic()
        return time.monotonic() > self.noted[1] + 1

    def positions(self):
        positions = {}
        for member in self.members:
            for place, position in member.positions().items():
                positions[place] = max(positions.get(place, 0), position)
        return positions

    def trouble(self):
        return "\n".join(f"--- {member.name}, killed at {member.killed_at}\n{member.trouble()}" for member in self.present)


def groups():
    quick = [Group("confluent-new", assignor="cooperative"), Group("java"), Group("franz-go"), Group("kafka-python-new"),
             Group("sarama", instance="static")]
    if mode() == "quick":
        return quick
    return quick + [
        Group("confluent-new"), Group("confluent-new", instance="static"), Group("confluent-old"),
        Group("confluent-old", assignor="cooperative"), Group("kafka-python-old"), Group("aiokafka"),
        Group("java", assignor="cooperative"), Group("java", instance="static"), Group("franz-go", assignor="range"),
        Group("franz-go", instance="static"), Group("sarama"), Group("kafkajs")]


class Groups(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = broker_class()()
        cls.addClassCleanup(cls.broker.__exit__)
        cls.broker.start()
        cls.groups = groups()
        cls.addClassCleanup(lambda: [member.remove() for group in cls.groups for member in group.members])
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(cls.write_first, cls.groups))
        cls.feeder = Feeder(cls.broker, [group.topic for group in cls.groups])
        cls.addClassCleanup(cls.feeder.end)
        cls.feeder.start()

    @classmethod
    def write_first(cls, group):
        """Records of all kinds, as the client itself writes them."""
        records = group.client.sendable(draw_records(group.topic, FIRST_RECORDS))
        (group.client.steps(cls.broker.bootstrap).create(group.topic, PARTITIONS)
         .produce(group.topic, group.client.codecs[-1], records).run())

    def each(self, check, groups=None):
        """Calls check(group) for each group until it is true for all; each is a subtest, and one that failed is left out
        of the tests to come."""
        waiting = {group: check for group in (groups or self.groups) if group.error is None}
        deadline = time.monotonic() + WAIT_SECONDS
        while waiting and time.monotonic() < deadline:
            for group in list(waiting):
                try:
                    group.update()
                    if check(group):
                        del waiting[group]
                except (ClientFailed, AssertionError) as error:
                    group.error = str(error)
                    del waiting[group]
            time.sleep(0.05)
        for group in waiting:
            group.error = f"it did not come true in {WAIT_SECONDS} s\n{group.trouble()}"
        for group in self.groups:
            if group.error is not None and not getattr(group, "is_told", False):
                group.is_told = True
                with self.subTest(group=group.name):
                    self.fail(f"{group.name}: {group.error}")

    def healthy(self):
        """The groups that have not failed in this test or one before; none is a failure of this one too."""
        healthy = [group for group in self.groups if group.error is None]
        self.assertTrue(healthy, "every group has failed before")
        return healthy

    def ends(self, group):
        with Connection(self.broker.port) as connection:
            return {(topic, partition): connection.list_offset(topic, partition)[1] for topic, partition in group.places}

    def wait_until_read(self, groups=None):
        """Until all that is there now has been read."""
        ends = {group: self.ends(group) for group in (groups or self.healthy())}
        self.each(lambda group: all(group.positions().get(place, 0) >= end for place, end in ends[group].items()), groups)

    def test_1_two_members_share_the_partitions(self):
        static = [group for group in self.groups if group.is_static]
        for group in self.groups:
            if group.is_static:
                # When it is killed it is to be back in time, however slow the machine is.
                group.join(self.broker.bootstrap)
            else:
                group.join(self.broker.bootstrap, SHORT_SESSION_MS)
                group.join(self.broker.bootstrap)
        # The first to come leads the group.
        self.each(lambda group: group.present[0].owned() == group.places, static)
        for group in static:
            group.join(self.broker.bootstrap)
        self.each(Group.is_shared)
        self.wait_until_read()

    def test_2_when_one_is_killed_the_other_takes_over(self):
        """But a static member that is back in time has what it had, and the other one is not disturbed."""
        self.each(Group.is_quiet)
        rebalances = {}
        for group in self.healthy():
            killed = group.present.pop(group.victim)
            killed.kill()
            rebalances[group] = len(group.present[0].of_kind("assigned"))
            if group.is_static:
                group.join(self.broker.bootstrap, instance=killed.instance)
        self.each(lambda group: group.is_shared() if group.is_static else group.present[0].owned() == group.places)
        self.wait_until_read()
        for group in self.healthy():
            if group.is_static:
                with self.subTest(group=group.name):
                    self.assertEqual(rebalances[group], len(group.present[0].of_kind("assigned")))
                    self.assertEqual(killed_places(group), group.present[1].owned())

    def test_3_members_go_on_over_restarts_of_the_broker(self):
        for group in self.healthy():
            if not group.is_static:
                group.join(self.broker.bootstrap)
        self.each(Group.is_shared)
        for end in (self.broker.stop, self.broker.kill):
            # Apache Kafka takes many seconds, after which more clients join again.
            disturbed = [group for group in self.healthy() if self.broker.name == "varve" and not group.client.rejoins]
            for _ in range(RESTARTS_MAX):
                self.each(Group.is_quiet)
                before = {group: disturbances(group) for group in self.healthy()}
                end()
                self.broker.start()
                self.wait_for_records()
                self.wait_until_read()
                disturbed = [group for group in disturbed if before.get(group) != disturbances(group)]
                if not disturbed:
                    break
            for group in disturbed:
                with self.subTest(group=group.name, end=end.__name__):
                    self.assertEqual(before[group], disturbances(group), group.trouble())

    def test_4_who_comes_back_begins_at_the_committed_offsets(self):
        with ThreadPoolExecutor(len(self.groups)) as pool:
            leavers = {member: pool.submit(member.leave) for group in self.healthy() for member in group.present}
        for group in self.healthy():
            with self.subTest(group=group.name):
                for member in group.present:
                    leavers[member].result()
                self.remove_static(group)
            group.present.clear()
        committed = {group: self.committed(group) for group in self.healthy()}
        self.wait_for_records()
        for group in self.healthy():
            with self.subTest(group=group.name):
                self.assertEqual(group.positions(), committed[group])
            group.join(self.broker.bootstrap)
        self.wait_until_read()
        for group in self.healthy():
            with self.subTest(group=group.name):
                self.assertEqual(committed[group], first_offsets(group.present[0]))

    def remove_static(self, group):
        """Those keep their places until their sessions end, which takes long, or until an administrator removes them."""
        members = [{"MemberId": "", "GroupInstanceId": member.instance} for member in group.present if group.is_static]
        if members:
            with Connection(self.broker.port) as connection:
                error = insist(lambda: messages.ask(connection, "LeaveGroup", 5, {
                    "GroupId": group.name, "Members": members})["ErrorCode"])
            self.assertEqual(wire.NONE, error)

    def test_5_nothing_was_lost_and_each_partition_had_one_owner(self):
        self.feeder.end()
        self.wait_until_read()
        for group in self.healthy():
            group.present[0].tell_to_leave()
        reader = client("franz-go").steps(self.broker.bootstrap)
        for group in self.groups:
            reader.consume(group.topic, PARTITIONS)
        results = reader.run()
        for group in self.healthy():
            with self.subTest(group=group.name):
                group.present[0].leave()
                truth = {place: [] for place in group.places}
                for record in group.client.sees(results["consume", group.topic]):
                    truth[group.topic, record.partition].append(record)
                self.assertEqual([], violations(truth, group.members), group.trouble())

    def wait_for_records(self):
        """Until the feeder has written to each partition."""
        before = {group: self.ends(group) for group in self.groups}
        deadline = time.monotonic() + WAIT_SECONDS
        while any(end <= before[group][place] for group in self.groups for place, end in self.ends(group).items()):
            self.assertLess(time.monotonic(), deadline, self.broker.log_tail())
            time.sleep(0.05)

    def committed(self, group):
        """{(topic, partition): offset} by OffsetFetch."""
        with Connection(self.broker.port) as connection:
            error, found = insist(lambda: connection.committed(group.name, group.topic, PARTITIONS))
            self.assertEqual(wire.NONE, error)
            return found


def disturbances(group):
    """How often its members were assigned partitions, and were refused a commit."""
    return [[len(member.of_kind(kind)) for kind in ("assigned", "refused")] for member in group.present]


def killed_places(group):
    """What the member that was killed last had."""
    return next(member for member in reversed(group.members) if member.killed_at is not None).owned()


def first_offsets(member):
    """{(topic, partition): the offset of the first record that it read}."""
    first = {}
    for event in member.of_kind("record"):
        first.setdefault((event.topic, event.record.partition), event.record.offset)
    return first
