"""`varve inspect` prints what a broker stored: of a running one through its HTTP port, of a stopped one from its folder."""

import unittest

from harness import wire
from harness.broker import VarveBroker
from harness.wire import Connection, batch


class Inspect(unittest.TestCase):
    def setUp(self):
        self.broker = VarveBroker()
        self.addCleanup(self.broker.__exit__)
        self.broker.start()
        with Connection(self.broker.port) as connection:
            self.assertEqual(wire.NONE, connection.create_topic("seen", 2))
            self.assertEqual((0, 0), connection.produce("seen", 1, batch([b"a", b"b"])))

    def assert_shows_the_log(self, *arguments):
        code, text, error = self.broker.inspect("log", *arguments)
        self.assertEqual(0, code, error)
        self.assertIn("register broker=0", text)
        self.assertIn('create topic="seen"', text)
        self.assertIn("commit object=", text)
        self.assertIn("records=2", text)

    def test_the_log_of_a_running_broker_comes_through_its_http_port(self):
        self.assert_shows_the_log("--admin", f"127.0.0.1:{self.broker.metrics_port}")

    def test_the_log_of_a_stopped_broker_comes_from_its_folder(self):
        self.broker.stop()
        self.assert_shows_the_log("--data-dir", self.broker.data_folder)
        code, text, _ = self.broker.inspect("log", "--data-dir", self.broker.data_folder, "--after", 1, "--limit", 1)
        self.assertEqual(0, code)
        self.assertTrue(text.startswith("2 "), text)

    def test_the_folder_of_a_running_broker_is_left_alone(self):
        code, _, error = self.broker.inspect("log", "--data-dir", self.broker.data_folder)
        self.assertEqual(1, code)
        self.assertIn("--admin", error)

    def test_a_wal_object_is_shown_and_a_flipped_bit_in_it_is_seen(self):
        objects = [path for path in (self.broker.data_folder / "objects").glob("default/_wal/*/*") if path.is_file()]
        self.assertTrue(objects)
        code, text, error = self.broker.inspect("object", objects[0])
        self.assertEqual(0, code, error)
        self.assertIn("index=1", text)
        self.assertIn("every batch is sound", text)
        # docs/formats/wal_object.md: the header's 72 bytes, then the one batch, then the directory.
        batch_start, batch_bytes = 72, len(batch([b"a", b"b"]))
        self.assert_damage_is_seen(objects[0], batch_start + batch_bytes - 1, "DAMAGED")
        self.assert_damage_is_seen(objects[0], batch_start + batch_bytes + 1, "the directory fails its checksum")

    def assert_damage_is_seen(self, sound_object, position, message):
        damaged = self.broker.folder / "damaged"
        content = bytearray(sound_object.read_bytes())
        content[position] ^= 1
        damaged.write_bytes(content)
        code, text, error = self.broker.inspect("object", damaged)
        self.assertEqual(1, code)
        self.assertIn(message, text + error)

    def test_what_is_not_there_or_nothing_of_ours_is_said(self):
        for arguments in (("object", "/nowhere"), ("object", __file__), ("snapshot", __file__),
                          ("log", "--data-dir", "/nowhere"), ("log", "--admin", "127.0.0.1:1")):
            with self.subTest(arguments=arguments):
                code, _, error = self.broker.inspect(*arguments)
                self.assertEqual(1, code)
                self.assertIn("varve inspect: ", error)
