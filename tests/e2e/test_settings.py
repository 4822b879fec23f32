"""A start that cannot be right stops, and names what is wrong."""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

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


_LIBC = ctypes.CDLL(None, use_errno=True)


def own_network():
    """For a child before its program starts: a network with a loopback interface and nothing else."""
    new_user, new_network = 0x10000000, 0x40000000
    if _LIBC.unshare(new_network | (new_user if os.geteuid() != 0 else 0)) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    set_flags, up_and_running = 0x8914, 0x41
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14x", b"lo", up_and_running))


def can_have_own_network():
    try:
        return subprocess.run(["/bin/true"], preexec_fn=own_network, check=False).returncode == 0
    except subprocess.SubprocessError:
        return False


def as_bound_by_permissions():
    """For a child before its program starts: permissions hold for it even if it is root."""
    drop, override, read_search = 24, 1, 2
    for capability in (override, read_search):
        _LIBC.prctl(drop, capability, 0, 0, 0)


class Settings(unittest.TestCase):
    def broker(self, **settings):
        broker = VarveBroker(settings=settings)
        self.addCleanup(broker.__exit__)
        return broker

    def assert_refuses(self, broker, *names):
        """It ends by itself, soon, not with success, and its complaint holds each name."""
        broker.spawn()
        code = broker.wait_for_end(SOON_SECONDS)
        self.assertIsNotNone(code, f"it runs on\n{broker.log_tail()}")
        self.assertGreater(code, 0, f"killed by a signal or happy\n{broker.log_tail()}")
        for name in names:
            self.assertIn(name, broker.complaint())

    def test_a_bad_value_stops_the_start_and_is_named(self):
        for name, value in (("KAFSCALE_BROKER_ADDR", "not an address"), ("KAFSCALE_BROKER_ADDR", "127.0.0.1:99999"),
                            ("KAFSCALE_METRICS_ADDR", "127.0.0.1:http"), ("KAFSCALE_SEGMENT_BYTES", "many"),
                            ("KAFSCALE_SEGMENT_BYTES", "-1"), ("KAFSCALE_FLUSH_INTERVAL_MS", "1.5"),
                            ("KAFSCALE_PRODUCE_SYNC_FLUSH", "maybe"), ("KAFSCALE_AUTO_CREATE_PARTITIONS", "0"),
                            ("KAFSCALE_LOG_LEVEL", "loud")):
            with self.subTest(name=name, value=value):
                self.assert_refuses(self.broker(**{name: value}), name)

    def test_nothing_falls_back_to_memory_in_silence(self):
        """A host that this build does not have is refused, not passed over; so is a bucket without a key for it."""
        for name, value, named in (("KAFSCALE_ETCD_ENDPOINTS", "http://127.0.0.1:1", "KAFSCALE_ETCD_ENDPOINTS"),
                                   ("KAFSCALE_S3_BUCKET", "records", "KAFSCALE_S3_ACCESS_KEY")):
            with self.subTest(name=name):
                self.assert_refuses(self.broker(**{name: value}), named)

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
        broker.data_folder.mkdir()
        broker.data_folder.chmod(0o500)
        broker.preexec = as_bound_by_permissions
        self.assert_refuses(broker, str(broker.data_folder))

    def test_a_read_only_file_system_stops_the_start_and_is_named(self):
        broker = self.broker()
        with tmpfs(broker.data_folder, "ro,size=1m") as mounted:
            if mounted is None:
                self.skipTest("this machine allows no mount")
            self.assert_refuses(broker, str(broker.data_folder))

    def test_a_folder_that_became_read_only_after_a_run_stops_the_next_start(self):
        broker = self.broker()
        broker.start()
        broker.stop()
        folders = [broker.data_folder, *(path for path in broker.data_folder.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o500)
        self.addCleanup(lambda: [folder.chmod(0o700) for folder in folders])
        broker.preexec = as_bound_by_permissions
        self.assert_refuses(broker, str(broker.data_folder))

    def test_a_file_sets_by_either_name_and_the_environment_wins(self):
        broker = self.broker(KAFSCALE_AUTO_CREATE_TOPICS="true")
        file = broker.folder / "varve.properties"
        file.write_text("# for a test\nnum.partitions=3\nauto.create.topics.enable=false\n"
                        "KAFSCALE_LOG_LEVEL=info\ndiskless.append.commit.interval.ms=7\n")
        broker.arguments = ("--config", str(file))
        broker.start()
        with Connection(broker.port) as connection:
            self.assertEqual(wire.NONE, connection.metadata("made"), "the environment allows it")
            for partition, error in ((2, wire.NONE), (3, wire.UNKNOWN_TOPIC_OR_PARTITION)):
                self.assertEqual(error, connection.list_offset("made", partition)[0])
        self.assertIn("diskless.append.commit.interval.ms", broker.log(), "what was set is told at the start")

    def test_a_file_with_a_mistake_or_without_a_reader_stops_the_start_and_is_named(self):
        for text, named in (("num.partitons=3\n", "num.partitons"), ("num.partitions=many\n", "num.partitions"),
                            (None, "nowhere.properties")):
            with self.subTest(text=text):
                broker = self.broker()
                file = broker.folder / ("varve.properties" if text else "nowhere.properties")
                if text:
                    file.write_text(text)
                broker.arguments = ("--config", str(file))
                self.assert_refuses(broker, named)

    def test_log_lines_are_json_where_that_is_asked_for(self):
        broker = self.broker(KAFSCALE_LOG_FORMAT="json", KAFSCALE_LOG_LEVEL="debug", KAFSCALE_TRACE_KAFKA="true")
        broker.start()
        with Connection(broker.port) as connection:
            self.assertEqual(wire.NONE, connection.create_topic("logged", 1))
            connection.socket.sendall(struct.pack(">i", -1))
            self.assertTrue(connection.is_closed())
        self.assertEqual(0, broker.stop())
        # The one line on standard output says where it serves.
        lines = [json.loads(line) for line in broker.log().splitlines() if " serves Kafka on " not in line]
        for line in lines:
            self.assertTrue({"time", "level", "component", "message"} <= set(line), line)
        made, = (line for line in lines if line["message"] == "topic created")
        self.assertEqual("logged", made["topic"])
        bad, = (line for line in lines if "malformed frame" in line["message"])
        self.assertEqual("warn", bad["level"].lower())
        self.assertIn("peer", bad)


class Addresses(unittest.TestCase):
    """What a start listens on, read from the kernel's tables."""

    @staticmethod
    def listening(process):
        """{(address, port)} that the process's network has listeners on, as in /proc/net/tcp."""
        found = set()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                if state == "0A":
                    address, port = local.split(":")
                    found.add((address, int(port, 16)))
        return found

    def start(self, isolated, **settings):
        broker = VarveBroker(settings=settings)
        self.addCleanup(broker.__exit__)
        broker.preexec = own_network if isolated else None
        broker.spawn()
        return broker

    def wait_for(self, broker, condition):
        deadline = time.monotonic() + 20
        while not condition():
            self.assertIsNone(broker.process.poll(), broker.log_tail())
            self.assertLess(time.monotonic(), deadline, broker.log_tail())
            time.sleep(0.02)

    def test_addresses_that_are_not_set_are_loopback_9092_and_9093(self):
        if not can_have_own_network():
            self.skipTest("this machine gives no network of its own")
        broker = self.start(True, KAFSCALE_BROKER_ADDR="", KAFSCALE_METRICS_ADDR="")
        self.wait_for(broker, lambda: len(self.listening(broker.process)) >= 2)
        self.assertEqual({("0100007F", 9092), ("0100007F", 9093)}, self.listening(broker.process))

    def test_a_port_alone_is_every_interface(self):
        broker = self.start(False)
        broker.kill()
        broker.settings["KAFSCALE_BROKER_ADDR"] = f":{broker.port}"
        broker.spawn()
        self.wait_for(broker, broker.is_ready)
        mine = {address for address, port in self.listening(broker.process) if port == broker.port}
        self.assertEqual(1, len(mine), mine)
        self.assertEqual({"0"}, set(mine.pop()), "not 0.0.0.0 or ::")
        metrics = {address for address, port in self.listening(broker.process) if port == broker.metrics_port}
        self.assertEqual({"0100007F"}, metrics, "the one that was given")


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
