"""What applications are built of that are not plain clients: Kafka Streams, Kafka Connect, and the way in which the
Schema Registry keeps its schemas. Each restarts, and goes on where it was."""

import json
import os
import signal
import struct
import subprocess
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from harness import console, wire
from harness.broker import broker_class
from harness.clients import client
from harness.places import free_port
from harness.wire import Connection, batch

import record_lines

WAIT_SECONDS = 90
STOP_SECONDS_MAX = 60


class Application:
    """A Java program that runs until it is told to stop."""

    def __init__(self, folder, name, *arguments):
        self._log = open(folder / f"{name}.log", "ab")
        self.process = subprocess.Popen([*console.JAVA, name, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                        stdout=self._log, stderr=subprocess.STDOUT)

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(STOP_SECONDS_MAX)
        self._log.close()

    def trouble(self):
        return Path(self._log.name).read_text(errors="replace")[-5000:]


class Applications(unittest.TestCase):
    def setUp(self):
        self.broker = broker_class()()
        self.addCleanup(self.broker.__exit__)
        self.broker.start()
        # Goes with the broker's.
        self.folder = self.broker.folder / "application"
        self.folder.mkdir()
        self.application = None

    def start(self, name, *arguments):
        self.application = Application(self.folder, name, *arguments)
        self.addCleanup(self.application.end, signal.SIGKILL)

    def wait_for(self, condition):
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            trouble = self.application.trouble() if self.application else ""
            self.assertTrue(self.application is None or self.application.process.poll() is None, trouble)
            self.assertLess(time.monotonic(), deadline, trouble)
            time.sleep(0.2)

    def create(self, topic, partitions, **configs):
        with Connection(self.broker.port) as connection:
            self.assertEqual(wire.NONE, connection.create_topic(
                topic, partitions, [(name.replace("_", "."), value) for name, value in configs.items()]))
            self.wait_for(lambda: all(connection.list_offset(topic, partition) == (wire.NONE, 0)
                                      for partition in range(partitions)))

    def read(self, topic, partitions=1):
        return client("franz-go").steps(self.broker.bootstrap).consume(topic, partitions).run()["consume", topic]

    def cleanup_policy(self, topic):
        done = console.run("kafka-configs", "--bootstrap-server", self.broker.bootstrap, "--entity-type", "topics",
                           "--entity-name", topic, "--describe", "--all")
        return next(row[0].split("=")[1] for row in done.rows() if row[0].startswith("cleanup.policy="))

    def test_kafka_streams_counts_words_and_goes_on_after_restarts(self):
        self.create("lines", 2)
        self.create("word-counts", 1)
        arguments = ("WordCount", self.broker.bootstrap, "lines", "word-counts", self.folder / "state")
        self.start(*arguments)
        expected = {}

        def say(*lines):
            with Connection(self.broker.port) as connection:
                for index, line in enumerate(lines):
                    # Nothing is stored where it is refused, as just after a start.
                    while (error := connection.produce("lines", index % 2, batch([line.encode()]))[0]) != wire.NONE:
                        self.assertIn(error, wire.RETRIABLE)
                    for word in line.split():
                        expected[word] = expected.get(word, 0) + 1
            self.wait_for(lambda: self.word_counts() == expected)

        say("the quick brown fox", "jumps over the lazy dog")
        self.assertEqual("compact", self.cleanup_policy("word-count-counts-changelog"))
        self.assertEqual("delete", self.cleanup_policy("word-count-counts-repartition"))
        self.application.end()
        self.start(*arguments)
        say("the dog sleeps", "the fox too")
        # Without its state it reads the counts back from the changelog.
        self.application.end()
        os.rename(self.folder / "state", self.folder / "lost")
        self.start(*arguments)
        say("the end")
        self.broker.kill()
        self.broker.start()
        say("the very end")

    def word_counts(self):
        return {record.key.decode(): struct.unpack(">q", record.value)[0] for record in self.read("word-counts")}

    def test_c106_kafka_connect_makes_its_topics_and_keeps_its_connectors(self):
        port, sink = free_port(), self.folder / "sink"
        settings = self.folder / "worker.properties"
        converter = "org.apache.kafka.connect.storage.StringConverter"
        settings.write_text("\n".join((
            f"bootstrap.servers={self.broker.bootstrap}", "group.id=connect", f"key.converter={converter}",
            f"value.converter={converter}", "offset.flush.interval.ms=500", f"listeners=HTTP://127.0.0.1:{port}",
            *(f"{kind}.storage.{what}" for kind in ("config", "offset", "status")
              for what in (f"topic=connect-{kind}", "replication.factor=1")),
            "offset.storage.partitions=3", "status.storage.partitions=2")) + "\n")
        worker = ("org.apache.kafka.connect.cli.ConnectDistributed", settings)

        def ask(path, body=None):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode() if body else None,
                                             {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                return None

        def numbers():
            return list(map(int, sink.read_text().split())) if sink.exists() else []

        def is_running(name):
            status = ask(f"/connectors/{name}/status")
            return isinstance(status, dict) and [task["state"] for task in status["tasks"]] == ["RUNNING"]

        def wait_for_more():
            more = len(numbers()) + 100
            self.wait_for(lambda: len(numbers()) > more)

        self.start(*worker)
        self.wait_for(lambda: ask("/connectors") == [])
        for name, more in (("source", {"connector.class": "NumberSource", "topic": "numbers"}),
                           ("sink", {"connector.class": "FileSink", "topics": "numbers", "file": str(sink)})):
            made = ask("/connectors", {"name": name, "config": {**more, "tasks.max": "1"}})
            self.assertEqual(name, made["name"] if isinstance(made, dict) else made)
        self.wait_for(lambda: is_running("source") and is_running("sink"))
        wait_for_more()
        for kind, partitions in (("config", 1), ("offset", 3), ("status", 2)):
            done = console.run("kafka-topics", "--bootstrap-server", self.broker.bootstrap, "--describe", "--topic",
                               f"connect-{kind}")
            self.assertRegex(done.text, rf"PartitionCount: {partitions}\t.*cleanup\.policy=compact")
        self.application.end()
        before = numbers()
        self.assertEqual(list(range(len(before))), before, "each once and in order")
        self.start(*worker)
        self.wait_for(lambda: is_running("source") and is_running("sink"))
        wait_for_more()
        after = numbers()
        self.assertEqual(list(range(len(after))), after, "it went on where it was when it ended in good order")
        self.application.end(signal.SIGKILL)
        self.start(*worker)
        self.wait_for(lambda: is_running("source") and is_running("sink"))
        wait_for_more()
        # Those which came after the last commit may come twice.
        self.assertEqual(set(range(max(numbers()) + 1)), set(numbers()))

    def test_c092_what_the_schema_registry_does_at_its_start_works_again_at_the_second(self):
        self.create("_schemas", 1, cleanup_policy="compact")
        reader = client("java")
        records = []
        for number in range(2):
            # It looks at the policy, writes a marker, and reads all from the start before it serves.
            self.assertEqual("compact", self.cleanup_policy("_schemas"))
            key = b'{"keytype":"SCHEMA","subject":"orders-value","version":%d,"magic":1}' % (number + 1)
            value = b'{"subject":"orders-value","version":%d,"id":%d,"schema":"\\"string\\""}' % (number + 1, number + 1)
            sent = [record_of(b'{"keytype":"NOOP","magic":0}', None), record_of(key, value)]
            reader.steps(self.broker.bootstrap).produce("_schemas", "none", sent).run()
            records += [(record.key, record.value) for record in sent]
            found = reader.steps(self.broker.bootstrap).consume("_schemas", 1).run()["consume", "_schemas"]
            self.assertEqual(list(range(len(records))), [record.offset for record in found])
            self.assertEqual(records, [(record.key, record.value) for record in found])
            self.broker.stop()
            self.broker.start()


def record_of(key, value):
    return record_lines.Record(0, -1, int(time.time() * 1000), key, value, ())
