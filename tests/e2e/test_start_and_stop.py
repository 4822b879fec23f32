"""How quickly a broker serves, and how it stops."""

import statistics
import time
import unittest

from harness import wire
from harness.broker import VarveBroker, accepts
from harness.wire import Connection, batch

START_TO_ACK_SECONDS_MAX = 0.3


class StartAndStop(unittest.TestCase):
    def setUp(self):
        self.broker = VarveBroker()
        self.addCleanup(self.broker.__exit__)

    def start_to_acknowledged(self):
        """Starts the broker and produces to the topic "first"; seconds from the start to the acknowledgement."""
        record = batch([b"first of all"])
        began = time.monotonic()
        self.broker.spawn()
        while not accepts(self.broker.port):
            self.assertIsNone(self.broker.process.poll(), self.broker.log_tail())
            self.assertLess(time.monotonic() - began, 30, self.broker.log_tail())
            time.sleep(0.002)
        with Connection(self.broker.port) as connection:
            error = connection.metadata("first")
            while error != wire.NONE or connection.produce("first", 0, record)[0] != wire.NONE:
                self.assertLess(time.monotonic() - began, 30, self.broker.log_tail())
                time.sleep(0.002)
                error = connection.metadata("first")
        return time.monotonic() - began

    def test_start_to_first_acknowledged_record_on_an_empty_folder(self):
        seconds = []
        for _ in range(5):
            with VarveBroker() as self.broker:
                seconds.append(self.start_to_acknowledged())
        # The median, because the machine may be busy with something else for one of them.
        self.assertLess(statistics.median(seconds), START_TO_ACK_SECONDS_MAX, seconds)

    def test_start_to_first_acknowledged_record_after_a_stop_and_after_a_kill(self):
        for end in (self.broker.stop, self.broker.kill):
            self.start_to_acknowledged()
            with Connection(self.broker.port) as connection:
                for index in range(300):
                    connection.send_produce("first", 0, batch([b"%d" % index] * 10))
                for _ in range(300):
                    connection.receive()
            end()
            seconds = []
            for _ in range(5):
                seconds.append(self.start_to_acknowledged())
                end()
            self.assertLess(statistics.median(seconds), START_TO_ACK_SECONDS_MAX, seconds)

    def test_sigterm_answers_what_was_asked_and_ends_with_zero(self):
        self.broker.start()
        with Connection(self.broker.port) as connection:
            self.assertEqual(wire.NONE, connection.create_topic("drain", 1))
            # The first of them wakes the idle broker, the rest wait in its buffer when the signal comes.
            for index in range(40):
                connection.send_produce("drain", 0, batch([b"%d" % index]))
            connection.receive()
            began = time.monotonic()
            self.assertEqual(0, self.broker.stop(), self.broker.log_tail())
            self.assertLess(time.monotonic() - began, 10)
            acknowledged = [0]
            for _ in range(39):
                error, offset = connection.read_produce(connection.receive()[1])
                self.assertEqual(wire.NONE, error)
                acknowledged.append(offset)
        self.assertFalse(accepts(self.broker.port))
        self.broker.start()
        with Connection(self.broker.port) as connection:
            self.assertEqual((0, 40), connection.list_offset("drain", 0))
            values = wire.values_of(connection.fetch("drain", 0, 0)[2])
        self.assertEqual([b"%d" % offset for offset in acknowledged], values)

    def test_sigterm_ends_a_broker_with_idle_connections_and_waiting_fetches_soon(self):
        self.broker.start()
        with Connection(self.broker.port) as waiting, Connection(self.broker.port):
            self.assertEqual(wire.NONE, waiting.create_topic("quiet", 1))
            waiting.send_fetch([("quiet", 0, 0)], max_wait_ms=60_000)
            time.sleep(0.2)
            began = time.monotonic()
            self.assertEqual(0, self.broker.stop(), self.broker.log_tail())
            self.assertLess(time.monotonic() - began, 10)

    def test_health_and_readiness_are_told_and_metrics_are_there(self):
        self.broker.start()
        self.assertEqual(200, self.broker.http("/healthz")[0])
        self.assertEqual(200, self.broker.http("/readyz")[0])
        status, text = self.broker.http("/metrics")
        self.assertEqual(200, status)
        self.assertIn("# TYPE ", text)
        self.assertEqual(404, self.broker.http("/nothing-here")[0])
