"""Runs the tests in tests/e2e. Called by ./test; by hand: tests/e2e/setup.sh && python3 tests/e2e/run.py [PATTERN].

    --broker varve|kafka   which broker; kafka proves the tests themselves (needs setup.sh --kafka), and leaves out
                           those that only varve can take
    --timed yes|no         only those that measure time, or none of them: nothing may run beside them
    --report FILE          outcomes as JSON, for tools/run_tests.py
    PATTERN                only tests whose name holds it
"""

import argparse
import json
import os
import sys
import time
import traceback
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from harness.places import mode  # noqa: E402

# Tests of what a client can see, which hold for any broker.
ANY_BROKER = ("test_answers", "test_applications", "test_cases", "test_client_cases", "test_clients",
              "test_console_tools", "test_groups", "test_group_kill", "test_protocol", "test_kill")
# What takes too long for a quick run: many starts of Java, a wait of a minute, the same once more.
NOT_QUICK = ("test_applications", "test_console_tools.ConsoleTools.test_kafka_", "test_deletion", "test_s3_clients")

# Those that hold the broker to a time, and fail where something else has the machine.
TIMED = ("test_start_and_stop", "test_puts", "test_s3_costs")


class Result(unittest.TestResult):
    """Each test is one outcome; a failed subtest makes its test fail and adds its text."""

    def __init__(self):
        super().__init__()
        self.outcomes = []
        self._began = 0.0

    def startTest(self, test):
        super().startTest(test)
        self._began = time.monotonic()
        self.outcomes.append({"name": name_of(test), "status": "passed", "output": ""})
        print(f"  {name_of(test)} ...", flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        last = self.outcomes[-1]
        print(f"    {last['status']} in {time.monotonic() - self._began:.1f} s", flush=True)

    def _failed(self, test, error):
        if not self.outcomes or not name_of(test).startswith(self.outcomes[-1]["name"]):
            self.outcomes.append({"name": name_of(test), "status": "passed", "output": ""})
        text = "".join(traceback.format_exception(*error))
        self.outcomes[-1]["status"] = "failed"
        self.outcomes[-1]["output"] += f"{name_of(test)}\n{text}\n"
        print(text, flush=True)

    def addError(self, test, err):
        self._failed(test, err)

    def addFailure(self, test, err):
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        print(f"    {subtest._subDescription()} at {time.monotonic() - self._began:.1f} s", flush=True)
        if err is not None:
            self._failed(subtest, err)

    def addSkip(self, test, reason):
        self.outcomes[-1].update(status="skipped", output=reason)


def name_of(test):
    return "e2e." + test.id()


def all_tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from all_tests(test)
        else:
            yield test


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--broker", choices=("varve", "kafka"), default="varve")
    parser.add_argument("--timed", choices=("yes", "no"))
    parser.add_argument("--report")
    parser.add_argument("pattern", nargs="?", default="")
    options = parser.parse_args()
    os.environ["VARVE_E2E_BROKER"] = options.broker

    found = unittest.defaultTestLoader.discover(str(Path(__file__).parent), "test_*.py")
    chosen = [test for test in all_tests(found)
              if options.pattern in name_of(test) and (options.broker == "varve" or test.id().startswith(ANY_BROKER))
              and options.timed in (None, "yes" if test.id().startswith(TIMED) else "no")]
    left_out = [test for test in chosen
                if mode() == "quick" and not options.pattern and test.id().startswith(NOT_QUICK)]
    result = Result()
    unittest.TestSuite(test for test in chosen if test not in left_out).run(result)
    result.outcomes += [{"name": name_of(test), "status": "skipped", "output": "too long for a quick run"}
                        for test in left_out]

    counts = {status: sum(1 for outcome in result.outcomes if outcome["status"] == status)
              for status in ("passed", "failed", "skipped")}
    if options.report:
        Path(options.report).write_text(json.dumps(result.outcomes))
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
