"""A start that cannot be right stops, and names what is wrong."""

import os
import subprocess
import time
import unittest
from contextlib import contextmanager

from harness import wire
from harness.broker import VarveBroker
from harness.wire import Connection, batch

SOON_SECONDS = 10


@contextmanager
def tmpfs(folder, options):
    """A file system of its own on the folder; None where the machine does not allow it."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


class Settings(unittest.TestCase):
    def broker(self, **settings):
        broker = VarveBroker(settings=settings)
        self.addCleanup(broker.__exit__)
        return broker

    def assert_refuses(self, broker, *names):
        """It ends by itself, soon, not with success, and its output holds each name."""
        broker.spawn()
        code = broker.wait_for_end(SOON_SECONDS)
        self.assertIsNotNone(code, f"it runs on\n{broker.log_tail()}")
        self.assertGreater(code, 0, f"killed by a signal or happy\n{broker.log_tail()}")
        for name in names:
            self.assertIn(name, broker.log())

    def test_a_bad_value_stops_the_start_and_is_named(self):
        for name, value in (("KAFSCALE_BROKER_ADDR", "not an address"), ("KAFSCALE_BROKER_ADDR", "127.0.0.1:99999"),
                            ("KAFSCALE_METRICS_ADDR", "127.0.0.1:http"), ("KAFSCALE_SEGMENT_BYTES", "many"),
                            ("KAFSCALE_SEGMENT_BYTES", "-1"), ("KAFSCALE_FLUSH_INTERVAL_MS", "1.5"),
                            ("KAFSCALE_PRODUCE_SYNC_FLUSH", "maybe"), ("KAFSCALE_AUTO_CREATE_PARTITIONS", "0"),
                            ("KAFSCALE_LOG_LEVEL", "loud")):
            with self.subTest(name=name, value=value):
                self.assert_refuses(self.broker(**{name: value}), name)

    def test_nothing_falls_back_to_memory_in_silence(self):
        """Hosts that this build does not have are refused, not passed over."""
        for name, value in (("KAFSCALE_ETCD_ENDPOINTS", "http://127.0.0.1:1"), ("KAFSCALE_S3_BUCKET", "records")):
            with self.subTest(name=name):
                self.assert_refuses(self.broker(**{name: value}), name)

    def test_a_port_that_is_taken_stops_the_start_and_is_named(self):
        first = self.broker()
        first.start()
        self.assert_refuses(self.broker(KAFSCALE_BROKER_ADDR=first.bootstrap), str(first.port))

    def test_a_second_broker_on_a_folder_stops_and_the_first_goes_on(self):
        first, second = self.broker(), self.broker()
        first.start()
        second.data_folder = first.data_folder
        self.assert_refuses(second, str(first.data_folder))
        with Connection(first.port) as connection:
            self.assertEqual(wire.NONE, connection.create_topic("mine", 1))
            self.assertEqual((0, 0), connection.produce("mine", 0, batch([b"still here"])))

    def test_a_file_in_the_place_of_the_folder_stops_the_start_and_is_named(self):
        broker = self.broker()
        broker.data_folder.write_text("not a folder")
        self.assert_refuses(broker, str(broker.data_folder))

    def test_a_read_only_folder_stops_the_start_and_is_named(self):
        broker = self.broker()
        with tmpfs(broker.data_folder, "ro,size=1m") as mounted:
            if mounted is None:
                if os.geteuid() == 0:
                    self.skipTest("this machine allows no mount, and root writes everywhere else")
                broker.data_folder.chmod(0o500)
            self.assert_refuses(broker, str(broker.data_folder))


class FullDisk(unittest.TestCase):
    """On a small file system of its own: what is refused when it fills up, what still works, how it comes back."""

    SIZE_MIB = 320

    def setUp(self):
        self.broker = VarveBroker()
        self.addCleanup(self.broker.__exit__)

    def test_a_full_disk_refuses_produce_keeps_deleting_and_heals_by_itself(self):
        with tmpfs(self.broker.data_folder, f"size={self.SIZE_MIB}m") as mounted:
            if mounted is None:
                self.skipTest("this machine allows no mount")
            try:
                self.fill_and_heal()
            finally:
                if self.broker.process is not None:
                    self.broker.kill()

    def fill_and_heal(self):
        filler = self.broker.data_folder / "filler"
        self.broker.start()
        with Connection(self.broker.port) as connection:
            for topic in ("kept", "dropped"):
                self.assertEqual(wire.NONE, connection.create_topic(topic, 1))
                self.assertEqual((0, 0), connection.produce(topic, 0, batch([b"before"])))

            free = os.statvfs(self.broker.data_folder)
            with open(filler, "wb") as file:  # all but 30 MiB, which is less than the broker keeps for itself
                file.write(bytes(free.f_bavail * free.f_frsize - 30 * 2**20))
            acknowledged = self.produce_until(connection, lambda error: error != wire.NONE)
            self.assertIn(self.error, wire.RETRIABLE)

            self.assertEqual([b"before"], wire.values_of(connection.fetch("dropped", 0, 0)[2]), "reading goes on")
            self.assertEqual(wire.NONE, connection.delete_topic("dropped"))

            filler.unlink()
            self.produce_until(connection, lambda error: error == wire.NONE)
            end = connection.list_offset("kept", 0)[1]
            self.assertGreater(end, acknowledged)
        self.assertIsNone(self.broker.process.poll(), self.broker.log_tail())

    def produce_until(self, connection, condition):
        """Produces to "kept" until the error fits; gives the last acknowledged offset. The error is self.error."""
        last, deadline = 0, time.monotonic() + 30
        while True:
            self.error, offset = connection.produce("kept", 0, batch([bytes(1000)]))
            if self.error == wire.NONE:
                last = offset
            if condition(self.error):
                return last
            self.assertLess(time.monotonic(), deadline, f"error {self.error}\n{self.broker.log_tail()}")
            time.sleep(0.05)
