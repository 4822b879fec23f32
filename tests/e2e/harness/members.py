"""Members of consumer groups as processes, which note what happens to them (clients/record_lines.py, step member)."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from harness.clients import ClientFailed

import record_lines

LEAVE_SECONDS_MAX = 60


class Event(NamedTuple):
    time: int  # ms
    kind: str  # assigned, revoked, record, committed, refused, unreachable, left
    places: dict = {}  # (topic, partition) to an offset or None, but for records
    topic: str = ""
    record: object = None
    generation: str = "-"
    member: str = "-"
    text: str = ""


def parse_event(line):
    time_ms, kind, *fields = line.split("\t")
    if kind == "record":
        return Event(int(time_ms), kind, topic=fields[0], record=record_lines.from_line("\t".join(fields[1:])))
    if kind == "assigned":
        return Event(int(time_ms), kind, _places(fields[2]), generation=fields[0], member=fields[1])
    if kind in ("revoked", "committed"):
        return Event(int(time_ms), kind, _places(fields[0]))
    return Event(int(time_ms), kind, text="\t".join(fields))


def _places(text):
    places = {}
    for place in filter(None, text.split(",")):
        topic, partition, *offset = place.split(":")
        places[topic, int(partition)] = int(offset[0]) if offset else None
    return places


class Member:
    """One process from its start to its end; what it noted stays readable after."""

    def __init__(self, client, bootstrap, group, topics, **options):
        self.client, self.name, self.lag_ms = client, f"{client.name} in {group}", client.lag_ms
        self._folder = Path(tempfile.mkdtemp(prefix="varve-member-"))
        self._result = self._folder / "events"
        self._read_bytes = 0
        self.events = []
        self.killed_at = None  # ms
        steps = self._folder / "steps"
        texts = ",".join(f"{name}={value}" for name, value in options.items())
        steps.write_text("\t".join(("member", group, ",".join(topics), texts, str(self._result))) + "\n", encoding="utf-8")
        self._errors = open(self._folder / "errors", "wb")
        self.process = subprocess.Popen([*client.command, bootstrap, str(steps)], stdin=subprocess.DEVNULL,
                                        stdout=self._errors, stderr=subprocess.STDOUT,
                                        env={**os.environ, **client.environment})

    def update(self):
        """Reads what it has noted since; gives itself."""
        if self._result.exists():
            with open(self._result, "rb") as file:
                file.seek(self._read_bytes)
                # The last line may be half written.
                lines = file.read().rpartition(b"\n")[0]
            if lines:
                self._read_bytes += len(lines) + 1
                self.events += [parse_event(line) for line in lines.decode().split("\n")]
        return self

    def owned(self):
        """The (topic, partition) that it has now."""
        owned = set()
        for event in self.events:
            if event.kind == "assigned":
                owned = set(event.places)
            elif event.kind == "revoked":
                owned -= set(event.places)
        return owned

    def of_kind(self, kind):
        return [event for event in self.events if event.kind == kind]

    def positions(self):
        """{(topic, partition): the offset after the last record that it read}."""
        positions = {}
        for event in self.of_kind("record"):
            place = event.topic, event.record.partition
            positions[place] = max(positions.get(place, 0), event.record.offset + 1)
        return positions

    def commits(self):
        """{(topic, partition): the largest offset that it was told to be committed}."""
        commits = {}
        for event in self.of_kind("committed"):
            for place, offset in event.places.items():
                commits[place] = max(commits.get(place, 0), offset)
        return commits

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.killed_at = int(time.time() * 1000)
        self.update()

    def tell_to_leave(self):
        Path(f"{self._result}.stop").touch()

    def leave(self):
        """Lets it leave the group in good order, and waits for its end."""
        self.tell_to_leave()
        try:
            code = self.process.wait(LEAVE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise ClientFailed(f"{self.name} does not end\n{self.trouble()}") from None
        if code != 0:
            raise ClientFailed(f"{self.name} ended with {code}\n{self.trouble()}")
        self.update()

    def trouble(self):
        """The end of what it printed and noted, without most of the records."""
        self.update()
        printed = (self._folder / "errors").read_text(errors="replace")[-2000:]
        noted = [event for event in self.events if event.kind not in ("record", "committed")][-10:] + self.events[-3:]
        return printed + "\n".join(str(event)[:300] for event in noted)

    def remove(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)
