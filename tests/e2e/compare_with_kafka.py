"""Sends the requests of differential/ to Apache Kafka and to varve and prints what differs.

    compare_with_kafka.py [PATTERN]               scripts whose name holds it; differences that docs/differences.md lists
                                                  are counted only
    compare_with_kafka.py --show kafka [PATTERN]  only that broker (or varve); prints every request and its answer

By hand: tests/e2e/setup.sh --kafka, and a release build of varve.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from differential import comparison, run  # noqa: E402
from differential.side import Side  # noqa: E402


def show(broker, pattern):
    with broker:
        broker.start()
        scripts = [script for script in run.load_scripts() if pattern in script.name]
        steps = run.play(Side(broker), scripts)
    versions = {}
    for step in steps:
        text = f"{step.api} [{step.name}] {step.answer}"
        versions.setdefault(text, []).append(step.version)
    for text, numbers in versions.items():
        print(f"v{','.join(map(str, numbers))} {text}")


def compare(kafka, varve, pattern):
    with kafka, varve:
        kafka.start()
        varve.start()
        records = run.play_both(kafka, varve, lambda name: pattern in name)
    rows, requests, listed, differing, new = comparison.listed(), Counter(), Counter(), Counter(), []
    for step, differences in comparison.compare(*records):
        requests[step.api] += 1
        for difference in differences:
            row = next((row for row in rows if row.covers(difference)), None)
            if row:
                listed[step.api] += 1
            else:
                differing[step.api] += 1
                new.append(difference)
    for text in comparison.describe(new):
        print(text)
    for api in sorted(requests):
        print(f"{api}: {requests[api]} requests, {differing[api]} differences, {listed[api]} listed")
    return 1 if differing else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", choices=("kafka", "varve"))
    parser.add_argument("pattern", nargs="?", default="")
    options = parser.parse_args()
    kafka, varve = run.brokers()
    if options.show:
        show({"kafka": kafka, "varve": varve}[options.show], options.pattern)
        return 0
    return compare(kafka, varve, options.pattern)


if __name__ == "__main__":
    sys.exit(main())
