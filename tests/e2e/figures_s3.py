"""Prints the figures of docs/performance.md about a bucket. By hand: tests/e2e/setup.sh && python3 tests/e2e/figures_s3.py.

The store is SeaweedFS on the same machine; where "S3" is said, the proxy in front of it answers as slowly as S3: PUT with
a median of 50 ms and a 99th percentile of 150, everything else with 25 and 80. Nothing else should run meanwhile.
"""

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from figures import figure  # noqa: E402
from harness import s3_requests  # noqa: E402
from harness.broker import VarveBroker  # noqa: E402
from harness.object_store import SeaweedFS  # noqa: E402
from harness.store_proxy import StoreProxy  # noqa: E402
from harness.uploads import Load  # noqa: E402
from test_s3_costs import BUCKET, S3_LATENCIES  # noqa: E402

ROUNDS = 5
LOAD_SECONDS = 20


class Bucket:
    """A broker with a bucket of its own behind the proxy."""

    def __init__(self, latencies):
        self._latencies, self._stack = latencies, ExitStack()

    def __enter__(self):
        store = self._stack.enter_context(SeaweedFS())
        store.make_bucket(BUCKET)
        self.store, self.proxy = store, self._stack.enter_context(StoreProxy(store, **self._latencies))
        self.broker = self._stack.enter_context(VarveBroker(settings=self.proxy.settings(BUCKET))).start()
        return self

    def __exit__(self, *exception):
        self._stack.close()


def loads():
    """Uploads a second and latency, at 1 MB/s over so many partitions, and of 100 small requests a second on one."""
    kinds = {**{f"S3, 1 MB/s over {partitions} partitions": {"partitions": partitions, "record_bytes": 2000}
                for partitions in (1, 100, 1000, 10_000)},
             "S3, 100 records of 100 bytes a second on one partition": {"partitions": 1, "requests_a_second": 100}}
    results = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, kind in kinds.items():
            with Bucket(S3_LATENCIES) as bucket:
                results[name].append(Load(bucket.broker, **kind).run(LOAD_SECONDS))
    for name, rounds in results.items():
        figure(f"{name}: uploads", [load.uploads_a_second for load in rounds], "/s")
        for per_cent in (50, 99):
            figure(f"{name}: p{per_cent}", [load.latency_ms(per_cent) for load in rounds], "ms")


def kcat(broker, *arguments, **options):
    """Seconds that it took."""
    began = time.monotonic()
    subprocess.run(["kcat", "-b", broker.bootstrap, *arguments], check=True, stdout=subprocess.DEVNULL, timeout=300,
                   text=True, **options)
    return time.monotonic() - began


def page_scenario(name, latencies):
    """KafScale's page: 2,000 records of 256 bytes by kcat with its defaults, messages a second."""
    records, rates = 2000, {}
    text = "".join("m" * 256 + "\n" for _ in range(records))
    for _ in range(ROUNDS):
        with Bucket(latencies) as bucket:
            read = ("-C", "-t", "page", "-o", "beginning", "-c", str(records), "-q")
            produce = kcat(bucket.broker, "-P", "-t", "page", input=text)
            consume = kcat(bucket.broker, *read)
            bucket.broker.stop()
            bucket.broker.start()
            cold = kcat(bucket.broker, *read)
            for what, seconds in (("produce", produce), ("consume", consume), ("produce and consume", produce + consume),
                                  ("consume after a restart", cold)):
                rates.setdefault(what, []).append(records / seconds)
    for what, values in rates.items():
        figure(f"{name}, {records} records of 256 bytes: {what}", values, "messages/s")


def cold_reads():
    """GETs an object of a cold sequential read, and its speed."""
    gets, speeds = [], []
    text = "".join(f"{number} {'.' * 1000}\n" for number in range(50_000))
    for _ in range(ROUNDS):
        with Bucket(S3_LATENCIES) as bucket:
            kcat(bucket.broker, "-P", "-t", "cold", input=text)
            bucket.broker.stop()
            bucket.broker.start()
            objects = sum("/_wal/" in key for key in s3_requests.keys(bucket.store.port, BUCKET))
            before = bucket.proxy.counts()["get"]
            seconds = kcat(bucket.broker, "-C", "-t", "cold", "-o", "beginning", "-e", "-q")
            gets.append((bucket.proxy.counts()["get"] - before) / objects)
            speeds.append(len(text) / seconds / 1e6)
    figure("S3, a cold sequential read: GETs an object", gets, "")
    figure("S3, a cold sequential read", speeds, "MB/s")


def main():
    page_scenario("store beside the broker", {})
    page_scenario("S3", S3_LATENCIES)
    cold_reads()
    loads()


if __name__ == "__main__":
    main()
