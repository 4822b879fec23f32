"""kill -9 at random moments under real producers: nothing acknowledged is lost, nothing comes twice, the order holds."""

import os
import random
import time
import unittest
from contextlib import ExitStack

from harness import wire
from harness.broker import broker_class
from harness.clients import CLIENTS
from harness.kills import violations
from harness.numbered_producer import NumberedProducer
from harness.places import count
from harness.wire import Connection

PARTITIONS = 4
RECORDS_A_SECOND = 400
FIRST_RECORD_SECONDS = 60


class Kill(unittest.TestCase):
    def test_kill_9_loses_nothing_acknowledged_and_doubles_nothing(self):
        seed = int(os.environ.get("VARVE_KILL_SEED", random.randrange(1 << 32)))
        print(f"    VARVE_KILL_SEED={seed}", flush=True)
        draw = random.Random(seed)
        with ExitStack() as stack:
            broker = self.broker(stack)
            broker.start()
            self.create_topics(broker)
            producers = [stack.enter_context(NumberedProducer(broker, mode, f"kill-{mode}", PARTITIONS, mode,
                                                              RECORDS_A_SECOND))
                         for mode in ("idempotent", "plain")]
            self.wait_for_records(broker, producers)
            for _ in range(count("VARVE_KILLS", 20)):
                time.sleep(draw.uniform(0.05, 0.8))
                broker.kill()
                # Now and then in the middle of its start too.
                while draw.random() < 0.2:
                    broker.spawn()
                    time.sleep(draw.uniform(0, 0.1))
                    broker.kill()
                broker.start()
            outcomes = [producer.finish() for producer in producers]
            broker.kill()
            broker.start()
            reader = next(client for client in CLIENTS if client.name == "confluent-new")
            for producer, outcome in zip(producers, outcomes):
                with self.subTest(mode=producer.mode, said=outcome.said):
                    self.assertGreater(len(outcome.acknowledged), 0)
                    records = (reader.steps(broker.bootstrap).consume(producer.topic, PARTITIONS)
                               .run()["consume", producer.topic])
                    self.assertEqual([], violations([outcome], records), broker.log_tail())

    def broker(self, stack):
        """One that the stack ends."""
        return stack.enter_context(broker_class()())

    def create_topics(self, broker):
        with Connection(broker.port) as connection:
            for mode in ("idempotent", "plain"):
                self.assertEqual(wire.NONE, connection.create_topic(f"kill-{mode}", PARTITIONS))

    def wait_for_records(self, broker, producers):
        """A kill before a producer's first record would meet nothing of it."""
        deadline = time.monotonic() + FIRST_RECORD_SECONDS
        with Connection(broker.port) as connection:
            for producer in producers:
                while not any(connection.list_offset(producer.topic, partition)[1] > 0
                              for partition in range(PARTITIONS)):
                    self.assertLess(time.monotonic(), deadline, broker.log_tail())
                    time.sleep(0.02)
