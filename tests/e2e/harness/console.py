"""Apache Kafka's console tools, and other programs on its jars, as processes."""

import subprocess

from harness.places import TOOLS

JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp",
        f"{TOOLS}/java-apps/classes:{TOOLS}/java-apps/lib/*")
_PACKAGE = "org.apache.kafka.tools."
# What the scripts of a Kafka distribution run.
CLASSES = {
    "kafka-topics": "TopicCommand", "kafka-console-producer": "ConsoleProducer",
    "kafka-console-consumer": "consumer.ConsoleConsumer", "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-configs": "ConfigCommand", "kafka-get-offsets": "GetOffsetShell",
    "kafka-producer-perf-test": "ProducerPerformance", "kafka-consumer-perf-test": "ConsumerPerformance",
    "kafka-delete-records": "DeleteRecordsCommand", "kafka-log-dirs": "LogDirsCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand", "kafka-cluster": "ClusterTool", "kafka-groups": "GroupsCommand",
}


class Done:
    """What a tool printed, and how it ended."""

    def __init__(self, process):
        self.code, self.text = process.returncode, process.stdout
        self.errors = "\n".join(line for line in process.stderr.splitlines() if "SLF4J" not in line)

    def rows(self):
        """Its lines, parted at white space."""
        return [line.split() for line in self.text.splitlines() if line.strip()]

    def __repr__(self):
        return f"ended with {self.code}\n{self.text}\n{self.errors}"


def run(name, *arguments, stdin="", timeout=90):
    return Done(subprocess.run([*JAVA, _PACKAGE + CLASSES[name], *map(str, arguments)], input=stdin, encoding="utf-8",
                               capture_output=True, timeout=timeout, check=False))
