"""One of the two brokers, as a script sees it: it sends, receives, and everything that comes back is recorded."""

import socket
import struct
import time
from dataclasses import dataclass

from differential.served import BOTH, of_varve
from differential.words import Words
from harness import messages
from harness.wire import Connection

# Longer than any answer takes, also on a machine that is busy building.
ANSWER_SECONDS_MAX = 60
_SILENCE_SECONDS = 1
NO_API = "no API"
BROKE = "the script broke"
# A topic that is there, and that no script names.
_FIRST_TOPIC = "first-of-all"
# What is recorded where there is no reply.
CLOSED, SILENT, HANGS, UNREADABLE = ({"answer": text} for text in (
    "the connection is closed", "none, and the connection is open", "none in time", "it does not decode"))


@dataclass(frozen=True)
class Step:
    """One request and what came of it. `api` is NO_API for bytes that are no request of any."""

    script: str
    label: str
    api: str
    version: int
    request: str
    answer: dict

    @property
    def name(self):
        return f"{self.script}: {self.label}"


@dataclass
class Pending:
    """A request that is not answered yet."""

    api: str
    version: int
    values: dict
    label: str
    on: str
    correlation: int


class Side:
    def __init__(self, broker):
        self.broker = broker
        self.is_kafka = broker.name == "kafka"
        self.steps = []
        self.words = None
        # The leader epoch of every partition.
        self.epoch = None
        self._script = ""
        self._labels = {}
        self._connections = {}

    # For the runner.

    def await_coordinators(self):
        """Kafka makes its offsets topic, and takes a block of producer ids, when it is first asked."""
        def are_there():
            return (self.quietly("Metadata", 12, {"Topics": [{"Name": _FIRST_TOPIC}]})["Topics"][0]["Partitions"] and
                    self.quietly("FindCoordinator", 0, {"Key": "any"})["ErrorCode"] == 0 and
                    self.quietly("InitProducerId", 0, {"TransactionalId": None})["ErrorCode"] == 0 and
                    (not self.is_kafka or self.quietly(
                        "Heartbeat", 0, {"GroupId": "any", "GenerationId": 0, "MemberId": "any"})["ErrorCode"] == 25))
        self.wait_for(are_there)

    def begin(self, script):
        """Starts a script: all ids and connections are forgotten."""
        self.end()
        self._script, self._labels = script, {}
        here = self.quietly("Metadata", 12, {"Topics": [{"Name": _FIRST_TOPIC}]})
        self.epoch = here["Topics"][0]["Partitions"][0]["LeaderEpoch"]
        self.words = Words(here["ClusterId"], self.broker.port, self.epoch)

    def end(self):
        for connection in self._connections.values():
            connection.__exit__()
        self._connections = {}

    def broke(self, text):
        """The script could not go on, because an answer was not what it builds upon."""
        self._record(NO_API, -1, {}, BROKE, {"answer": text})

    # For scripts.

    @property
    def served(self):
        """The APIs that both brokers serve."""
        return of_varve()

    def versions(self, api):
        """All versions that both brokers serve."""
        lowest, highest = BOTH[api]
        return range(lowest, highest + 1)

    def ask(self, api, version, values, label="", on=""):
        """The reply, or None if there is none."""
        return self.receive(self.send(api, version, values, label, on))

    def send(self, api, version, values, label="", on=""):
        """Sends without waiting. `on` names one of several connections."""
        correlation = None
        try:
            correlation = messages.send(self._connection(on), api, version, values)
        except (ConnectionResetError, BrokenPipeError):
            pass  # receive() finds it closed
        return Pending(api, version, values, label, on, correlation)

    def receive(self, pending):
        reply, answer = self._receive(pending)
        self._record(pending.api, pending.version, pending.values, pending.label, answer)
        return reply

    def send_unanswered(self, api, version, values, label="", on=""):
        """A request that may have no reply; records whether the connection answers the next request."""
        self.send(api, version, values, label, on)
        asked = self.send("ApiVersions", 0, {}, on=on)
        reply, answer = self._receive(asked)
        self._record(api, version, values, label, SILENT if reply else answer)

    def has_answer(self, on="", seconds=0.15):
        """Whether something comes on the connection; it is not read."""
        connection = self._connection(on).socket
        connection.settimeout(seconds)
        try:
            return bool(connection.recv(1, socket.MSG_PEEK))
        except (TimeoutError, ConnectionResetError):
            return False
        finally:
            connection.settimeout(ANSWER_SECONDS_MAX)

    def note(self, api, version, label, **facts):
        """Records what a script found out in another way than by a reply."""
        self._record(api, version, {}, label, facts)

    def raw(self, api, version, frame, label, hangs_on_kafka=False):
        """Sends bytes as a frame on a connection of their own, and records what comes: its bytes, or a hang-up. Where
        Kafka never answers, that is waited for only shortly."""
        seconds = _SILENCE_SECONDS if self.is_kafka and hangs_on_kafka else ANSWER_SECONDS_MAX
        self.raw_bytes(api, version, struct.pack(">i", len(frame)) + frame, label, seconds)

    def raw_bytes(self, api, version, data, label, seconds=ANSWER_SECONDS_MAX):
        with Connection(self.broker.port, seconds) as connection:
            try:
                connection.socket.sendall(data)
                correlation, reader = connection.receive()
                answer = {"correlation": correlation, "bytes": self._bytes(api, version, reader.rest())}
            except TimeoutError:
                answer = HANGS
            except (EOFError, ConnectionResetError, BrokenPipeError):
                answer = CLOSED
        self._record(api, version, {"bytes": data[:200]}, label, answer)

    def close(self, on=""):
        self._connections.pop(on).__exit__()

    def topic(self, name, partitions=1, configs=()):
        """Makes a topic, waits until it is there everywhere, and gives its id. Not recorded."""
        row = {"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1,
               "Configs": [{"Name": key, "Value": value} for key, value in dict(configs).items()]}
        made, = self.quietly("CreateTopics", 7, {"Topics": [row], "timeoutMs": 10_000})["Topics"]
        assert made["ErrorCode"] == 0, f"making {name}: {made['ErrorCode']} {made['ErrorMessage']}"
        self.words.add(made["TopicId"], f"id of {name}")
        self.await_topic(name, partitions)
        return made["TopicId"]

    def await_topic(self, name, partitions=1):
        rows = [{"PartitionIndex": index, "Timestamp": -1} for index in range(partitions)]
        self.wait_for(lambda: all(row["ErrorCode"] == 0 for row in self.quietly(
            "ListOffsets", 6, {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": rows}]})["Topics"][0][
                "Partitions"]))

    def await_no_topic(self, name):
        self.wait_for(lambda: self.quietly("Metadata", 8, {
            "Topics": [{"Name": name}], "AllowAutoTopicCreation": False})["Topics"][0]["ErrorCode"] == 3)

    def topic_id(self, name):
        row, = self.quietly("Metadata", 12, {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False})["Topics"]
        self.words.add(row["TopicId"], f"id of {name}")
        return row["TopicId"]

    def produce(self, name, *batches, partition=0):
        """Not recorded; the base offset of the last."""
        with Connection(self.broker.port, ANSWER_SECONDS_MAX) as connection:
            for records in batches:
                error, offset = connection.produce(name, partition, records)
                assert error == 0, f"producing to {name}: {error}"
        return offset

    def quietly(self, api, version, values):
        """The reply to a request that is not recorded, on a connection of its own."""
        return messages.ask(self._connection("quiet"), api, version, values)

    @staticmethod
    def wait_for(condition, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not come true in time"
            time.sleep(0.01)

    # Inner.

    def _connection(self, on):
        if on not in self._connections:
            self._connections[on] = Connection(self.broker.port, ANSWER_SECONDS_MAX)
        return self._connections[on]

    def _receive(self, pending):
        """(reply or None, what to record)."""
        connection = self._connections.get(pending.on)
        try:
            if connection is None or pending.correlation is None:
                raise EOFError
            correlation, reply = messages.receive(connection, pending.api, pending.version)
            if correlation != pending.correlation:
                raise AssertionError(f"reply {correlation} to request {pending.correlation}")
            return reply, self.words.of(pending.api, reply)
        except TimeoutError:
            answer = HANGS
        except (EOFError, ConnectionResetError, BrokenPipeError):
            answer = CLOSED
        except (AssertionError, struct.error, UnicodeDecodeError) as error:
            answer = {**UNREADABLE, "why": str(error)}
        if connection is not None:
            self._connections.pop(pending.on).__exit__()
        return None, answer

    def _bytes(self, api, version, data):
        """A reply to raw bytes; with ids and ports it can only be told apart when decoded."""
        message = messages.load(api + "Response") if api in BOTH and version in self.versions(api) else None
        if message is None:
            return data.hex()
        header = version >= message.flexible and api != "ApiVersions"
        return self.words.of(api, messages.decode(message, version, data[header:]))

    def _record(self, api, version, values, label, answer):
        label = label or "plain"
        times = self._labels[api, version, label] = self._labels.get((api, version, label), 0) + 1
        if times > 1:
            label += f" #{times}"
        text = repr(values)
        self.steps.append(Step(self._script, label, api, version, text if len(text) < 600 else text[:600] + "...",
                               answer))
