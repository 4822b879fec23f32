"""What clients and users met in public bug reports, by the number of the case. Holds for Apache Kafka too.

Cases that need no real client are in src/broker/*_test.cc, under the same numbers.
"""

import struct
import subprocess
import time

from harness import wire
from harness.clients import CLIENTS
from harness.one_broker import OneBroker
from harness.records import draw_records
from harness.wire import batch

INVALID_REQUIRED_ACKS, UNSUPPORTED_COMPRESSION_TYPE, MESSAGE_TOO_LARGE = 21, 76, 10
FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH = 70, 71
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ATTRIBUTES_AT = 21  # in a batch


class Cases(OneBroker):
    WAIT_SECONDS = 20

    def topic(self, connection, name, partitions=1, **configs):
        return self.make_topic(connection, name, partitions, configs)

    def kcat(self, client, stdin, *arguments):
        done = subprocess.run(["kcat", "-b", self.broker.bootstrap, "-P", *arguments], input=stdin,
                              env={"PATH": "/usr/bin:/bin", **client.environment}, capture_output=True, timeout=60,
                              check=False)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_c006_librdkafka_compresses_and_the_stored_batch_says_so(self):
        connection = self.connect()
        for client in (client for client in CLIENTS if client.name.startswith("kcat")):
            for codec, number in CODECS.items():
                topic = self.topic(connection, f"c006-{client.name}-{codec}")
                self.kcat(client, b"x" * 100_000, "-t", topic, "-z", codec)
                records = connection.fetch(topic, 0, 0)[2]
                attributes, = struct.unpack_from(">h", records, ATTRIBUTES_AT)
                self.assertEqual(number, attributes & 7, (client.name, codec))
                self.assertLess(len(records), 20_000)

    def test_c018_a_producer_to_a_new_topic_makes_it(self):
        for client in CLIENTS:
            with self.subTest(client=client.name):
                topic = f"c018-{client.name}"
                records = client.sendable([record._replace(partition=0) for record in draw_records(topic, 5)])
                results = client.steps(self.broker.bootstrap).produce(topic, "none", records).run()
                self.assertEqual(list(range(5)), [record.offset for record in results["produce", topic, "none"]])

    def test_c018_asking_makes_a_topic_where_that_is_allowed(self):
        connection = self.connect()
        self.wait_for(lambda: connection.metadata("c018-t1") == wire.NONE)
        self.assertEqual(wire.UNKNOWN_TOPIC_OR_PARTITION, connection.metadata("c018-t2", create=False))
        self.assertEqual(17, connection.metadata("bad name!"))
        self.assertEqual(wire.UNKNOWN_TOPIC_OR_PARTITION, connection.metadata("c018-t2", create=False))

    def test_c029_kcat_without_acks_stores_its_messages(self):
        connection = self.connect()
        topic = self.topic(connection, "c029-kcat")
        lines = [b"message %d" % index for index in range(100)]
        for client in (client for client in CLIENTS if client.name.startswith("kcat")):
            self.kcat(client, b"\n".join(lines), "-t", topic, "-X", "acks=0")
        self.wait_for(lambda: connection.list_offset(topic, 0) == (0, 200))
        self.assertEqual(lines + lines, wire.values_of(connection.fetch(topic, 0, 0)[2]))

    def test_c029_without_acks_an_error_closes_the_connection_and_other_acks_are_refused(self):
        connection = self.connect()
        topic = self.topic(connection, "c029-raw")
        for acks in (2, -2):
            self.assertEqual((INVALID_REQUIRED_ACKS, -1), connection.produce(topic, 0, batch([b"x"]), acks=acks))
        connection.send_produce("c029-nobody", 0, batch([b"x"]), acks=0)
        self.assertTrue(connection.is_closed())
        self.assertEqual((0, 0), self.connect().list_offset(topic, 0))

    def test_c033_zstd_is_refused_before_produce_7_and_served_by_every_fetch(self):
        connection = self.connect()
        topic, copy = self.topic(connection, "c033"), self.topic(connection, "c033-copy", compression_type="zstd")
        self.kcat(CLIENTS[0], b"x" * 5000, "-t", topic, "-z", "zstd")
        records = connection.fetch(topic, 0, 0)[2]
        for version in (5, 6):
            self.assertEqual((UNSUPPORTED_COMPRESSION_TYPE, -1), connection.produce(copy, 0, records, version=version))
        self.assertEqual((0, 0), connection.produce(copy, 0, records, version=7))
        for version in (9, 10, 11):
            for name in (topic, copy):
                error, _, found = connection.fetch_session(0, -1, [(name, 0, 0)], version=version)
                self.assertEqual((0, 0), (error, found[name, 0][0]))
                self.assertEqual(CODECS["zstd"], found[name, 0][2][ATTRIBUTES_AT + 1] & 7)

    def test_c040_a_batch_that_is_too_large_fails_alone(self):
        connection = self.connect()
        topic = self.topic(connection, "c040", 2, max_message_bytes="1000")
        connection.send_produce_many(topic, [(0, batch([b"x" * 2000])), (1, batch([b"x" * 100]))])
        self.assertEqual({0: (MESSAGE_TOO_LARGE, -1), 1: (0, 0)},
                         connection.read_produce_many(connection.receive()[1]))
        self.assertEqual((0, 0), connection.produce(topic, 0, batch([b"x" * 900])))

    def test_c040_a_frame_above_the_limit_closes_its_connection(self):
        connection = self.connect()
        connection.socket.sendall(struct.pack(">i", 200 << 20))
        self.assertTrue(connection.is_closed())
        self.assertEqual(0, self.connect().api_versions()[0])

    def test_c045_a_session_keeps_what_was_asked_and_tells_what_is_news(self):
        connection = self.connect()
        topic = self.topic(connection, "c045", 3)
        for partition in range(3):
            self.assertEqual((0, 0), connection.produce(topic, partition, batch([b"first"])))
        error, session, found = connection.fetch_session(0, 0, [(topic, partition, 1) for partition in range(3)])
        self.assertEqual((0, 3), (error, len(found)))
        self.assertNotEqual(0, session)

        def step(epoch, *arguments):
            error, same, found = connection.fetch_session(session, epoch, *arguments)
            self.assertEqual((0, session), (error, same))
            return {partition: (error, wire.values_of(records)) for (_, partition), (error, _, records)
                    in found.items()}

        self.assertEqual({1: (0, [b"first"])}, step(1, [(topic, 1, 0)]))
        self.assertEqual({1: (0, [b"first"])}, step(2, (), [(topic, 2)]), "records come until they are passed")
        self.assertEqual({}, step(3, [(topic, 1, 1)]))
        self.assertEqual({}, step(4))
        for partition in range(3):
            self.assertEqual((0, 1), connection.produce(topic, partition, batch([b"second"])))
        self.assertEqual({0: (0, [b"second"]), 1: (0, [b"second"])}, step(5), "2 was forgotten")
        self.assertEqual({0: (0, [b"second"]), 1: (1, [])}, step(6, [(topic, 1, 9)]))
        self.assertEqual({1: (1, [])}, step(7, [(topic, 0, 2)]), "an error is told each time")
        self.assertEqual({1: (0, [])}, step(8, [(topic, 1, 2)]), "and that it is over")
        self.assertEqual({}, step(9))

    def test_c046_unknown_sessions_and_wrong_epochs_are_told_and_sessions_do_not_pile_up(self):
        connection = self.connect()
        topic = self.topic(connection, "c046")
        place = [(topic, 0, 0)]
        self.assertEqual((FETCH_SESSION_ID_NOT_FOUND, 0), connection.fetch_session(12345, 1)[:2])
        session = connection.fetch_session(0, 0, place)[1]
        self.assertEqual((INVALID_FETCH_SESSION_EPOCH, 0), connection.fetch_session(session, 3)[:2])
        self.assertEqual((0, session), connection.fetch_session(session, 1)[:2])
        self.assertEqual((0, 0), connection.fetch_session(0, -1, place)[:2])
        self.assertEqual((0, 0), connection.fetch_session(session, -1, place)[:2], "the last epoch ends it")
        self.assertEqual(FETCH_SESSION_ID_NOT_FOUND, connection.fetch_session(session, 2)[0])
        session = connection.fetch_session(0, 0, place)[1]
        self.assertEqual((0, 0), connection.fetch_session(session, 1, (), [(topic, 0)])[:2],
                         "without partitions it ends too")
        sessions = [connection.fetch_session(0, 0, place)[:2] for _ in range(2000)]
        self.assertEqual({0}, {error for error, _ in sessions})
        self.assertEqual((0, 0), connection.fetch(topic, 0, 0, max_wait_ms=0)[:2], "it serves on")

    def test_c047_a_consumer_beyond_the_end_goes_where_its_policy_says(self):
        connection = self.connect()
        topic = self.topic(connection, "c047")
        for offset in range(5):
            self.assertEqual((0, offset), connection.produce(topic, 0, batch([b"%d" % offset])))
        for offset in (6, -1):
            self.assertEqual(wire.OFFSET_OUT_OF_RANGE, connection.fetch(topic, 0, offset)[0])
        self.assertEqual((0, 5, b""), connection.fetch(topic, 0, 5, max_wait_ms=50))
        for client in (client for client in CLIENTS if client.resets):
            with self.subTest(client=client.name):
                results = (client.steps(self.broker.bootstrap).reset(topic, 6, "earliest")
                           .reset(topic, 6, "latest").reset(topic, 6, "none").run())
                found = [results["reset", topic, policy][0] for policy in ("earliest", "latest", "none")]
                self.assertEqual([0, 5, None], [record and record.offset for record in found])

    def test_c056_a_time_without_a_record_is_no_offset(self):
        connection = self.connect()
        empty, full = self.topic(connection, "c056-empty"), self.topic(connection, "c056-full")
        now = int(time.time() * 1000)
        self.assertEqual((0, 0), connection.produce(full, 0, batch([b"x"], timestamp=now)))
        for client in (client for client in CLIENTS if client.seeks):
            with self.subTest(client=client.name):
                results = (client.steps(self.broker.bootstrap).seek(empty, [(0, "time", now)])
                           .seek(full, [(0, "time", now + 1), (0, "time", now)]).run())
                self.assertEqual([None], results["seek", empty])
                self.assertEqual([None, 0], [record and record.offset for record in results["seek", full]])
