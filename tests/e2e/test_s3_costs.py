"""What a bucket is asked for: that is what it costs. The proxy answers as slowly as S3 does."""

import time
import unittest
from contextlib import ExitStack

from harness import wire
from harness.broker import VarveBroker
from harness.object_store import SeaweedFS
from harness.places import mode
from harness.store_proxy import StoreProxy
from harness.uploads import Load, uploads
from harness.wire import Connection, batch

BUCKET = "records"
S3_LATENCIES = {"put_p50_ms": 50, "put_p99_ms": 150, "get_p50_ms": 25, "get_p99_ms": 80}
UPLOADS_A_SECOND_MAX = 4.5


class Costs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        store = stack.enter_context(SeaweedFS())
        store.make_bucket(BUCKET)
        cls.proxy = stack.enter_context(StoreProxy(store, **S3_LATENCIES))
        cls.broker = stack.enter_context(VarveBroker(settings=cls.proxy.settings(BUCKET))).start()

    def test_a_megabyte_a_second_costs_the_same_over_any_number_of_partitions(self):
        seconds = 4 if mode() == "quick" else 8
        loads = {partitions: Load(self.broker, partitions, record_bytes=2000).run(seconds)
                 for partitions in ((1, 1000) if mode() == "quick" else (1, 100, 1000, 10_000))}
        rates = {partitions: load.uploads_a_second for partitions, load in loads.items()}
        p99 = {partitions: load.latency_ms(99) for partitions, load in loads.items()}
        print(f"    uploads a second {rates}, p99 in ms {p99}", flush=True)
        self.assertLessEqual(max(rates.values()), UPLOADS_A_SECOND_MAX, rates)
        # A few draws of the store's latency decide a p99 of some seconds.
        self.assertLessEqual(max(p99.values()), 1.5 * min(p99.values()), p99)

    def test_a_hundred_small_requests_a_second_on_one_partition_cost_no_more(self):
        load = Load(self.broker, 1, requests_a_second=100).run(10)
        self.assertGreater(load.uploads_a_second, 0)
        self.assertLessEqual(load.uploads_a_second, UPLOADS_A_SECOND_MAX)

    def test_a_broker_without_work_uploads_nothing(self):
        time.sleep(2)  # what the tests before left
        before = uploads(self.broker), self.proxy.counts()["put"]
        time.sleep(5)
        self.assertEqual(before, (uploads(self.broker), self.proxy.counts()["put"]))

    def test_a_reader_at_the_end_costs_no_get(self):
        with Connection(self.broker.port) as writer, Connection(self.broker.port) as reader:
            self.assertEqual(wire.NONE, writer.create_topic("tail", 1))
            offset, before = 0, self.proxy.counts()["get"]
            for number in range(20):
                writer.send_produce("tail", 0, batch([b"record %d" % number]))
                error, _, records = reader.fetch("tail", 0, offset, max_wait_ms=10_000)
                self.assertEqual(wire.NONE, error)
                offset += len(wire.values_of(records))
                self.assertEqual(wire.NONE, writer.read_produce(writer.receive()[1])[0])
            self.assertEqual(20, offset)
            self.assertEqual(before, self.proxy.counts()["get"])
