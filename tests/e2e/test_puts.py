"""How many uploads a load costs: they depend on time and bytes, not on how many partitions the records go to."""

import re
import time
import unittest

from harness import wire
from harness.broker import VarveBroker
from harness.places import mode
from harness.wire import Connection, batch

# A setting as for a distant object store, so that the interval and not the folder's speed decides.
INTERVAL_MS = 100
REQUESTS_A_BURST = 10
BURST_SECONDS = 0.02


class Puts(unittest.TestCase):
    def setUp(self):
        self.broker = VarveBroker(settings={"DISKLESS_APPEND_COMMIT_INTERVAL_MS": str(INTERVAL_MS)})
        self.addCleanup(self.broker.__exit__)
        self.broker.start()

    def uploads(self):
        return int(re.search(r"^varve_wal_objects_total (\d+)$", self.broker.http("/metrics")[1], re.MULTILINE)[1])

    def uploads_a_second(self, partitions, seconds):
        """Produces small batches, evenly in time and over the partitions of one topic."""
        record = batch([b"r" * 100])
        with Connection(self.broker.port) as connection:
            topic = f"spread-{partitions}"
            self.assertEqual(wire.NONE, connection.create_topic(topic, partitions))
            before, began, sent = self.uploads(), time.monotonic(), 0
            while (now := time.monotonic() - began) < seconds:
                while sent < now / BURST_SECONDS * REQUESTS_A_BURST:
                    connection.send_produce(topic, sent % partitions, record)
                    sent += 1
                time.sleep(BURST_SECONDS / 4)
            for _ in range(sent):
                self.assertEqual(wire.NONE, connection.read_produce(connection.receive()[1])[0])
            return (self.uploads() - before) / (time.monotonic() - began)

    def test_uploads_a_second_are_the_same_at_1_100_and_1000_partitions(self):
        seconds = 2 if mode() == "quick" else 6
        rates = {partitions: self.uploads_a_second(partitions, seconds) for partitions in (1, 100, 1000)}
        self.assertGreater(min(rates.values()), 0, rates)
        # Never more than one an interval on average; what an idle broker sends at once comes on top.
        most = 1.05 * 1000 / INTERVAL_MS + 3 / seconds
        self.assertLessEqual(max(rates.values()), most, rates)
        self.assertLessEqual(max(rates.values()), 1.25 * min(rates.values()), rates)
