"""kill -9 at random moments under real producers: nothing acknowledged is lost, nothing comes twice, the order holds."""

import os
import random
import subprocess
import time
import unittest
from contextlib import ExitStack
from pathlib import Path

from harness import wire
from harness.broker import broker_class
from harness.clients import CLIENTS
from harness.kills import violations
from harness.places import E2E, TOOLS, count
from harness.wire import Connection

PARTITIONS = 4
RECORDS_A_SECOND = 400
FIRST_RECORD_SECONDS = 60


class Producer:
    """kill_producer.py as a process."""

    def __init__(self, broker, mode):
        self.mode, self.topic = mode, f"kill-{mode}"
        self._stop, self._result = broker.folder / f"stop-{mode}", broker.folder / f"result-{mode}"
        command = [str(TOOLS / "confluent-new" / "bin" / "python"), str(E2E / "clients" / "kill_producer.py"),
                   broker.bootstrap, self.topic, str(PARTITIONS), mode, str(RECORDS_A_SECOND), str(self._stop),
                   str(self._result)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def finish(self):
        """Stops it; gives what violations() asks for, and what the producer said of itself."""
        Path(self._stop).touch()
        output, _ = self.process.communicate(timeout=300)
        acknowledged, failed, unanswered = {}, [], []
        for line in self._result.read_text().splitlines():
            partition, sequence, outcome = line.split()
            if outcome.lstrip("-").isdigit():
                acknowledged[int(partition), int(sequence)] = int(outcome)
            else:
                (unanswered if outcome == "unanswered" else failed).append(line)
        return acknowledged, failed, unanswered, output.strip()


class Kill(unittest.TestCase):
    def test_kill_9_loses_nothing_acknowledged_and_doubles_nothing(self):
        seed = int(os.environ.get("VARVE_KILL_SEED", random.randrange(1 << 32)))
        print(f"    VARVE_KILL_SEED={seed}", flush=True)
        draw = random.Random(seed)
        # The producers' files lie in the broker's folder, so that they go with it.
        with broker_class()() as broker, ExitStack() as processes:
            broker.start()
            self.create_topics(broker)
            producers = [processes.enter_context(Producer(broker, mode)) for mode in ("idempotent", "plain")]
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
            for producer, (acknowledged, failed, unanswered, said) in zip(producers, outcomes):
                with self.subTest(mode=producer.mode, said=said):
                    self.assertGreater(len(acknowledged), 0)
                    records = (reader.steps(broker.bootstrap).consume(producer.topic, PARTITIONS)
                               .run()["consume", producer.topic])
                    self.assertEqual([], violations(producer.mode, acknowledged, failed, unanswered, records),
                                     broker.log_tail())

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
