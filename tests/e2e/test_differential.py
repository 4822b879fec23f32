"""The same requests to Apache Kafka 4.4.0 and to varve: what differs is listed in docs/differences.md, or a failure.

    python3 tests/e2e/compare_with_kafka.py    does the same by hand, for all or some of the scripts
"""

import unittest
from collections import Counter

from differential import comparison, run, served
from differential.side import BROKE, HANGS, NO_API
from harness import messages
from harness.places import TOOLS, mode
from harness.wire import Connection

REQUESTS_MIN = 100
KINDS_SHOWN = 30


@unittest.skipIf(mode() == "quick", "needs Apache Kafka, which a quick run does not bring")
class Differential(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert (TOOLS / "kafka" / "stamp").exists(), "tests/e2e/setup.sh --kafka brings Apache Kafka"
        kafka, varve = run.brokers()
        with kafka, varve:
            kafka.start()
            varve.start()
            records = run.play_both(kafka, varve)
            cls.versions = {}
            for broker in (kafka, varve):
                with Connection(broker.port) as connection:
                    cls.versions[broker.name] = connection.api_versions()[1]
        cls.broken = [step.answer for side in records for step in side if step.label.startswith(BROKE)]
        cls.hangs = [step for step in records[1] if step.answer == HANGS]
        cls.rows = comparison.listed()
        cls.requests, cls.listed, cls.new = Counter(), Counter(), []
        for step, differences in comparison.compare(*records):
            cls.requests[step.api] += 1
            for difference in differences:
                row = next((row for row in cls.rows if row.covers(difference)), None)
                if row is None:
                    cls.new.append(difference)
                else:
                    row.used += 1
                    cls.listed[step.api] += 1

    def test_each_request_is_answered_as_by_apache_kafka_or_the_difference_is_listed(self):
        new = Counter(difference.step.api for difference in self.new)
        for api in sorted(self.requests):
            print(f"    {api}: {self.requests[api]} requests, {new[api]} differences, {self.listed[api]} listed")
        kinds = list(comparison.describe(self.new))
        self.assertFalse(kinds, f"{len(kinds)} kinds of difference:\n" + "\n".join(kinds[:KINDS_SHOWN]))

    def test_no_script_broke(self):
        """Not even in the same way on both sides: what stands behind was not compared then."""
        self.assertEqual([], self.broken)

    def test_nothing_hangs(self):
        """Not even where Apache Kafka does."""
        self.assertEqual([], [f"{step.api} {step.version} [{step.name}]" for step in self.hangs])

    def test_at_least_100_requests_are_sent_for_each_api(self):
        few = {api: self.requests[api] for api in served.of_varve() if self.requests[api] < REQUESTS_MIN}
        self.assertEqual({}, few)

    def test_each_listed_difference_is_there(self):
        unused = [f"line {row.line}: {row.api} {row.path} {row.when}" for row in self.rows
                  if not row.used and row.api in (*served.of_varve(), NO_API)]
        self.assertEqual([], unused, f"in {comparison.DOCUMENT}")

    def test_the_versions_of_apache_kafka_are_listed_and_served(self):
        kafka, varve = self.versions["kafka"], self.versions["varve"]
        self.assertEqual(set(served.of_varve()), {api for api, (key, _, _) in served.KAFKA.items() if key in varve})
        for api, (key, lowest, highest) in served.KAFKA.items():
            self.assertEqual((lowest, highest), kafka[key], f"{api} of Apache Kafka")
            if key in varve:
                # Produce 0 to 2 are listed and refused by both.
                ours = (0, highest) if api == "Produce" else messages.versions(api)
                print(f"    {api}: varve {ours[0]}-{ours[1]}, Apache Kafka {lowest}-{highest}")
                self.assertEqual(ours, varve[key], api)
                self.assertEqual(highest, ours[1], api)
                self.assertLessEqual(ours[0], lowest, api)
