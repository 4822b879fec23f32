"""The parts of the harness that decide whether records are equal, tested without a broker."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from differential import comparison  # noqa: E402
from differential.side import Step  # noqa: E402
from harness import groups  # noqa: E402
from harness.kills import Outcome, violations  # noqa: E402
from harness.members import parse_event  # noqa: E402
from harness.records import as_kafka_python_sends, as_kcat_sends, difference, draw_points, draw_records  # noqa: E402
import record_lines  # noqa: E402


class Records(unittest.TestCase):
    def setUp(self):
        self.records = [record._replace(offset=index) for index, record in enumerate(draw_records("a seed", 2000))]

    def test_a_seed_draws_the_same_records_again_and_all_kinds_of_them(self):
        self.assertEqual(draw_records("a seed", 300), draw_records("a seed", 300))
        self.assertNotEqual(draw_records("a seed", 300), draw_records("another", 300))
        self.assertTrue(any(record.key is None for record in self.records))
        self.assertTrue(any(record.key == b"" for record in self.records))
        self.assertTrue(any(record.value is None for record in self.records))
        self.assertTrue(any(record.value == b"" for record in self.records))
        self.assertTrue(any(len(record.value or b"") > 40_000 for record in self.records))
        self.assertTrue(any(value is None for record in self.records for _, value in record.headers))
        self.assertTrue(any(first.timestamp > second.timestamp
                            for first, second in zip(self.records, self.records[1:])))

    def test_records_survive_the_way_through_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "records"
            record_lines.write_records(path, [*self.records, None])
            self.assertEqual([*self.records, None], record_lines.read_records(path))

    def test_a_difference_in_any_field_is_found(self):
        record = self.records[0]
        for changed in (record._replace(partition=9), record._replace(offset=9), record._replace(timestamp=9),
                        record._replace(key=b"other"), record._replace(value=b"other"),
                        record._replace(headers=(("other", None),))):
            self.assertIn("record 0", difference([record], [changed]))
        empty = record._replace(value=b"")
        self.assertIn("record 0", difference([empty], [empty._replace(value=None)]))

    def test_missing_and_surplus_records_are_found(self):
        self.assertIsNone(difference(self.records, list(self.records)))
        self.assertIn("got 1999", difference(self.records, self.records[:-1]))
        self.assertIn("got 2000", difference(self.records[:-1], self.records))

    def test_clients_that_cannot_send_everything_are_sent_what_they_can(self):
        for record in as_kcat_sends(self.records):
            self.assertTrue(record.key or record.value)
        for record in as_kafka_python_sends(self.records):
            self.assertFalse(record.key is None and record.value is None)
            self.assertNotIn(None, [value for _, value in record.headers])

    def test_a_time_between_records_points_at_the_first_that_is_not_earlier(self):
        times = (10, 30, 20, 40)
        written = [self.records[0]._replace(partition=0, offset=at, timestamp=time) for at, time in enumerate(times)]
        points, expected = draw_points("points", written, 400)
        self.assertTrue(any(record is None for record in expected))
        for (_, kind, number), record in zip(points, expected):
            if kind == "offset":
                self.assertEqual(number, record.offset)
            else:
                first = next((at for at, time in enumerate(times) if time >= number), None)
                self.assertEqual(first, record.offset if record else None)


class Kills(unittest.TestCase):
    """The judge of the kill tests sees each thing that can go wrong."""

    @staticmethod
    def records(sender, sequences):
        return [record_lines.Record(0, offset, 0, None, f"{sender}:0:{sequence}:".encode(), ())
                for offset, sequence in enumerate(sequences)]

    def test_a_run_in_order_is_right(self):
        outcome = Outcome("a", "idempotent", {(0, 0): 0, (0, 1): 1, (0, 2): -1})
        self.assertEqual([], violations([outcome], self.records("a", (0, 1, 2))))
        outcome = Outcome("a", "plain", {(0, 1): 1}, ["0 3 x"])
        self.assertEqual([], violations([outcome], self.records("a", (0, 1, 0, 1, 2))))

    def test_producers_of_one_topic_are_judged_by_their_own_records(self):
        mixed = [record._replace(offset=at) for at, record in enumerate(
            [*self.records("a", (0, 1)), *self.records("b", (0,)), *self.records("a", (2,)), *self.records("b", (1,))])]
        a, b = Outcome("a", "idempotent", {(0, 2): 3}), Outcome("b", "idempotent", {(0, 1): 4})
        self.assertEqual([], violations([a, b], mixed))
        self.assertEqual(["b: (0, 2) was acknowledged and is gone"],
                         violations([a, Outcome("b", "idempotent", {(0, 2): 3})], mixed))

    def test_what_is_wrong_is_found(self):
        for expected, outcome, sequences in (
                ("is gone", Outcome("a", "plain", {(0, 2): 2}), (0, 1)),
                ("was acknowledged at 0 and stands at [1]", Outcome("a", "plain", {(0, 1): 0}), (0, 1)),
                ("came 2 times", Outcome("a", "idempotent"), (0, 1, 1)),
                ("out of order", Outcome("a", "plain"), (0, 2, 1)),
                ("refused", Outcome("a", "idempotent", failed=["0 5 timed out"]), (0, 1)),
                ("never answered", Outcome("a", "idempotent", unanswered=["0 5 unanswered"]), (0, 1)),
                ("never answered", Outcome("a", "plain", unanswered=["0 5 unanswered"]), (0, 1))):
            with self.subTest(expected):
                wrong = violations([outcome], self.records("a", sequences))
                self.assertEqual(1, len(wrong), wrong)
                self.assertIn(expected, wrong[0])

    def test_gaps_and_foreign_records_are_found(self):
        self.assertIn("gaps", violations([Outcome("a", "plain")], self.records("a", (0, 1))[1:])[0])
        self.assertIn("a record of other", violations([Outcome("a", "plain")], self.records("other", (0,)))[0])


class Groups(unittest.TestCase):
    """The judge of the group tests sees each thing that can go wrong."""

    PLACE = ("t", 0)
    RECORDS = [record_lines.Record(0, offset, 7, None, b"%d" % offset, ()) for offset in range(6)]

    class Member:
        def __init__(self, name, *lines, killed_at=None):
            self.name, self.killed_at = name, killed_at
            self.events = [parse_event(line) for line in lines]

    def read(self, time, *offsets):
        return [f"{time}\trecord\tt\t{record_lines.to_line(self.RECORDS[offset])}" for offset in offsets]

    def judge(self, *members):
        return groups.violations({self.PLACE: self.RECORDS}, members)

    def first(self, *more, killed_at=None):
        return self.Member("a", "10\tassigned\t1\ta-1\tt:0", *self.read(11, 0, 1, 2), "12\tcommitted\tt:0:3", *more,
                           killed_at=killed_at)

    def second(self, *offsets, time=30):
        return self.Member("b", f"{time}\tassigned\t2\tb-1\tt:0", *self.read(time + 1, *offsets), f"{time + 9}\tleft")

    def test_a_partition_that_goes_from_one_to_the_other_is_right(self):
        self.assertEqual([], self.judge(self.first("20\trevoked\tt:0"), self.second(3, 4, 5)))
        self.assertEqual([], self.judge(self.first("20\tassigned\t2\ta-1\t"), self.second(3, 4, 5)))
        self.assertEqual([], self.judge(self.first("20\tleft"), self.second(3, 4, 5)))
        self.assertEqual([], self.judge(self.first(*self.read(13, 3, 4), killed_at=14), self.second(3, 4, 5)),
                         "what a killed member did not commit comes again")
        self.assertEqual([], self.judge(self.first(*self.read(13, 3, 4), killed_at=14), self.second(5)),
                         "or it did, and did not live to note it")

    def test_what_is_wrong_is_found(self):
        gone = "20\trevoked\tt:0"
        for expected, members in (
                ("nobody read 1 records, the first at 5", (self.first(gone), self.second(3, 4))),
                ("began ('t', 0) at 4, committed was 3", (self.first(gone), self.second(4, 5))),
                ("began ('t', 0) at 2, committed was 3", (self.first(gone), self.second(2, 3, 4, 5))),
                ("was had by a until 20 and by b from 19", (self.first(gone), self.second(3, 4, 5, time=19))),
                ("was had by a until inf", (self.first(), self.second(3, 4, 5))),
                ("with gaps or repeats", (self.first(gone), self.second(3, 5, 4))),
                ("with gaps or repeats", (self.first(gone), self.second(3, 4, 4, 5))),
                ("partitions that it did not have", (self.first(gone, *self.read(21, 3)), self.second(3, 4, 5)))):
            with self.subTest(expected):
                self.assertTrue(any(expected in line for line in self.judge(*members)), self.judge(*members))

    def test_a_record_that_is_not_the_partitions_is_found(self):
        other = self.RECORDS[:2] + [self.RECORDS[2]._replace(key=b"other")] + self.RECORDS[3:]
        wrong = groups.violations({self.PLACE: other}, [self.first("20\tleft"), self.second(3, 4, 5)])
        self.assertEqual(1, len(wrong), wrong)
        self.assertIn("a read Record(partition=0, offset=2", wrong[0])


class ListedDifferences(unittest.TestCase):
    HEAD = "| API | versions | field | when | Apache Kafka | varve | why |\n|---|---|---|---|---|---|---|\n"

    def rows(self, row):
        return comparison.listed(self.HEAD + row)

    def test_each_row_of_the_document_is_one_and_says_what_varve_answers(self):
        self.assertGreater(len(comparison.listed()), 20)

    def test_a_row_covers_what_it_says_and_nothing_else(self):
        row, = self.rows("| Fetch | 7+ | `*.ErrorCode` | max * | -1 | 0 | because |")

        def difference(api="Fetch", version=7, path="Responses.ErrorCode", when="max 5", kafka=-1, varve=0):
            return comparison.Difference(Step("script", when, api, version, "", {}), path, kafka, varve)
        self.assertTrue(row.covers(difference()))
        for other in (difference(api="Produce"), difference(version=6), difference(path="ErrorCode"),
                      difference(when="min 5"), difference(kafka=0), difference(varve=-1), difference(varve="absent")):
            self.assertFalse(row.covers(other), other)

    def test_a_row_that_anything_fits_is_refused(self):
        for row in ("| Fetch | all | `*.Records` | max * | * | * | because |", "| Fetch | all | * | * | -1 | 0 | because |",
                    "| Fetch | all | `*.Records` | max * | * | ** | because |", "| Fetch | all | x | y | -1 | 0 | |"):
            with self.assertRaises(AssertionError, msg=row):
                self.rows(row)


if __name__ == "__main__":
    unittest.main()
