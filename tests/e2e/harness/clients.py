"""The real clients, each as a command that takes a file of steps (clients/record_lines.py)."""

import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from harness.places import E2E, TOOLS
from harness.records import as_aiokafka_sends, as_kafka_python_sends, as_kafkajs_sends, as_kcat_sends, \
    grouped_headers

import record_lines


class ClientFailed(Exception):
    pass


@dataclass(frozen=True)
class Client:
    name: str
    command: tuple
    environment: dict = field(default_factory=dict, hash=False, compare=False)
    codecs: tuple = record_lines.CODECS
    # What of drawn records it can send.
    sendable: object = list
    # What of records it can see; what it is compared by.
    sees: object = list
    # Whether it can set timestamps and create a topic by a call.
    is_full: bool = True
    # Whether it reads from a place, outside of a group.
    seeks: bool = True
    # Whether it tells where it goes on from an offset beyond the end.
    resets: bool = True
    # Whether a member joins its group again when it has lost its connection, whatever the broker says.
    rejoins: bool = False
    # How late a member may note that it lost a partition: it keeps what it has until the answer to its JoinGroup, when
    # another one, which read its own sooner, may have been assigned it already.
    lag_ms: int = 0

    def steps(self, bootstrap, timeout=600):
        return Steps(self, bootstrap, timeout)


def _python(name, driver, **more):
    return Client(name, (str(TOOLS / name / "bin" / "python"), str(E2E / "clients" / driver)), **more)


def _kcat(name, environment):
    return Client(name, ("/usr/bin/python3", str(E2E / "clients" / "kcat_driver.py")), environment,
                  sendable=as_kcat_sends, is_full=False, resets=False)


CLIENTS = (
    _kcat("kcat-debian", {}),
    _kcat("kcat-new", {"LD_LIBRARY_PATH": str(TOOLS / "kcat-new")}),
    _python("confluent-new", "confluent_driver.py"),
    _python("confluent-old", "confluent_driver.py"),
    _python("kafka-python-new", "kafka_python_driver.py", sendable=as_kafka_python_sends),
    _python("kafka-python-old", "kafka_python_driver.py", sendable=as_kafka_python_sends),
    _python("aiokafka", "aiokafka_driver.py", sendable=as_aiokafka_sends),
    Client("java", ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-cp",
                    f"{TOOLS}/java/classes:{TOOLS}/java/lib/*", "ClientDriver")),
    Client("franz-go", (str(TOOLS / "go" / "bin" / "franz"),), resets=False),
    Client("sarama", (str(TOOLS / "go" / "bin" / "sarama"),), rejoins=True),
    Client("kafkajs", (str(TOOLS / "kafkajs" / "node"), str(E2E / "node" / "kafkajs_driver.js")),
           {"NODE_PATH": str(TOOLS / "kafkajs" / "node_modules")}, sendable=as_kafkajs_sends, sees=grouped_headers,
           seeks=False, resets=False, rejoins=True, lag_ms=200),
)


def client(name):
    return next(client for client in CLIENTS if client.name == name)


class Steps:
    """Collects steps for one call of a client; run() makes the call. Results are read after it."""

    def __init__(self, client, bootstrap, timeout):
        self._client = client
        self._bootstrap = bootstrap
        self._timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="varve-steps-")
        self._lines = []
        self._results = {}

    def create(self, topic, partitions):
        self._lines.append(("create", topic, partitions))
        return self

    def delete(self, topic):
        self._lines.append(("delete", topic))
        return self

    def produce(self, topic, codec, records):
        source = self._path(f"records-{len(self._lines)}")
        record_lines.write_records(source, records)
        self._lines.append(("produce", topic, codec, source, self._result(("produce", topic, codec))))
        return self

    def consume(self, topic, partitions):
        self._lines.append(("consume", topic, partitions, self._result(("consume", topic))))
        return self

    def seek(self, topic, points):
        source = Path(self._path(f"points-{len(self._lines)}"))
        source.write_text("".join("\t".join(map(str, point)) + "\n" for point in points))
        self._lines.append(("seek", topic, source, self._result(("seek", topic))))
        return self

    def reset(self, topic, offset, policy):
        self._lines.append(("reset", topic, offset, policy, self._result(("reset", topic, policy))))
        return self

    def run(self):
        """Gives a dict from (step, topic[, codec]) to the records of that step."""
        steps = Path(self._path("steps"))
        steps.write_text("".join("\t".join(map(str, line)) + "\n" for line in self._lines))
        command = [*self._client.command, self._bootstrap, str(steps)]
        with self._folder:
            try:
                done = subprocess.run(command, env={**os.environ, **self._client.environment}, text=True,
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=self._timeout,
                                      check=False)
            except subprocess.TimeoutExpired as expired:
                raise ClientFailed(f"{self._client.name} ran for more than {self._timeout} s: "
                                   f"{(expired.stderr or b'')[-2000:]}") from None
            if done.returncode != 0:
                raise ClientFailed(f"{self._client.name} ended with {done.returncode}\n{done.stdout[-1000:]}\n"
                                   f"{done.stderr[-3000:]}")
            return {key: record_lines.read_records(path) for key, path in self._results.items()}

    def _path(self, name):
        return os.path.join(self._folder.name, name)

    def _result(self, key):
        path = self._path(f"result-{len(self._lines)}")
        self._results[key] = path
        return path
