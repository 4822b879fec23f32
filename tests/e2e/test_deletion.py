"""Objects that nothing refers to any more leave the folder, and no others do."""

import time
import unittest

from harness import wire
from harness.broker import VarveBroker
from harness.wire import Connection, batch

# The fence that must pass first rises once a minute on a folder.
PATIENCE_SECONDS = 240


class Deletion(unittest.TestCase):
    def setUp(self):
        self.broker = VarveBroker()
        self.addCleanup(self.broker.__exit__)

    def objects(self):
        folder = self.broker.data_folder / "objects" / "default" / "_wal"
        return {path.name for path in folder.glob("*/*") if path.is_file()}

    def test_a_deleted_topics_objects_go_and_those_of_others_stay(self):
        self.broker.start()
        made = {}
        with Connection(self.broker.port) as connection:
            for topic in ("gone", "kept"):
                self.assertEqual(wire.NONE, connection.create_topic(topic, 1))
                before = self.objects()
                for offset in range(5):  # one after the other, so that each has an object of its own
                    self.assertEqual((0, offset), connection.produce(topic, 0, batch([b"%d" % offset])))
                made[topic] = self.objects() - before
            self.assertEqual(5, len(made["gone"]))
            self.assertEqual(wire.NONE, connection.delete_topic("gone"))
        # A kill in between: what is to be deleted is known to the log alone.
        self.broker.kill()
        self.broker.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.objects() & made["gone"]:
            self.assertLess(time.monotonic(), deadline, self.broker.log_tail())
            time.sleep(0.5)
        self.assertEqual(made["kept"], self.objects() & made["kept"])
        with Connection(self.broker.port) as connection:
            self.assertEqual([b"%d" % offset for offset in range(5)],
                             wire.values_of(connection.fetch("kept", 0, 0)[2]))
            self.assertEqual(wire.UNKNOWN_TOPIC_OR_PARTITION, connection.fetch("gone", 0, 0)[0])
