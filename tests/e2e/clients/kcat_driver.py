"""Drives kcat, the program; called as record_lines.py describes.

kcat cannot set a record's timestamp, and it gives all records of one call the same headers. So it produces the records
it is handed without their timestamps and headers, but with one header of its own, and says which timestamps they
got by reading them back.
"""

import subprocess
import sys

from record_lines import PATIENCE_SECONDS, Record, run_steps

HEADER = ("client", b"kcat")
# Length-prefixed where kcat can, and headers last: they run to the end marker.
_FORMAT = "%p %o %T %K %S\n%k%s%h\x1e\n"
_END = b"\x1e\n"


class KcatDriver:
    def __init__(self, bootstrap):
        self._bootstrap = bootstrap

    def _kcat(self, *arguments, stdin=None):
        command = ["kcat", "-b", self._bootstrap, "-m", str(PATIENCE_SECONDS), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=2 * PATIENCE_SECONDS, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')[-500:]}")
        return done.stdout

    def create(self, topic, partitions):
        """kcat has no call for it: asking for a topic creates it where the broker creates topics by itself."""
        self._kcat("-L", "-t", topic)

    def produce(self, topic, codec, records):
        for partition in sorted({record.partition for record in records}):
            chosen = [record for record in records if record.partition == partition]
            lines = b"".join((record.key + b"\x1f" if record.key is not None else b"") + (record.value or b"") + b"\x1e"
                             for record in chosen)
            # -Z makes an empty value a null one, -K sets where the key ends.
            self._kcat("-P", "-t", topic, "-p", str(partition), "-z", codec, "-Z", "-K", "\x1f", "-D", "\x1e",
                       "-H", f"{HEADER[0]}={HEADER[1].decode()}", stdin=lines)
        return self.consume(topic, max(record.partition for record in records) + 1)

    def consume(self, topic, partitions):
        records = []
        for partition in range(partitions):
            records += self._read(topic, partition, "beginning")
        return records

    def seek(self, topic, points):
        found = []
        for partition, kind, number in points:
            start = str(number) if kind == "offset" else f"s@{number}"
            records = self._read(topic, partition, start, "-c", "1")
            found.append(records[0] if records else None)
        return found

    def _read(self, topic, partition, start, *more):
        output = self._kcat("-C", "-q", "-e", "-t", topic, "-p", str(partition), "-o", start, "-f", _FORMAT,
                            "-X", "fetch.wait.max.ms=10", "-X", "check.crcs=true", *more)
        records, at = [], 0
        while at < len(output):
            line_end = output.index(b"\n", at)
            partition, offset, timestamp, key_size, value_size = map(int, output[at:line_end].split())
            at = line_end + 1
            # A size of -1 is null.
            key = output[at:at + key_size] if key_size >= 0 else None
            at += max(key_size, 0)
            value = output[at:at + value_size] if value_size >= 0 else None
            at += max(value_size, 0)
            end = output.index(_END, at)
            records.append(Record(partition, offset, timestamp, key, value, _headers(output[at:end])))
            at = end + len(_END)
        return records


def _headers(text):
    pairs = (pair.split(b"=", 1) for pair in text.split(b",") if pair)
    return tuple((name.decode(), None if value == b"NULL" else value) for name, value in pairs)


run_steps(KcatDriver(sys.argv[1]), sys.argv[2])
