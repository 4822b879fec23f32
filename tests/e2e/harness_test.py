"""The parts of the harness that decide whether records are equal, tested without a broker."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

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


if __name__ == "__main__":
    unittest.main()
