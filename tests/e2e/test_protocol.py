"""What the wire shows when requests are wrong, damaged, early or many. Holds for Apache Kafka too, where noted."""

import struct
import time

from harness import wire
from harness.one_broker import OneBroker
from harness.wire import batch


class Wire(OneBroker):
    CONNECTION_SECONDS = 10

    def topic(self, connection, partitions=1):
        """A new topic that is ready to be written to."""
        return self.make_topic(connection, self.id().rpartition(".")[2], partitions, {})

    def test_a_batch_with_a_flipped_bit_is_refused_and_nothing_of_it_stored(self):
        connection = self.connect()
        topic = self.topic(connection)
        good = batch([b"a value that is whole"])
        for position in (21, 30, 60, len(good) - 2):  # in the header behind the checksum, and in the record
            bad = bytearray(good)
            bad[position] ^= 4
            error, _ = connection.produce(topic, 0, bytes(bad))
            self.assertEqual(wire.CORRUPT_MESSAGE, error, f"bit at {position}")
        self.assertEqual((0, 0), connection.list_offset(topic, 0))
        self.assertEqual((0, 0), connection.produce(topic, 0, good))
        self.assertEqual([b"a value that is whole"], wire.values_of(connection.fetch(topic, 0, 0)[2]))

    def test_messages_of_the_old_formats_are_refused_as_kafka_refuses_them(self):
        connection = self.connect()
        topic = self.topic(connection)
        for magic in (0, 1):
            error, _ = connection.produce(topic, 0, wire.old_message(b"old", magic))
            self.assertEqual(87, error)  # INVALID_RECORD
        self.assertEqual((0, 0), connection.list_offset(topic, 0))

    def test_an_unknown_api_closes_the_connection_and_no_other(self):
        other, connection = self.connect(), self.connect()
        connection.send(9999, 0, b"")
        self.assertTrue(connection.is_closed())
        self.assertEqual(0, other.api_versions()[0])

    def test_an_unknown_version_closes_the_connection_but_of_api_versions(self):
        connection = self.connect()
        connection.send(wire.METADATA, 999, b"")
        self.assertTrue(connection.is_closed())
        connection = self.connect()
        error, apis = connection.api_versions(version=99)
        self.assertEqual(wire.UNSUPPORTED_VERSION, error)
        self.assertIn(wire.API_VERSIONS, apis)
        self.assertEqual(0, connection.api_versions()[0], "the connection stays")

    def test_produce_before_version_3_is_listed_and_refused(self):
        connection = self.connect()
        self.assertEqual(0, connection.api_versions()[1][wire.PRODUCE][0])
        connection.send(wire.PRODUCE, 2, struct.pack(">hii", -1, 1000, 0))
        try:
            connection.receive()
        except EOFError:
            pass  # a hang-up is Kafka's answer to a version that it only lists
        self.assertEqual(0, self.connect().api_versions()[0])

    def test_a_frame_of_an_impossible_size_closes_the_connection(self):
        for size in (-1, 2_000_000_000):
            connection = self.connect()
            connection.socket.sendall(struct.pack(">i", size) + b"x" * 100)
            self.assertTrue(connection.is_closed(), f"size {size}")
        self.assertEqual(0, self.connect().api_versions()[0])

    def test_bytes_that_are_no_request_close_the_connection(self):
        for body in (b"", b"\0", struct.pack(">hhi", wire.METADATA, 4, 1) + b"\x7f\xff" + b"name",
                     struct.pack(">hhih", wire.METADATA, 4, 1, -1) + struct.pack(">i", 2_000_000_000)):
            connection = self.connect()
            connection.socket.sendall(struct.pack(">i", len(body)) + body)
            self.assertTrue(connection.is_closed(), body)
        self.assertEqual(0, self.connect().api_versions()[0])

    def test_replies_come_in_the_order_of_the_requests(self):
        connection = self.connect()
        topic = self.topic(connection, 3)
        sent = []
        for index in range(60):
            if index % 7 == 3:
                sent.append(connection.send(wire.API_VERSIONS, 0, b""))
            elif index % 7 == 5:
                sent.append(connection.send_fetch([(topic, 0, 0)], max_wait_ms=20))
            else:
                sent.append(connection.send_produce(topic, index % 3, batch([b"%d" % index])))
        self.assertEqual(sent, [connection.receive()[0] for _ in sent])

    def test_a_pipelined_request_sees_what_the_produce_before_it_did(self):
        connection = self.connect()
        topic = self.topic(connection)
        for count in range(1, 20):
            connection.send_produce(topic, 0, batch([b"x"]))
            connection.send_fetch([(topic, 0, count - 1)], max_wait_ms=0, min_bytes=0)
            self.assertEqual((0, count - 1), connection.read_produce(connection.receive()[1]))
            error, _, records = connection.read_fetch(connection.receive()[1])[topic, 0]
            self.assertEqual((0, [b"x"]), (error, wire.values_of(records)))

    def test_without_acks_there_is_no_reply_and_the_record_is_there(self):
        connection = self.connect()
        topic = self.topic(connection)
        for index in range(10):
            connection.send_produce(topic, 0, batch([b"%d" % index]), acks=0)
        self.assertEqual(0, connection.api_versions()[0], "the next reply is that of the next request")
        self.wait_for(lambda: connection.list_offset(topic, 0) == (0, 10))
        self.assertEqual([b"%d" % index for index in range(10)], wire.values_of(connection.fetch(topic, 0, 0)[2]))

    def test_a_waiting_fetch_is_woken_by_any_of_its_partitions(self):
        connection, other = self.connect(), self.connect()
        topic = self.topic(connection, 3)
        connection.send_fetch([(topic, partition, 0) for partition in range(3)], max_wait_ms=8000)
        time.sleep(0.2)
        began = time.monotonic()
        self.assertEqual((0, 0), other.produce(topic, 2, batch([b"wake up"])))
        found = connection.read_fetch(connection.receive()[1])
        self.assertLess(time.monotonic() - began, 3)
        self.assertEqual([b"wake up"], wire.values_of(found[topic, 2][2]))

    def test_a_fetch_without_data_ends_after_its_wait(self):
        connection = self.connect()
        topic = self.topic(connection)
        began = time.monotonic()
        self.assertEqual((0, 0, b""), connection.fetch(topic, 0, 0, max_wait_ms=400))
        self.assertGreater(time.monotonic() - began, 0.35)
        self.assertLess(time.monotonic() - began, 3)

    def test_a_fetch_past_the_end_is_out_of_range(self):
        connection = self.connect()
        topic = self.topic(connection)
        self.assertEqual(wire.OFFSET_OUT_OF_RANGE, connection.fetch(topic, 0, 5)[0])

    def test_an_unknown_topic_is_said_to_be_unknown(self):
        connection = self.connect()
        self.assertEqual(wire.UNKNOWN_TOPIC_OR_PARTITION, connection.produce("never-made", 0, batch([b"x"]))[0])
        self.assertEqual(wire.UNKNOWN_TOPIC_OR_PARTITION, connection.fetch("never-made", 0, 0)[0])
        self.assertEqual(wire.UNKNOWN_TOPIC_OR_PARTITION, connection.list_offset("never-made", 0)[0])
        self.assertEqual(wire.UNKNOWN_TOPIC_OR_PARTITION, connection.metadata("never-made", create=False))
