"""A bucket that is slow, wrong or away, under real producers: nothing acknowledged is lost, and it heals by itself."""

import random
import re
import subprocess
import time
import unittest
from contextlib import ExitStack

import test_kill
from harness import wire
from harness.broker import VarveBroker
from harness.clients import CLIENTS
from harness.kills import violations
from harness.numbered_producer import NumberedProducer
from harness.object_store import SeaweedFS
from harness.store_proxy import StoreProxy
from harness.wire import Connection, batch

BUCKET = "records"
# Of a thousand requests.
FAULTS = {"throttled": 20, "failed": 20, "reply_lost": 20, "error_after": 20, "stalled": 2, "cut": 10}
LATENCIES = {"put_p50_ms": 10, "put_p99_ms": 60, "get_p50_ms": 5, "get_p99_ms": 30}

PROGRESS_SECONDS_MAX = 30
REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR = 7, 56


class Kill(test_kill.Kill):
    """kill -9 as of a broker on a folder, while one request in ten goes wrong."""

    def broker(self, stack):
        store = stack.enter_context(SeaweedFS())
        store.make_bucket(BUCKET)
        proxy = stack.enter_context(StoreProxy(store, seed=random.randrange(1 << 32), **FAULTS, **LATENCIES))
        return stack.enter_context(VarveBroker(settings=proxy.settings(BUCKET)))


class Outage(unittest.TestCase):
    """A store that is away for a while, under producers on one partition."""

    def test_a_store_that_throttles_everything_for_14_s_under_8_producers(self):
        self.outage(14, 8, lambda store, proxy: proxy.set(throttled=1000), lambda store, proxy: proxy.set(throttled=0))

    def test_a_store_that_does_what_it_is_asked_and_does_not_answer(self):
        self.outage(5, 2, lambda store, proxy: proxy.set(stalled=1000), lambda store, proxy: proxy.set(stalled=0))

    def test_a_store_that_is_killed_and_comes_back(self):
        self.outage(3, 2, lambda store, proxy: store.kill(), lambda store, proxy: store.start())

    def test_c119_a_store_that_finds_the_clock_wrong(self):
        self.outage(3, 2, lambda store, proxy: proxy.set(skewed=1000), lambda store, proxy: proxy.set(skewed=0))

    def outage(self, seconds, number_of_producers, begin, end):
        with ExitStack() as stack:
            store = stack.enter_context(SeaweedFS())
            store.make_bucket(BUCKET)
            proxy = stack.enter_context(StoreProxy(store, **LATENCIES))
            broker = stack.enter_context(VarveBroker(settings=proxy.settings(BUCKET)))
            broker.start()
            with Connection(broker.port) as connection:
                self.assertEqual(wire.NONE, connection.create_topic("t", 1))
            producers = [stack.enter_context(NumberedProducer(broker, f"producer{number}", "t", 1, kind, 50))
                         for number, kind in enumerate(("idempotent", "plain") * (number_of_producers // 2))]
            self.wait_for_more_than(broker, 100)
            begin(store, proxy)
            time.sleep(seconds)
            before = self.records(broker)
            end(store, proxy)
            self.wait_for_more_than(broker, before + 100)
            outcomes = [producer.finish() for producer in producers]
            broker.kill()
            broker.start()
            reader = next(client for client in CLIENTS if client.name == "confluent-new")
            records = reader.steps(broker.bootstrap).consume("t", 1).run()["consume", "t"]
            self.assertTrue(all(outcome.acknowledged for outcome in outcomes))
            self.assertEqual([], violations(outcomes, records), broker.log_tail())

    def records(self, broker):
        with Connection(broker.port) as connection:
            return connection.list_offset("t", 0)[1]

    def wait_for_more_than(self, broker, records):
        deadline = time.monotonic() + PROGRESS_SECONDS_MAX
        while self.records(broker) <= records:
            self.assertLess(time.monotonic(), deadline, broker.log_tail())
            time.sleep(0.1)


class Throttled(unittest.TestCase):
    def test_c111_a_store_that_throttles_is_waited_for_at_the_start_and_written_to_later(self):
        with ExitStack() as stack:
            store = stack.enter_context(SeaweedFS())
            store.make_bucket(BUCKET)
            proxy = stack.enter_context(StoreProxy(store, throttled=1000))
            broker = stack.enter_context(VarveBroker(settings=proxy.settings(BUCKET)))
            broker.spawn()
            self.assertIsNone(broker.wait_for_end(8), broker.log_tail())
            proxy.set(throttled=0)
            deadline = time.monotonic() + PROGRESS_SECONDS_MAX
            while not broker.is_ready():
                self.assertLess(time.monotonic(), deadline, broker.log_tail())
                time.sleep(0.05)
            proxy.set(throttled=400, failed=400)
            with Connection(broker.port) as connection:
                self.assertEqual(wire.NONE, connection.create_topic("t", 1))
                sent = [b"%d" % number for number in range(8)]
                for value in sent:
                    while (error := connection.produce("t", 0, batch([value]))[0]) != wire.NONE:
                        self.assertIn(error, (REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR))
                # What timed out was stored nevertheless, perhaps, and came again.
                self.assertEqual(sent, list(dict.fromkeys(wire.values_of(connection.fetch("t", 0, 0)[2]))))


class WrongBodies(unittest.TestCase):
    def test_short_and_corrupt_bodies_are_read_again_and_never_served(self):
        with ExitStack() as stack:
            store = stack.enter_context(SeaweedFS())
            store.make_bucket(BUCKET)
            proxy = stack.enter_context(StoreProxy(store))
            # Short, so that there are many objects to read.
            settings = {**proxy.settings(BUCKET), "DISKLESS_APPEND_COMMIT_INTERVAL_MS": "5"}
            broker = stack.enter_context(VarveBroker(settings=settings))
            broker.start()
            text = "".join(f"record {number} {'.' * 1000}\n" for number in range(3000))
            kcat = lambda *arguments, **options: subprocess.run(
                ["kcat", "-b", broker.bootstrap, *arguments, "-t", "t"], capture_output=True, text=True, check=True,
                timeout=120, **options).stdout
            kcat("-P", "-X", "batch.num.messages=50", input=text)
            # Its cache is empty then.
            broker.kill()
            broker.start()
            proxy.set(corrupted=300, cut=100)
            # -E: what stays spoiled over all attempts is an error, which a client is to try again.
            self.assertEqual(text, kcat("-C", "-o", "beginning", "-e", "-q", "-E"))
            corrupt = re.search(r"^varve_corrupt_reads_total (\d+)$", broker.http("/metrics")[1], re.MULTILINE)
            self.assertGreater(int(corrupt[1]), 0, "the proxy spoiled nothing that was read")
