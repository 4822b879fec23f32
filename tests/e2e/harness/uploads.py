"""A load spread evenly in time and over partitions, what it costs in requests of the store, and how long it takes."""

import re
import threading
import time
from contextlib import ExitStack

from harness import wire
from harness.wire import Connection, batch

PAUSE_SECONDS = 0.005
CONNECTIONS = 8


def metric(broker, line):
    """The value of a metric, named with its labels as on the page."""
    return float(re.search(rf"^{re.escape(line)} (\S+)$", broker.http("/metrics")[1], re.MULTILINE)[1])


def uploads(broker):
    """WAL objects that the broker has uploaded since its start."""
    return int(metric(broker, "varve_wal_objects_total"))


class Load:
    """Produce requests of one batch of one record, acks=all, to the partitions of a new topic in turn.

    Over a few connections, since a broker takes no more than so many unanswered requests of each. Run by run(); then
    `uploads_a_second` and `latencies`, seconds from sending each to its answer.
    """

    def __init__(self, broker, partitions, requests_a_second=500, record_bytes=100):
        self._broker, self._partitions, self._rate = broker, partitions, requests_a_second
        self._record = batch([b"r" * record_bytes])
        self._topic = f"spread-{partitions}-{requests_a_second}-{record_bytes}"
        self._sent_at, self._failure = [], None
        self.latencies, self.uploads_a_second = [], 0.0

    def run(self, seconds):
        with ExitStack() as stack:
            connections = [stack.enter_context(Connection(self._broker.port)) for _ in range(CONNECTIONS)]
            if connections[0].create_topic(self._topic, self._partitions) != wire.NONE:
                raise AssertionError(f"{self._topic} cannot be made")
            before, began = uploads(self._broker), time.monotonic()
            requests = int(self._rate * seconds) // CONNECTIONS * CONNECTIONS
            readers = [threading.Thread(target=self._read, args=(connection, range(at, requests, CONNECTIONS)), daemon=True)
                       for at, connection in enumerate(connections)]
            for reader in readers:
                reader.start()
            while (sent := len(self._sent_at)) < requests and self._failure is None:
                now = time.monotonic()
                if sent >= (now - began) * self._rate:
                    time.sleep(PAUSE_SECONDS)
                    continue
                self._sent_at.append(now)
                connections[sent % CONNECTIONS].send_produce(self._topic, sent % self._partitions, self._record)
            for reader in readers:
                reader.join()
            if self._failure is not None:
                raise self._failure
            self.uploads_a_second = (uploads(self._broker) - before) / (time.monotonic() - began)
        return self

    def _read(self, connection, numbers):
        try:
            for number in numbers:
                error = connection.read_produce(connection.receive()[1])[0]
                if error != wire.NONE:
                    raise AssertionError(f"a batch was refused with {error}")
                self.latencies.append(time.monotonic() - self._sent_at[number])
        except (AssertionError, OSError, EOFError) as failure:
            self._failure = failure

    def latency_ms(self, per_cent):
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, len(ordered) * per_cent // 100)]
