"""The files through which the harness and the client drivers exchange records, and the steps a driver takes.

One line a record, fields parted by tabs: partition, offset, timestamp in ms, key, value, headers. Bytes are base64,
"-" is null. Headers are name:value pairs parted by commas, both base64. java/RecordLines.java, go/lines and
node/record_lines.js read and write the same.

A driver is called with the broker's address and a file of steps, one a line, fields parted by tabs:

    create   topic partitions
    produce  topic codec records-file result-file     result: the records again, with the offsets they got
    consume  topic partitions result-file             result: every record, partition by partition
    seek     topic points-file result-file            result: a record or "-" for each point
    delete   topic
    reset    topic offset policy result-file          result: where a consumer that seeks to the offset of partition 0
                                                      goes on by the policy earliest, latest or none, as the offset of
                                                      an empty record; "-": it is told an error
    member   group topics options result-file         joins the group, then reads, notes and commits each batch until
                                                      the file result-file.stop is there, and leaves the group

Topics are parted by commas, and so are options, name=value each: assignor (range, sticky, cooperative; else the client's own
choice), instance (for a static member), session (its timeout in ms). A member writes a line as things happen, which
begins with the time in ms:

    assigned   generation member-id topic:partition,...   all that it has now; "-": the client does not tell
    revoked    topic:partition,...                        what it has no more
    record     topic record
    committed  topic:partition:offset,...                 the broker has said so
    refused    text                                       a commit that the broker refused, or did not answer
    left

A point is a line of partition, "offset" or "time", number: read the one record at that offset, or the first at or
after that time.
"""

import base64
import os
import time
from typing import NamedTuple, Optional

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# How long a driver waits for anything before it gives up.
PATIENCE_SECONDS = 60


class Record(NamedTuple):
    partition: int
    offset: int
    timestamp: int
    key: Optional[bytes]
    value: Optional[bytes]
    headers: tuple  # of (name, bytes or None)


def _text(data):
    return "-" if data is None else base64.b64encode(data).decode()


def _bytes(text):
    return None if text == "-" else base64.b64decode(text)


def to_line(record):
    headers = ",".join(f"{_text(name.encode())}:{_text(value)}" for name, value in record.headers)
    return "\t".join((str(record.partition), str(record.offset), str(record.timestamp), _text(record.key),
                      _text(record.value), headers))


def from_line(line):
    partition, offset, timestamp, key, value, headers = line.rstrip("\n").split("\t")
    pairs = (pair.split(":") for pair in headers.split(",") if pair)
    return Record(int(partition), int(offset), int(timestamp), _bytes(key), _bytes(value),
                  tuple((_bytes(name).decode(), _bytes(content)) for name, content in pairs))


def write_records(path, records):
    with open(path, "w", encoding="ascii") as file:
        for record in records:
            file.write((to_line(record) if record else "-") + "\n")


def read_records(path):
    with open(path, encoding="ascii") as file:
        return [None if line == "-\n" else from_line(line) for line in file]


def read_points(path):
    with open(path, encoding="ascii") as file:
        fields = (line.split() for line in file)
        return [(int(partition), kind, int(number)) for partition, kind, number in fields]


class MemberLog:
    """Writes the lines of a member step, each to the file at once: the member may be killed at any moment."""

    def __init__(self, path):
        self._file = open(path, "a", encoding="ascii", errors="backslashreplace")  # for as long as the process lives
        self._stop = path + ".stop"
        self._owned = set()

    def must_stop(self):
        return os.path.exists(self._stop)

    def assigned(self, partitions, generation="-", member="-"):
        """partitions: (topic, partition) each, all that it has now."""
        self._owned = set(partitions)
        self._write("assigned", generation, member or "-", _places(self._owned))

    def added(self, partitions, generation="-", member="-"):
        self.assigned(self._owned | set(partitions), generation, member)

    def revoked(self, partitions):
        partitions = set(partitions)
        self._owned -= partitions
        self._write("revoked", _places(partitions))

    def records(self, topic, records):
        for record in records:
            self._line("record", topic, to_line(record))
        self._file.flush()

    def committed(self, offsets):
        """offsets: (topic, partition, offset) each."""
        self._write("committed", _places(offsets))

    def refused(self, text):
        self._write("refused", " ".join(str(text).split()) or "-")

    def left(self):
        self._write("left")

    def _write(self, *fields):
        self._line(*fields)
        self._file.flush()

    def _line(self, *fields):
        self._file.write("\t".join((str(int(time.time() * 1000)), *map(str, fields))) + "\n")


class RebalanceNotes:
    """The half of a rebalance listener that kafka-python and aiokafka share; each adds its own base class."""

    def __init__(self, log):
        self._log = log

    def on_partitions_revoked(self, revoked):
        self._log.revoked(map(tuple, revoked))

    def on_partitions_assigned(self, assigned):
        self._log.assigned(map(tuple, assigned))


def record_of(message):
    """Of a message of kafka-python or aiokafka."""
    return Record(message.partition, message.offset, message.timestamp, message.key, message.value,
                  tuple(message.headers))


def _places(places):
    return ",".join(":".join(map(str, place)) for place in sorted(places))


def _options(text):
    return dict(option.split("=", 1) for option in text.split(",") if option)


def run_steps(driver, steps_path):
    """Calls driver.<step>(...) for each line. A driver's methods take and return records, not files."""
    with open(steps_path, encoding="utf-8") as file:
        steps = [line.rstrip("\n").split("\t") for line in file]
    for step in steps:
        if step[0] == "create":
            driver.create(step[1], int(step[2]))
        elif step[0] == "produce":
            write_records(step[4], driver.produce(step[1], step[2], read_records(step[3])))
        elif step[0] == "consume":
            write_records(step[3], driver.consume(step[1], int(step[2])))
        elif step[0] == "seek":
            write_records(step[3], driver.seek(step[1], read_points(step[2])))
        elif step[0] == "delete":
            driver.delete(step[1])
        elif step[0] == "reset":
            position = driver.reset(step[1], int(step[2]), step[3])
            write_records(step[4], [None if position is None else Record(0, position, 0, None, None, ())])
        elif step[0] == "member":
            driver.member(step[1], step[2].split(","), _options(step[3]), MemberLog(step[4]))
        else:
            raise ValueError(f"unknown step {step[0]}")
