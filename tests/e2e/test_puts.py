"""How many uploads a load costs: they depend on time and bytes, not on how many partitions the records go to."""

import unittest

from harness.broker import VarveBroker
from harness.places import mode
from harness.uploads import Load

# A setting as for a distant object store, so that the interval and not the folder's speed decides.
INTERVAL_MS = 100


class Puts(unittest.TestCase):
    def test_uploads_a_second_are_the_same_at_1_100_and_1000_partitions(self):
        broker = VarveBroker(settings={"DISKLESS_APPEND_COMMIT_INTERVAL_MS": str(INTERVAL_MS)})
        self.addCleanup(broker.__exit__)
        broker.start()
        seconds = 2 if mode() == "quick" else 6
        rates = {partitions: Load(broker, partitions).run(seconds).uploads_a_second for partitions in (1, 100, 1000)}
        self.assertGreater(min(rates.values()), 0, rates)
        # Never more than one an interval on average; what an idle broker sends at once comes on top.
        most = 1.05 * 1000 / INTERVAL_MS + 3 / seconds
        self.assertLessEqual(max(rates.values()), most, rates)
        self.assertLessEqual(max(rates.values()), 1.25 * min(rates.values()), rates)
