"""A load spread evenly in time and over partitions, and how many uploads a second it costs."""

import re
import time

from harness import wire
from harness.wire import Connection, batch

REQUESTS_A_BURST = 10
BURST_SECONDS = 0.02


def uploads(broker):
    """WAL objects that the broker has uploaded since its start."""
    return int(re.search(r"^varve_wal_objects_total (\d+)$", broker.http("/metrics")[1], re.MULTILINE)[1])


def uploads_a_second(broker, partitions, seconds):
    """While 500 batches a second of one 100-byte record go to a new topic of so many partitions, in turn."""
    record, topic = batch([b"r" * 100]), f"spread-{partitions}"
    with Connection(broker.port) as connection:
        if connection.create_topic(topic, partitions) != wire.NONE:
            raise AssertionError(f"{topic} cannot be made")
        before, began, sent = uploads(broker), time.monotonic(), 0
        while (now := time.monotonic() - began) < seconds:
            while sent < now / BURST_SECONDS * REQUESTS_A_BURST:
                connection.send_produce(topic, sent % partitions, record)
                sent += 1
            time.sleep(BURST_SECONDS / 4)
        for _ in range(sent):
            error = connection.read_produce(connection.receive()[1])[0]
            if error != wire.NONE:
                raise AssertionError(f"a batch was refused with {error}")
        return (uploads(broker) - before) / (time.monotonic() - began)
