"""Prints the figures of docs/performance.md. By hand: tests/e2e/setup.sh && python3 tests/e2e/figures.py [--kafka].

    --groups  1,000 consumer groups of 10 members, and nothing else
    --kafka   measures Apache Kafka beside varve, in turns (needs tests/e2e/setup.sh --kafka)

Nothing else should run on the machine meanwhile.
"""

import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from harness import wire  # noqa: E402
from harness.broker import KafkaBroker, VarveBroker, accepts  # noqa: E402
from harness.uploads import Load  # noqa: E402
from harness.wire import Connection, batch  # noqa: E402

ROUNDS = 5
STARTS = 15
REQUESTS = 500
GROUP_ROUNDS = 3
# A connection for each member, and for both the delay of their defaults: without it Apache Kafka rebalances a group once for
# each of its members, longer than their sessions.
GROUP_SETTINGS = {VarveBroker: {"KAFKA_MAX_CONNECTIONS": "20000", "KAFKA_MAX_CONNECTIONS_PER_IP": "20000",
                                "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "3000"},
                  KafkaBroker: {"group.initial.rebalance.delay.ms": "3000"}}


def figure(name, values, unit):
    values = sorted(values)
    print(f"{name:64} median {statistics.median(values):8.2f} {unit}   {values[0]:.2f} to {values[-1]:.2f}"
          f"   n {len(values)}", flush=True)


def start_to_acknowledged(broker):
    """Seconds from the start of the process to the first acknowledged record."""
    record = batch([b"first of all"])
    began = time.monotonic()
    broker.spawn()
    while not accepts(broker.port):
        time.sleep(0.001)
    with Connection(broker.port) as connection:
        while connection.metadata("first") != wire.NONE or connection.produce("first", 0, record)[0] != wire.NONE:
            time.sleep(0.001)
    return time.monotonic() - began


def starts():
    seconds = {"on an empty folder": [], "after a stop": [], "after kill -9": []}
    for _ in range(STARTS):
        with VarveBroker() as broker:
            for name, end in (("on an empty folder", broker.kill), ("after kill -9", broker.stop),
                              ("after a stop", broker.kill)):
                seconds[name].append(start_to_acknowledged(broker))
                end()
    for name, values in seconds.items():
        figure(f"start to first acknowledged record, {name}", [value * 1000 for value in values], "ms")


def produce_ms(broker):
    """The median and the 99th percentile of produce requests of one 100-byte record, acks=all, one after another."""
    record = batch([b"r" * 100])
    with Connection(broker.port) as connection:
        connection.create_topic("latency", 1)
        took = []
        for _ in range(REQUESTS):
            began = time.monotonic()
            assert connection.produce("latency", 0, record)[0] == wire.NONE
            took.append((time.monotonic() - began) * 1000)
    took.sort()
    return statistics.median(took), took[len(took) * 99 // 100]


def latencies(classes):
    results = {kind: [] for kind in classes}
    for _ in range(ROUNDS):
        for kind in classes:
            with kind() as broker:
                broker.start()
                produce_ms(broker)  # warms up
                results[kind].append(produce_ms(broker))
    for kind, values in results.items():
        figure(f"{kind.name}: one record at a time, median of a round", [value[0] for value in values], "ms")
        figure(f"{kind.name}: one record at a time, p99 of a round", [value[1] for value in values], "ms")


def uploads():
    rates = {partitions: [] for partitions in (1, 100, 1000)}
    for _ in range(ROUNDS):
        with VarveBroker(settings={"DISKLESS_APPEND_COMMIT_INTERVAL_MS": "100"}) as broker:
            broker.start()
            for partitions, values in rates.items():
                values.append(Load(broker, partitions).run(6).uploads_a_second)
    for partitions, values in rates.items():
        figure(f"uploads a second, 500 batches a second over {partitions} partitions", values, "/s")


def group_phases(broker):
    """What each phase of varve_group_load printed, by its name."""
    program = VarveBroker.program().parent / "varve_group_load"
    output = subprocess.run([program, "--port", str(broker.port), "--broker-pid", str(broker.process.pid)],
                            check=True, capture_output=True, text=True).stdout
    return {match[1]: dict(pair.split("=") for pair in match[2].split())
            for match in re.finditer(r'phase="([^"]*)" (.*)', output)}


def groups(classes):
    results = {}
    for _ in range(GROUP_ROUNDS):
        for kind in classes:
            with kind(settings=GROUP_SETTINGS[kind]) as broker:
                broker.start()
                for phase, values in group_phases(broker).items():
                    results.setdefault((kind.name, phase), []).append(values)
    for (name, phase), rounds in results.items():
        for key, unit in (("per_second", "/s"), ("p99_ms", "ms"), ("broker_cpu_seconds", "s")):
            figure(f"{name}: {phase}, {key}", [float(values[key]) for values in rounds], unit)


def main():
    classes = [VarveBroker, KafkaBroker] if "--kafka" in sys.argv[1:] else [VarveBroker]
    if "--groups" in sys.argv[1:]:
        groups(classes)
        return
    starts()
    uploads()
    latencies(classes)


if __name__ == "__main__":
    main()
