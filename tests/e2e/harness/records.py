"""Records to produce, drawn from a seed, and what a client has to see of them."""

import random
import time

from harness import places  # noqa: F401  (makes record_lines importable)
from record_lines import Record

PARTITIONS = 3
# Recent, or a broker's default retention would be right to delete them.
_BASE_TIMESTAMP = int(time.time() * 1000) - 3_600_000
_WORDS = "order created for customer in region with a total of and was then shipped by the carrier".split()


def draw_records(seed, count):
    """`count` records over three partitions: null, empty, small and large keys and values, headers with null values
    and repeated names, timestamps that mostly rise but step back now and then."""
    draw = random.Random(seed)
    return [Record(draw.randrange(PARTITIONS), -1, _timestamp(draw, index), _key(draw, index), _value(draw, index),
                   _headers(draw)) for index in range(count)]


def as_kcat_sends(records):
    """The same records as far as kcat can express them: text, no empty key or value, the headers of its driver."""
    return [record._replace(key=record.key.hex().encode() if record.key else None if record.value else b"alone",
                            value=record.value.hex().encode() if record.value else None,
                            headers=(("client", b"kcat"),)) for record in records]


def as_aiokafka_sends(records):
    """The same records as far as aiokafka takes them: a key where there is no value."""
    return [record._replace(key=b"alone" if record.key is None and record.value is None else record.key)
            for record in records]


def as_kafka_python_sends(records):
    """The same records as far as kafka-python takes them: as aiokafka, and no null headers."""
    return as_aiokafka_sends(_without_null_headers(records))


def as_kafkajs_sends(records):
    """The same records as far as kafkajs takes them: no null headers, and those of one name together."""
    return grouped_headers(_without_null_headers(records))


def _without_null_headers(records):
    return [record._replace(headers=tuple((name, value or b"") for name, value in record.headers))
            for record in records]


def grouped_headers(records):
    """Records as a client sees them that keeps headers by name: in their order only among those of one name."""
    return [record._replace(headers=tuple(sorted(record.headers, key=lambda header: _first(record, header[0]))))
            for record in records]


def _first(record, name):
    return [header[0] for header in record.headers].index(name)


def _timestamp(draw, index):
    back = draw.randrange(5000) if draw.random() < 0.02 else 0
    return _BASE_TIMESTAMP + index * 7 - back


def _key(draw, index):
    kind = draw.random()
    if kind < 0.1:
        return None
    if kind < 0.13:
        return b""
    return f"key-{index % 500}".encode() if kind < 0.95 else draw.randbytes(draw.randrange(1, 300))


def _value(draw, index):
    kind = draw.random()
    if kind < 0.08:
        return None
    if kind < 0.1:
        return b""
    if kind < 0.9:
        return f"{index} {' '.join(draw.choices(_WORDS, k=draw.randrange(3, 40)))}".encode()
    if kind < 0.999:
        return draw.randbytes(draw.randrange(1, 2000))
    return draw.randbytes(draw.randrange(50_000, 200_000))


def _headers(draw):
    headers = []
    for _ in range(draw.choice((0, 0, 1, 2, 3))):
        # No comma, equals sign or zero byte in a value: kcat prints headers as text.
        value = None if draw.random() < 0.15 else bytes(draw.choice(b"abc xyz\xff\xc3\xa9") for _ in
                                                        range(draw.randrange(1, 20)))
        headers.append((draw.choice(("trace", "source", "trace", "größe")), value))
    return tuple(headers)


def by_partition(records):
    """Records by partition, each list in the order of offsets."""
    lists = {}
    for record in sorted(records, key=lambda record: (record.partition, record.offset)):
        lists.setdefault(record.partition, []).append(record)
    return lists


def draw_points(seed, written, count):
    """Places to start reading at, by offset and by time, and the record that stands there (None: past the end).

    They come partition by partition: going to another one costs some clients a quarter of a second.
    """
    draw, partitions = random.Random(seed), by_partition(written)
    points, expected = [], []
    for number, partition in enumerate(sorted(draw.choices(sorted(partitions), k=count))):
        records = partitions[partition]
        if number % 2 == 0:
            record = draw.choice(records)
            points.append((partition, "offset", record.offset))
            expected.append(record)
        else:
            # Between, before and past all timestamps.
            time = draw.choice(records).timestamp + draw.choice((-3, 0, 0, 1))
            time = draw.choice((time, time, time, records[0].timestamp - 10**6, records[-1].timestamp + 10**6))
            points.append((partition, "time", time))
            expected.append(next((record for record in records if record.timestamp >= time), None))
    return points, expected


def difference(expected, actual):
    """None if the two lists are equal; otherwise what differs first, short enough to read."""
    for index, (want, got) in enumerate(zip(expected, actual)):
        if want != got:
            return f"record {index} of {len(expected)}: expected {_short(want)}, got {_short(got)}"
    if len(expected) != len(actual):
        return f"expected {len(expected)} records, got {len(actual)}"
    return None


def _short(record):
    text = repr(record)
    return text if len(text) < 400 else text[:400] + "..."
