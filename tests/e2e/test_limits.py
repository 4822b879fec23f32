"""What no client can make the broker do: hold its threads, take its memory, fill its log."""

import struct
import time
import unittest
from pathlib import Path

from harness import wire
from harness.broker import VarveBroker
from harness.wire import Connection, batch


class Limits(unittest.TestCase):
    def broker(self, **settings):
        broker = VarveBroker(settings=settings)
        self.addCleanup(broker.__exit__)
        return broker.start()

    def connect(self, broker):
        connection = Connection(broker.port, 30)
        self.addCleanup(connection.__exit__)
        return connection

    @staticmethod
    def status(broker, name):
        """A number of /proc/<pid>/status, as in VmPeak (KiB) or Threads."""
        for line in Path(f"/proc/{broker.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
        raise AssertionError(f"no {name}")

    def test_waiting_fetches_hold_no_thread_and_no_other_connection(self):
        # One thread for all connections: a fetch that held it would hold everybody.
        broker = self.broker(KAFKA_NUM_NETWORK_THREADS="1")
        connection = self.connect(broker)
        for topic in ("quiet", "busy"):
            self.assertEqual(wire.NONE, connection.create_topic(topic, 1))
        threads = self.status(broker, "Threads")
        waiting = [self.connect(broker) for _ in range(300)]
        for one in waiting:
            one.send_fetch([("quiet", 0, 0)], max_wait_ms=60_000)
        time.sleep(0.5)
        self.assertEqual(threads, self.status(broker, "Threads"))
        times = []
        for offset in range(50):
            began = time.monotonic()
            self.assertEqual((0, offset), connection.produce("busy", 0, batch([b"x"])))
            self.assertEqual(0, connection.fetch("busy", 0, offset)[0])
            times.append(time.monotonic() - began)
        self.assertLess(sorted(times)[25], 0.25, "the median of a produce and a fetch")
        began = time.monotonic()
        self.assertEqual((0, 0), connection.produce("quiet", 0, batch([b"wake up"])))
        for one in waiting:
            found = one.read_fetch(one.receive()[1])
            self.assertEqual([b"wake up"], wire.values_of(found["quiet", 0][2]))
        self.assertLess(time.monotonic() - began, 10)

    def test_one_partition_with_data_among_many_without_is_answered_at_once(self):
        connection = self.connect(self.broker())
        self.assertEqual(wire.NONE, connection.create_topic("mixed", 8))
        self.assertEqual((0, 0), connection.produce("mixed", 7, batch([b"x"])))
        began = time.monotonic()
        connection.send_fetch([("mixed", partition, 0) for partition in range(8)], max_wait_ms=3_000)
        found = connection.read_fetch(connection.receive()[1])
        self.assertLess(time.monotonic() - began, 1.5)
        self.assertEqual([b"x"], wire.values_of(found["mixed", 7][2]))

    def test_an_oversized_frame_takes_no_memory_and_is_logged_once(self):
        broker = self.broker()
        self.assertEqual(0, self.connect(broker).api_versions()[0])
        peak = self.status(broker, "VmPeak")
        for size in (200 << 20, 2_000_000_000, -1):
            for _ in range(10):
                connection = self.connect(broker)
                connection.socket.sendall(struct.pack(">i", size))
                self.assertTrue(connection.is_closed(), size)
        self.assertLess(self.status(broker, "VmPeak") - peak, 64 << 10, "KiB")
        lines = [line for line in broker.log().splitlines() if "malformed frame" in line]
        self.assertEqual(1, len(lines), "of thirty within a few seconds, the first")
        self.assertIn("209715200", lines[0])
        self.assertIn("127.0.0.1", lines[0])
        self.assertIn("varve_bad_requests_total 30\n", broker.http("/metrics")[1])

    def test_a_frame_that_announces_much_takes_its_memory_from_the_budget(self):
        broker = self.broker(KAFKA_SOCKET_REQUEST_MAX_BYTES=str(16 << 20),
                             KAFKA_QUEUED_MAX_REQUEST_BYTES=str(32 << 20))
        peak = self.status(broker, "VmPeak")
        silent = [self.connect(broker) for _ in range(40)]
        for connection in silent:
            connection.socket.sendall(struct.pack(">i", 16 << 20))
        time.sleep(0.5)
        metrics = broker.http("/metrics")[1]
        self.assertIn(f"varve_request_memory_bytes {32 << 20}\n", metrics)
        self.assertLess(self.status(broker, "VmPeak") - peak, 200 << 10, "KiB; forty of them would be 640 MiB")
        for connection in silent:
            connection.socket.close()
        other = self.connect(broker)
        self.assertEqual(0, other.api_versions()[0])

    def test_a_malformed_request_is_logged_once_and_counted(self):
        broker = self.broker()
        for _ in range(5):
            connection = self.connect(broker)
            connection.send(wire.METADATA, 4, struct.pack(">i", 2_000_000_000))
            self.assertTrue(connection.is_closed())
        lines = [line for line in broker.log().splitlines() if "malformed Metadata request" in line]
        self.assertEqual(1, len(lines), broker.log_tail())
        self.assertIn("varve_bad_requests_total 5\n", broker.http("/metrics")[1])
