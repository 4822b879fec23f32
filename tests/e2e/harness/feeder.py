"""A steady flow of records for tests of readers."""

import threading

from harness.records import PARTITIONS
from harness.wire import Connection, batch

PAUSE_SECONDS = 0.1
RECORDS_A_BATCH = 3


class Feeder(threading.Thread):
    """Writes a few records to each partition of the topics, again and again, while the broker comes and goes.

    After an answer that got lost it may write some twice; what was written is read back in the end.
    """

    def __init__(self, broker, topics):
        super().__init__(daemon=True)
        self._broker, self._topics = broker, list(topics)
        self._end = threading.Event()

    def run(self):
        number, connection = 0, None
        while not self._end.wait(PAUSE_SECONDS):
            number += 1
            records = batch([b"record %d of batch %d" % (index, number) for index in range(RECORDS_A_BATCH)])
            try:
                connection = connection or Connection(self._broker.port, timeout=5)
                for topic in self._topics:
                    connection.send_produce(topic, number % PARTITIONS, records)
                for _ in self._topics:
                    connection.read_produce(connection.receive()[1])
            except (OSError, EOFError):
                connection = None

    def end(self):
        self._end.set()
        self.join()
