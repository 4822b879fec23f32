"""A broker begins from a snapshot of the metadata and the log behind it. What if snapshots are damaged?"""

import re
import shutil
import struct
import time
import unittest

from harness import wire
from harness.broker import VarveBroker
from harness.wire import Connection, batch

SNAPSHOTS_KEPT = 3
DEADLINE_SECONDS = 60


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.chmod(0o644)
    path.write_bytes(data)


class Snapshots(unittest.TestCase):
    def setUp(self):
        self.broker = VarveBroker(settings={"KAFKA_METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS": "1024"})
        self.addCleanup(self.broker.__exit__)
        self.values = []
        self.broker.start()
        with Connection(self.broker.port) as connection:
            self.assertEqual(wire.NONE, connection.create_topic("kept", 1))
            deadline = time.monotonic() + DEADLINE_SECONDS
            # One more than are kept: by then the log is trimmed.
            seen = set()
            while len(seen) <= SNAPSHOTS_KEPT:
                self.assertLess(time.monotonic(), deadline, f"{len(seen)} snapshots\n{self.broker.log_tail()}")
                self.produce(connection)
                seen.update(self.manifests())
            self.produce(connection)
        self.broker.stop()

    def produce(self, connection):
        for _ in range(10):
            value = b"value %d" % len(self.values)
            self.assertEqual((wire.NONE, len(self.values)), connection.produce("kept", 0, batch([value])))
            self.values.append(value)

    def objects(self, pattern):
        return sorted((self.broker.data_folder / "objects" / "default" / "_log").glob(pattern))

    def manifests(self):
        """Their names begin with the log position: the newest is the last."""
        return self.objects("snapshots/*/*")

    def newest_manifest(self):
        return self.manifests()[-1]

    def newest_own_chunk(self):
        """A chunk that the newest snapshot wrote itself; it has some, for counters and brokers."""
        position = self.newest_manifest().name.split("-")[0]
        return next(path for path in self.objects("chunks/*/*") if path.name.split("-")[1] == position)

    def assert_everything_is_there(self):
        self.broker.start()
        with Connection(self.broker.port) as connection:
            read = []
            while len(read) < len(self.values):
                error, _, records = connection.fetch("kept", 0, len(read))
                self.assertEqual(wire.NONE, error)
                values = wire.values_of(records)
                self.assertTrue(values, f"{len(read)} of {len(self.values)}")
                read += values
        self.assertEqual(self.values, read)

    def test_a_damaged_newest_snapshot_leaves_the_one_before_and_the_log(self):
        for newest in (self.newest_own_chunk, self.newest_manifest):
            with self.subTest(newest.__name__):
                path = newest()
                damage(path)
                self.assert_everything_is_there()
                self.assertIn(path.name, self.broker.log_of_last_start(), "what is damaged is named")
                self.broker.stop()

    def test_if_all_are_damaged_the_start_is_refused_and_says_what_is_and_how_to_go_on(self):
        manifests = self.manifests()
        self.assertGreaterEqual(len(manifests), SNAPSHOTS_KEPT)
        for path in manifests:
            shutil.copy(path, path.with_name("copy-of-" + path.name))
            damage(path)
        self.broker.spawn()
        code = self.broker.wait_for_end(30)
        self.assertEqual(1, code, self.broker.log_tail())
        for path in manifests[-SNAPSHOTS_KEPT:]:
            self.assertIn(path.name, self.broker.complaint())
        self.assertIn("Put the named objects back", self.broker.complaint())
        for path in manifests:
            path.with_name("copy-of-" + path.name).replace(path)
        self.assert_everything_is_there()

    def inspected(self, *arguments):
        code, text, error = self.broker.inspect("snapshot", *arguments)
        self.assertEqual(0, code, error)
        return text

    def assert_is(self, manifest, text):
        """The text tells what the bytes of the manifest do, read by hand from docs/formats/snapshot_manifest.md."""
        data = manifest.read_bytes()
        position, predecessor, state_hash, chunks = struct.unpack_from(">QQQB", data, 27)
        self.assertLess(chunks, 128, "a count of one byte")
        lines = text.splitlines()
        self.assertTrue(lines[0].endswith(
            f" at position {position}, predecessor {predecessor}, state hash {state_hash:016x}"), lines[0])
        for line in lines[1:1 + chunks]:
            key, size = re.fullmatch(r"  chunk (\S+) bytes=(\d+) hash=[0-9a-f]{16}", line).groups()
            self.assertIn(key.encode(), data)
            self.assertEqual(int(size), (self.broker.data_folder / "objects" / key).stat().st_size)
        self.assertTrue(lines[1 + chunks].startswith(f"state at position {position}: "), lines[1 + chunks])
        self.assertTrue(lines[1 + chunks].endswith(f" hash={state_hash:016x}"), lines[1 + chunks])
        self.assertIn('  topic "kept" ', text)

    def test_inspect_prints_the_newest_or_a_named_one_and_a_stray_file_changes_nothing(self):
        oldest, newest = self.manifests()[0], self.newest_manifest()
        self.assertNotEqual(oldest, newest)
        text = self.inspected("--data-dir", self.broker.data_folder)
        self.assert_is(newest, text)
        for stray in (newest.with_name("copy-of-" + oldest.name), newest.with_name("f" * len(newest.name)),
                      newest.parent.with_name("copy-of-" + newest.parent.name) / ("f" * 16 + "-" + "0" * 16)):
            stray.parent.mkdir(exist_ok=True)
            shutil.copy(oldest, stray)
        self.assertEqual(text, self.inspected("--data-dir", self.broker.data_folder))
        self.assert_is(oldest, self.inspected(oldest, "--data-dir", self.broker.data_folder))

    def test_inspect_sees_damage_and_what_is_missing(self):
        chunk = self.newest_own_chunk()
        damage(chunk)
        self.assert_inspect_refuses("the chunks make no state")
        chunk.unlink()
        self.assert_inspect_refuses(chunk.name)
        damage(self.newest_manifest())
        self.assert_inspect_refuses(self.newest_manifest().name)

    def assert_inspect_refuses(self, named):
        code, _, error = self.broker.inspect("snapshot", "--data-dir", self.broker.data_folder)
        self.assertEqual(1, code)
        self.assertTrue(error.startswith("varve inspect: "), error)
        self.assertIn(named, error)
