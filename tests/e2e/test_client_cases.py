"""Cases of docs/cases.md that need certain clients, beside those in test_cases.py. They hold for Apache Kafka too."""

import dataclasses
import json
import subprocess
import time

from harness import wire
from harness.clients import CLIENTS, client
from harness.members import Member
from harness.one_broker import OneBroker
from harness.places import E2E, TOOLS
from harness.records import draw_records
from harness.wire import batch

import record_lines


ODD_TEXTS = ("a b", "\u00e9\U0001F600", "a\nb\t", "/../", "'\"\\\\", "#?&=%00", "x" * 1000)


class ClientCases(OneBroker):
    WAIT_SECONDS = 60

    def topic(self, name, partitions=1):
        with wire.Connection(self.broker.port) as connection:
            return self.make_topic(connection, name, partitions, {})

    def produce(self, topic, partition, *values):
        with wire.Connection(self.broker.port) as connection:
            self.assertEqual(wire.NONE, connection.produce(topic, partition, batch(values))[0])

    def member(self, client_, group, *topics, **options):
        member = Member(client_, self.broker.bootstrap, group, topics, **options)
        self.addCleanup(member.remove)
        return member

    def write(self, client_, topic, codec, records):
        results = client_.steps(self.broker.bootstrap).produce(topic, codec, records).run()
        return results["produce", topic, codec]

    def read(self, client_, topic, partitions=1):
        return client_.steps(self.broker.bootstrap).consume(topic, partitions).run()["consume", topic]

    def test_c011_two_members_of_franz_go_each_get_what_the_leader_gave_them(self):
        topic = self.topic("c011", 3)
        for partition in range(3):
            self.produce(topic, partition, b"%d" % partition)
        pair = [self.member(client("franz-go"), "c011", topic, assignor="range") for _ in range(2)]
        self.wait_for(lambda: sorted(len(member.update().owned()) for member in pair) == [1, 2])
        self.wait_for(lambda: sum(len(member.update().of_kind("record")) for member in pair) >= 3)
        self.assertEqual(1, len({member.of_kind("assigned")[-1].generation for member in pair}))

    def test_c014_clients_that_guess_the_brokers_release_work_with_their_defaults(self):
        for name in ("kafka-python-old", "kafka-python-new", "aiokafka"):
            with self.subTest(client=name):
                topic = f"c014-{name}"
                record = record_lines.Record(0, -1, int(time.time() * 1000), b"key", b"value", (("a", b"b"),))
                client(name).steps(self.broker.bootstrap).create(topic, 1).run()
                self.assertEqual([record._replace(offset=0)], self.write(client(name), topic, "none", [record]))
                self.assertEqual([record._replace(offset=0)], self.read(client(name), topic))

    def test_c033_a_record_of_each_codec_is_read_by_another_client(self):
        writers = [client(name) for name in ("franz-go", "kcat-new", "java")]
        for at, writer in enumerate(writers):
            reader = writers[(at + 1) % len(writers)]
            with self.subTest(writer=writer.name, reader=reader.name):
                write, read = writer.steps(self.broker.bootstrap), reader.steps(self.broker.bootstrap)
                topics = {codec: self.topic(f"c033-{writer.name}-{codec}") for codec in record_lines.CODECS}
                for codec, topic in topics.items():
                    records = [record._replace(partition=0) for record in draw_records(topic, 20)]
                    write.produce(topic, codec, writer.sendable(records))
                    read.consume(topic, 1)
                written, found = write.run(), read.run()
                for codec, topic in topics.items():
                    self.assertEqual(written["produce", topic, codec], found["consume", topic])

    def test_c041_empty_partitions_hold_no_record_up_and_a_new_one_wakes_the_reader(self):
        topic = self.topic("c041", 3)
        self.produce(topic, 0, b"first")
        members = [self.member(client(name), f"c041-{name}", topic) for name in ("confluent-new", "franz-go", "java")]
        for number, partition in enumerate((0, 2)):
            if number > 0:
                self.produce(topic, partition, b"second")
            for member in members:
                with self.subTest(client=member.name, partition=partition):
                    self.wait_for(lambda member=member, number=number: len(member.update().of_kind("record")) > number)
                    self.assertEqual(partition, member.of_kind("record")[number].record.partition)

    def test_c051_clients_from_before_topic_ids_read_two_topics_in_one_session(self):
        topics = [self.topic("c051-one"), self.topic("c051-two")]
        expected = {(topic, index): f"{topic} {index}".encode() for topic in topics for index in range(50)}
        for topic in topics:
            self.produce(topic, 0, *(expected[topic, index] for index in range(50)))
        for name, release in (("franz-go", {"FRANZ_MAX_VERSIONS": "2.4"}), ("sarama", {"SARAMA_VERSION": "2.4.0"}),
                              ("franz-go", {"FRANZ_MAX_VERSIONS": "2.7"}), ("franz-go", {}), ("java", {})):
            with self.subTest(client=name, release=release):
                old = dataclasses.replace(client(name), environment=release)
                member = self.member(old, f"c051-{name}-{''.join(release.values())}", *topics)
                self.wait_for(lambda member=member: len(member.update().of_kind("record")) >= len(expected))
                self.assertEqual(expected, {(event.topic, event.record.offset): event.record.value
                                            for event in member.of_kind("record")})

    def test_c057_a_time_within_a_batch_finds_its_record(self):
        for codec in ("none", "gzip", "snappy"):
            topic = self.topic(f"c057-{codec}")
            records = [record_lines.Record(0, -1, time_ms, None, b"value", ()) for time_ms in range(1, 13)]
            written = self.write(client("franz-go"), topic, codec, records)
            with wire.Connection(self.broker.port) as connection:
                self.assertEqual(1, len(wire.codecs_of(connection.fetch(topic, 0, 0)[2])), "one batch")
                self.assertEqual((wire.NONE, 6), connection.list_offset(topic, 0, 7))
            for reader in (reader for reader in CLIENTS if reader.seeks):
                with self.subTest(codec=codec, client=reader.name):
                    found = reader.steps(self.broker.bootstrap).seek(topic, [(0, "time", 7)]).run()["seek", topic]
                    self.assertEqual([written[6]], found)

    def test_group_ids_and_metadata_of_odd_letters_are_data_and_topic_names_of_such_are_refused(self):
        topic = self.topic("odd")
        self.produce(topic, 0, b"value")
        refused = (*ODD_TEXTS, ".", "..", "n" * 250, "a/b", "a:b")
        wanted = {"groups": ODD_TEXTS, "metadata": ODD_TEXTS[::-1], "topics": (*refused, "n" * 249, "a.b_c-D9")}
        done = subprocess.run([TOOLS / "confluent-new" / "bin" / "python", E2E / "clients" / "odd_texts.py",
                               self.broker.bootstrap, topic], input=json.dumps(wanted), capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([list(pair) for pair in zip(ODD_TEXTS, ODD_TEXTS[::-1])], found["committed"])
        self.assertEqual({name: "TOPIC_EXCEPTION" for name in refused} | {"n" * 249: None, "a.b_c-D9": None},
                         dict(found["created"]))

    def test_members_of_groups_with_odd_ids_read_and_commit(self):
        topic = self.topic("odd-members")
        self.produce(topic, 0, b"0", b"1")
        names = ("confluent-new", "kafka-python-new", "aiokafka", "java", "franz-go", "sarama", "kafkajs")
        groups = {name: f"'{name}' \u00e9\U0001F600 /.. \"a\"" for name in names}
        members = {name: self.member(client(name), group, topic) for name, group in groups.items()}
        with wire.Connection(self.broker.port) as connection:
            for name, group in groups.items():
                with self.subTest(client=name):
                    self.wait_for(lambda of=group: connection.committed(of, topic, 1) == (wire.NONE, {(topic, 0): 2}))
                    self.assertEqual([b"0", b"1"], [event.record.value for event in members[name].update().of_kind("record")])
