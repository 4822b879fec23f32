"""Apache Kafka's console tools do their work."""

import json
import re
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from harness import console, messages, wire
from harness.clients import client
from harness.members import Member
from harness.one_broker import OneBroker
from harness.places import count
from harness.wire import batch

import record_lines


class ConsoleTools(OneBroker):
    WAIT_SECONDS = 60

    def tool(self, name, *arguments, stdin="", expected=0):
        done = console.run(name, "--bootstrap-server", self.broker.bootstrap, *arguments, stdin=stdin)
        self.assertEqual(expected, done.code, done)
        return done

    def topic(self, name, partitions=1, values=(), **configs):
        """A topic with these values in each partition."""
        with wire.Connection(self.broker.port) as connection:
            self.make_topic(connection, name, partitions, configs)
            for partition in range(partitions if values else 0):
                self.assertEqual((0, 0), connection.produce(name, partition, batch(values)))
        return name

    def test_kafka_topics_creates_lists_describes_widens_and_deletes(self):
        done = self.tool("kafka-topics", "--create", "--topic", "tools", "--partitions", 2, "--config",
                         "cleanup.policy=compact")
        self.assertIn("Created topic tools.", done.text)
        self.tool("kafka-topics", "--create", "--topic", "tools", expected=1)
        self.tool("kafka-topics", "--create", "--topic", "tools", "--if-not-exists")
        self.assertIn("tools", self.tool("kafka-topics", "--list").text.split())
        self.tool("kafka-topics", "--alter", "--topic", "tools", "--partitions", 3)
        done = self.tool("kafka-topics", "--alter", "--topic", "tools", "--partitions", 2, expected=1)
        self.assertIn("3", done.text + done.errors)
        described = self.tool("kafka-topics", "--describe", "--topic", "tools").text
        self.assertRegex(described, r"TopicId: \S{22}\tPartitionCount: 3\tReplicationFactor: 1\t")
        self.assertRegex(described, r"Configs: .*cleanup\.policy=compact")
        self.assertEqual(["0", "1", "2"], re.findall(r"\tPartition: (\d+)\tLeader: \d+\t", described))
        self.assertEqual("", self.tool("kafka-topics", "--describe", "--under-replicated-partitions").text)
        self.tool("kafka-topics", "--delete", "--topic", "tools")
        self.tool("kafka-topics", "--describe", "--topic", "tools", expected=1)

    def test_kafka_console_producer_and_consumer(self):
        for codec in record_lines.CODECS:
            with self.subTest(codec=codec):
                topic, records = f"console-{codec}", count("VARVE_RECORDS", 5000)
                lines = [f"trace:{index},source:tools\tkey {index}\tvalue {index} ünïcode" for index in range(records)]
                self.tool("kafka-console-producer", "--topic", topic, "--compression-codec", codec, "--reader-property",
                          "parse.key=true", "--reader-property", "parse.headers=true", stdin="\n".join(lines) + "\n")
                done = self.tool("kafka-console-consumer", "--topic", topic, "--from-beginning", "--max-messages", records,
                                 "--timeout-ms", 30_000, *_shown("timestamp", "partition", "offset", "headers", "key"))
                read = client("franz-go").steps(self.broker.bootstrap).consume(topic, 1).run()["consume", topic]
                self.assertEqual([f"CreateTime:{record.timestamp}\tPartition:0\tOffset:{index}\t{line}"
                                  for index, (line, record) in enumerate(zip(lines, read))], done.text.splitlines())
                self.assertEqual([(f"key {index}".encode(), f"value {index} ünïcode".encode(),
                                   (("trace", b"%d" % index), ("source", b"tools"))) for index in range(records)],
                                 [(record.key, record.value, record.headers) for record in read])

    def test_c016_kafka_console_consumer_finds_its_coordinator_and_c041_empty_partitions_hold_nothing_up(self):
        topic = self.topic("c016", 3)
        with wire.Connection(self.broker.port) as connection:
            connection.produce(topic, 0, batch([b"alone"]))
        done = self.tool("kafka-console-consumer", "--topic", topic, "--group", "c016", "--from-beginning",
                         "--max-messages", 1, "--timeout-ms", 30_000)
        self.assertEqual("alone\n", done.text)
        with wire.Connection(self.broker.port) as connection:
            error, found = wire.insist(lambda: connection.committed("c016", topic, 3))
            self.assertEqual((wire.NONE, 1), (error, found[topic, 0]))

    def test_kafka_consumer_groups_lists_and_describes_groups_with_members_and_states(self):
        topic = self.topic("described", 2, [b"a", b"b", b"c"])
        member = Member(client("java"), self.broker.bootstrap, "described-group", [topic], instance="this-one")
        self.addCleanup(member.remove)
        self.wait_for(lambda: member.update().commits() == {(topic, 0): 3, (topic, 1): 3})
        self.assertIn("described-group", self.tool("kafka-consumer-groups", "--list").text.split())
        self.assertIn(["described-group", "Stable"], self.tool("kafka-consumer-groups", "--list", "--state").rows())
        group = ("--describe", "--group", "described-group")
        rows = self.tool("kafka-consumer-groups", *group).rows()
        self.assertEqual([["described-group", topic, str(partition), "3", "3", "0"] for partition in range(2)],
                         sorted(row[:6] for row in rows if row[0] == "described-group"))
        members = self.tool("kafka-consumer-groups", *group, "--members", "--verbose").text
        self.assertRegex(members, rf"described-group +this-one-\S+ +this-one +/127\.0\.0\.1 +\S+ +2 .*{topic}:0,1")
        state = self.tool("kafka-consumer-groups", *group, "--state").text
        self.assertRegex(state, rf"described-group +127\.0\.0\.1:{self.broker.port} .* Stable +1")
        done = self.tool("kafka-consumer-groups", "--group", "described-group", "--delete")
        self.assertIn("GroupNotEmptyException", done.text + done.errors)
        done = self.tool("kafka-consumer-groups", "--group", "described-group", "--topic", topic, "--reset-offsets",
                         "--to-earliest", "--execute")
        self.assertIn("current state is Stable", done.text + done.errors)
        member.leave()
        self.assertRegex(self.tool("kafka-groups", "--list").text, r"described-group +Classic +consumer")

    def test_kafka_consumer_groups_resets_and_deletes_offsets_and_groups(self):
        topic, hour_ms, now_ms = self.topic("reset", 2), 3_600_000, int(time.time() * 1000)
        with wire.Connection(self.broker.port) as connection:
            for partition in range(2):
                for values, hours in (([b"0", b"1"], 2), ([b"2", b"3"], 1)):
                    records = batch(values, timestamp=now_ms - hours * hour_ms)
                    self.assertEqual(wire.NONE, connection.produce(topic, partition, records)[0])
        group = ("--group", "reset-group")

        def reset(*how):
            done = self.tool("kafka-consumer-groups", *group, "--reset-offsets", "--execute", *how)
            return {int(row[2]): int(row[3]) for row in done.rows() if row[0] == "reset-group"}

        def committed():
            with wire.Connection(self.broker.port) as connection:
                error, found = wire.insist(lambda: connection.committed("reset-group", topic, 2))
            self.assertEqual(wire.NONE, error)
            return [offset for _, offset in sorted(found.items())]

        self.assertEqual({0: 4, 1: 4}, reset("--topic", topic, "--to-latest"))
        self.assertEqual([4, 4], committed())
        self.assertEqual({0: 2, 1: 2}, reset("--topic", topic, "--shift-by", -2))
        self.assertEqual({1: 0}, reset("--topic", f"{topic}:1", "--to-earliest"))
        self.assertEqual({0: 1, 1: 1}, reset("--all-topics", "--to-offset", 1))
        self.assertEqual([1, 1], committed())
        between = datetime.fromtimestamp((now_ms - 1.5 * hour_ms) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")
        self.assertEqual({0: 2, 1: 2}, reset("--topic", topic, "--to-datetime", between))
        self.assertEqual({0: 4, 1: 4}, reset("--topic", topic, "--by-duration", "PT30M"), "nothing is as young: the end")
        self.assertEqual([4, 4], committed())
        self.assertEqual({0: 0, 1: 0}, reset("--topic", topic, "--shift-by", -9), "not below the start")
        done = self.tool("kafka-console-consumer", "--topic", topic, *group, "--max-messages", 8, "--timeout-ms", 30_000)
        self.assertEqual(sorted("00112233"), sorted(done.text.split()))
        done = self.tool("kafka-consumer-groups", *group, "--delete-offsets", "--topic", f"{topic}:0")
        self.assertIn([topic, "0", "Successful"], done.rows())
        self.assertEqual([-1, 4], committed())
        self.assertIn("was successful", self.tool("kafka-consumer-groups", *group, "--delete").text)
        done = self.tool("kafka-consumer-groups", *group, "--describe")
        self.assertIn("GroupIdNotFoundException", done.text + done.errors)

    def test_kafka_configs_describes_and_alters_a_topic(self):
        topic = ("--entity-type", "topics", "--entity-name", self.topic("configured"))

        def settings(*more):
            text = self.tool("kafka-configs", *topic, "--describe", *more).text
            return dict(re.findall(r"^  ([a-z.]+)=(\S*) sensitive=false", text, re.MULTILINE))

        self.assertEqual({}, settings())
        self.tool("kafka-configs", *topic, "--alter", "--add-config", "retention.ms=3600000,cleanup.policy=[compact,delete]")
        self.assertEqual({"retention.ms": "3600000", "cleanup.policy": "compact,delete"}, settings())
        self.tool("kafka-configs", *topic, "--alter", "--delete-config", "cleanup.policy")
        self.assertEqual({"retention.ms": "3600000"}, settings())
        everything = settings("--all")
        self.assertEqual(("delete", "3600000", "producer"),
                         tuple(everything[name] for name in ("cleanup.policy", "retention.ms", "compression.type")))
        for wrong in ("retention.ms=soon", "cleanup.policy=shred", "no.such.setting=1"):
            done = self.tool("kafka-configs", *topic, "--alter", "--add-config", wrong, expected=1)
            self.assertIn("InvalidConfigurationException", done.text + done.errors)
        self.assertEqual({"retention.ms": "3600000"}, settings())

    def test_kafka_configs_describes_brokers_and_refuses_to_alter_what_cannot_be(self):
        with wire.Connection(self.broker.port) as connection:
            brokers = messages.ask(connection, "Metadata", 12, {"Topics": []})["Brokers"]
        self.assertEqual(1, len(brokers))
        broker = ("--entity-name", brokers[0]["NodeId"])

        def settings(kind, *more):
            text = self.tool("kafka-configs", "--entity-type", kind, *more, "--describe").text
            return dict(re.findall(r"^  ([A-Za-z.]+)=(\S*) sensitive=false", text, re.MULTILINE))

        def is_refused(kind, *more):
            done = self.tool("kafka-configs", "--entity-type", kind, *more, expected=1)
            self.assertIn("InvalidRequestException", done.text + done.errors)

        everything = settings("brokers", *broker, "--all")
        for name, value in (("auto.create.topics.enable", "true"), ("num.partitions", "1"), ("compression.type", "producer"),
                            ("group.initial.rebalance.delay.ms", "0"), ("group.max.session.timeout.ms", "1800000")):
            self.assertEqual(value, everything.get(name), name)
        changed = settings("brokers", *broker)
        is_refused("brokers", *broker, "--alter", "--add-config", "broker.id=77")
        if self.broker.name == "varve":  # here none of them changes while the broker runs
            is_refused("brokers", *broker, "--alter", "--add-config", "log.retention.ms=1000")
            is_refused("brokers", "--entity-default", "--alter", "--add-config", "log.retention.ms=1000")
        self.assertEqual(changed, settings("brokers", *broker))
        self.assertIn("root", settings("broker-loggers", *broker))
        self.tool("kafka-configs", "--entity-type", "broker-loggers", *broker, "--alter", "--add-config",
                  "no.such.logger=INFO", expected=1)

    def test_kafka_get_offsets(self):
        topic = self.topic("offsets", 2, [b"a", b"b", b"c"])
        get = ("kafka-get-offsets", "--topic", topic)
        self.assertEqual({f"{topic}:0:3", f"{topic}:1:3"}, set(self.tool(*get).text.split()))
        self.assertEqual({f"{topic}:0:0", f"{topic}:1:0"}, set(self.tool(*get, "--time", "earliest").text.split()))
        self.assertEqual({f"{topic}:1:0"}, set(self.tool("kafka-get-offsets", "--topic-partitions", f"{topic}:1",
                                                          "--time", int(time.time() * 1000) - 60_000).text.split()))
        self.assertEqual({f"{topic}:0:0", f"{topic}:1:0"}, set(self.tool(*get, "--time", "max-timestamp").text.split()),
                         "the first of those with the largest one")

    def test_kafka_producer_perf_test_and_consumer_perf_test(self):
        topic = self.topic("perf", 3)
        done = self.tool("kafka-producer-perf-test", "--topic", topic, "--num-records", 20_000, "--record-size", 100,
                         "--throughput", -1, "--command-property", "acks=all")
        self.assertIn("20000 records sent", done.text)
        with wire.Connection(self.broker.port) as connection:
            self.assertEqual(20_000, sum(connection.list_offset(topic, partition)[1] for partition in range(3)))
        done = self.tool("kafka-consumer-perf-test", "--topic", topic, "--num-records", 20_000, "--timeout", 30_000)
        self.assertEqual("20000", done.text.splitlines()[-1].split(",")[4].strip(), done)

    def test_kafka_delete_records(self):
        topic = self.topic("shortened", 2, [b"a", b"b", b"c"])
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder) / "offsets.json"
            wanted.write_text(json.dumps({"version": 1, "partitions": [
                {"topic": topic, "partition": 0, "offset": 2}, {"topic": topic, "partition": 1, "offset": -1}]}))
            done = self.tool("kafka-delete-records", "--offset-json-file", wanted)
        self.assertIn(f"partition: {topic}-0\tlow_watermark: 2", done.text)
        self.assertIn(f"partition: {topic}-1\tlow_watermark: 3", done.text)
        done = self.tool("kafka-console-consumer", "--topic", topic, "--from-beginning", "--timeout-ms", 15_000)
        self.assertEqual("c\n", done.text)

    def test_kafka_log_dirs(self):
        topic = self.topic("weighed", 2, [b"x" * 1000])
        lines = self.tool("kafka-log-dirs", "--describe", "--topic-list", topic).text.splitlines()
        brokers = json.loads(next(line for line in lines if line.startswith("{")))["brokers"]
        self.assertEqual([None], [folder["error"] for broker in brokers for folder in broker["logDirs"]])
        sizes = {row["partition"]: row["size"] for broker in brokers for folder in broker["logDirs"]
                 for row in folder["partitions"]}
        self.assertEqual({f"{topic}-0", f"{topic}-1"}, set(sizes))
        self.assertTrue(all(size > 1000 for size in sizes.values()), sizes)

    def test_kafka_broker_api_versions_and_cluster(self):
        text = self.tool("kafka-broker-api-versions").text
        self.assertIn(f"127.0.0.1:{self.broker.port} (id: ", text)
        for api in ("Produce(0)", "Fetch(1)", "JoinGroup(11)", "CreatePartitions(37)"):
            self.assertRegex(text, re.escape(api) + r": \d+ (to \d+ )?\[usable: \d+\]")
        cluster = console.run("kafka-cluster", "cluster-id", "--bootstrap-server", self.broker.bootstrap)
        self.assertRegex(cluster.text, r"^Cluster ID: \S+\n$")


def _shown(*names):
    return [argument for name in names for argument in ("--formatter-property", f"print.{name}=true")]
