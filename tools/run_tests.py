"""Runs the stages of ./test and prints one summary. Standard library only; docs/testing.md explains the stages.

A stage builds what it needs and gives a list of Outcome. A stage that cannot build is one failed test, so that a
broken build can never look like a green run.

One stage runs after the other, but for what would leave the machine idle: the clients of e2e come from the network while
dev is built, and while they are at work, and mostly wait, the builds of the later stages go on beside them.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOBS = str(os.cpu_count() or 2)

# Counts per mode, each of which the environment can override. Tests read them from the environment too, so a test
# started by hand has the defaults of its own code.
COUNTS = {
    #                        quick  normal   long
    "VARVE_SIM_SEEDS":      (30,    300,     1000),
    "VARVE_ASAN_SIM_SEEDS": (5,     20,      60),
    "VARVE_BUG_SECONDS":    (10,    20,      120),
    "VARVE_KILLS":          (3,     20,      100),
    "VARVE_POWER_CUTS":     (10,    40,      200),
    "VARVE_FUZZ_SECONDS":   (1,     5,       60),
    "VARVE_RECORDS":        (500,   5000,    5000),
}
MODES = ("quick", "normal", "long")
# Tests labelled slow are for the modes above quick, those labelled long for --long only.
EXCLUDED_LABELS = {"quick": "^(slow|long)$", "normal": "^long$", "long": ""}
# ThreadSanitizer is for the code where threads meet, above all a whole broker used from many threads (app_varve_test);
# the rest runs on one executor and the simulator covers it.
TSAN_TARGETS = re.compile(r"^(runtime|runtime_asio|runtime_http|runtime_tls|object_store_fs|metadata_log_sqlite|"
                          r"storage_ingest|storage_fetch|broker_server|app_varve)_test$")
FUZZERS = re.compile(r"_fuzz$")


# Processes of this program; two stages may have one each.
RUNNING = set()


@dataclass
class Outcome:
    name: str
    status: str  # passed, failed or skipped
    output: str = ""


@dataclass
class Stage:
    name: str
    modes: tuple
    build: object  # of a Context, and whether to leave the machine to others
    run: object
    built: object = None  # of a build that was begun ahead, its Future
    outcomes: list = field(default_factory=list)
    seconds: float = 0.0

    def count(self, status):
        return sum(1 for outcome in self.outcomes if outcome.status == status)


class BuildFailed(Exception):
    pass


class Context:
    def __init__(self, mode):
        self.mode = mode
        self.environment = dict(os.environ)
        for name, values in COUNTS.items():
            self.environment.setdefault(name, str(values[MODES.index(mode)]))
        self.environment["VARVE_TEST_MODE"] = mode
        symbolizer = Path("/usr/bin/llvm-symbolizer-19")
        if symbolizer.exists():
            for sanitizer in ("ASAN", "TSAN", "UBSAN"):
                self.environment.setdefault(f"{sanitizer}_SYMBOLIZER_PATH", str(symbolizer))
        self.environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        self.clients = None  # the Future of bring_clients
        self.build_ahead = None  # begins the builds of the stages after this one

    def number(self, name):
        return int(self.environment[name])


def log_path(name):
    folder = ROOT / "build" / "test-logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.log"


def run_logged(command, log, environment=None, timeout=None, is_patient=False):
    """Runs a command in a process group of its own, all output to `log`; kills the group at the timeout. A patient one
    takes only what of the machine others leave.

    Returns its exit code, or None if it was killed.
    """
    if is_patient:
        command = ["nice", "-n", "19", *command]
    with open(log, "ab") as output:
        output.write(("$ " + " ".join(map(str, command)) + "\n").encode())
        output.flush()
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        RUNNING.add(process)
        try:
            if is_patient:
                leave_machine_to_others(process)
            return process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            RUNNING.discard(process)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def leave_machine_to_others(process):
    """Where the kernel weighs sessions against each other, being nice within one's own says nothing."""
    try:
        Path(f"/proc/{process.pid}/autogroup").write_text("19")
    except OSError:
        pass


def tail(path, lines=60):
    text = Path(path).read_text(errors="replace").splitlines()
    return "\n".join(text[-lines:])


def configure(preset):
    if not (ROOT / "build" / preset / "build.ninja").exists():
        log = log_path(f"configure-{preset}")
        log.unlink(missing_ok=True)
        if run_logged(["cmake", "--preset", preset], log) != 0:
            raise BuildFailed(tail(log))


def targets_of(preset, pattern):
    """Names of the build targets that match; configures first."""
    configure(preset)
    listing = subprocess.run(["ninja", "-C", f"build/{preset}", "-t", "targets", "all"], cwd=ROOT,
                             capture_output=True, text=True, check=False)
    names = (line.split(":")[0] for line in listing.stdout.splitlines())
    return sorted({name for name in names if pattern.search(name) and "/" not in name and not name.startswith("cmake_")})


def build(preset, targets=(), is_patient=False):
    configure(preset)
    log = log_path(f"build-{preset}")
    log.unlink(missing_ok=True)
    print(f"  building {preset} ...", flush=True)
    if run_logged(["ninja", "-C", f"build/{preset}", *targets], log, is_patient=is_patient) != 0:
        errors = [line for line in log.read_text(errors="replace").splitlines()
                  if "error:" in line or line.startswith("FAILED")]
        raise BuildFailed("\n".join(errors[:20]) + "\n" + tail(log, 30))


def all_of(preset):
    return lambda context, is_patient: build(preset, is_patient=is_patient)


def run_ctest(context, preset, name, extra=(), environment=None, timeout=1800):
    """Runs a preset's tests; each becomes an Outcome under its ctest name."""
    report = ROOT / "build" / "test-logs" / f"{name}.xml"
    report.unlink(missing_ok=True)
    log = log_path(name)
    log.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", f"build/{preset}", "-j", JOBS, "--output-on-failure",
               "--test-output-size-passed", "100", "--no-tests=error", "--output-junit", str(report), *extra]
    if EXCLUDED_LABELS[context.mode]:
        command += ["-LE", EXCLUDED_LABELS[context.mode]]
    code = run_logged(command, log, {**context.environment, **(environment or {})}, timeout)
    outcomes = []
    if report.exists():
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            status = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
            # ctest calls a test whose program is missing "notrun" but reports a failure inside.
            if case.find("failure") is not None:
                status = "failed"
            outcomes.append(Outcome(case.get("name"), status, case.findtext("system-out") or ""))
    if code != 0 and not any(outcome.status == "failed" for outcome in outcomes):
        reason = "ran out of time" if code is None else f"ctest ended with {code}"
        outcomes.append(Outcome(f"{name}: {reason}", "failed", tail(log)))
    return outcomes


def stage_dev(context):
    return run_ctest(context, "dev", "dev")


def stage_asan(context):
    seeds = {"VARVE_SIM_SEEDS": context.environment["VARVE_ASAN_SIM_SEEDS"]}
    # The sanitizer slows the planted bugs' search too much to be worth it: the dev stage runs them.
    return run_ctest(context, "asan", "asan", ("-E", "[Pp]lanted"), seeds)


def build_tsan(context, is_patient):
    targets = targets_of("tsan", TSAN_TARGETS)
    if not targets:
        raise BuildFailed("no target has a name that TSAN_TARGETS knows")
    build("tsan", targets, is_patient)


def stage_tsan(context):
    prefixes = "|".join(re.escape(target.removesuffix("_test")) for target in targets_of("tsan", TSAN_TARGETS))
    return run_ctest(context, "tsan", "tsan", ("-R", rf"^({prefixes})\."))


def build_fuzz(context, is_patient):
    programs = targets_of("asan", FUZZERS)
    if not programs:
        raise BuildFailed("there is no target x_fuzz")
    build("asan", programs, is_patient)


def stage_fuzz(context):
    with ThreadPoolExecutor(int(JOBS)) as pool:
        return list(pool.map(lambda program: fuzz(context, program), targets_of("asan", FUZZERS)))


def fuzz(context, program):
    path = next(path for path in (ROOT / "build/asan").rglob(program) if path.is_file() and os.access(path, os.X_OK))
    log = log_path(f"fuzz-{program}")
    log.unlink(missing_ok=True)
    corpus = ROOT / "build" / "fuzz-corpus" / program
    corpus.mkdir(parents=True, exist_ok=True)
    seconds = context.number("VARVE_FUZZ_SECONDS")
    command = [str(path), f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
               f"-artifact_prefix={corpus.parent}/{program}-", str(corpus)]
    code = run_logged(command, log, context.environment, seconds * 3 + 60)
    return Outcome(f"fuzz.{program}", "passed" if code == 0 else "failed", tail(log))


def bring_clients(context):
    """What e2e needs from the network. Gives the exit code."""
    log = log_path("e2e-clients")
    log.unlink(missing_ok=True)
    reference = [] if context.mode == "quick" else ["--kafka"]
    return run_logged(["tests/e2e/setup.sh", *reference], log, context.environment)


def build_e2e(context, is_patient):
    build("release", ["varve", "varve_store_proxy"], is_patient)
    # The release build has no programs for tests.
    build("dev", ["protocol_vectors", "object_store_s3_test"], is_patient)


def stage_e2e(context):
    print("  clients ...", flush=True)
    if context.clients.result() != 0:
        raise BuildFailed(tail(log_path("e2e-clients")))
    log = log_path("e2e")
    log.unlink(missing_ok=True)
    outcomes = run_e2e(context, log, "yes")
    context.build_ahead()
    return outcomes + run_e2e(context, log, "no")


def run_e2e(context, log, timed):
    """The tests that measure time, beside which nothing may be built, or the others."""
    runner = ROOT / "tests" / "e2e" / "run.py"
    report = ROOT / "build" / "test-logs" / "e2e.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, str(runner), "--timed", timed, "--report", str(report)]
    code = run_logged(command, log, context.environment, 3600)
    outcomes = []
    if report.exists():
        outcomes = [Outcome(**entry) for entry in json.loads(report.read_text())]
    if code != 0 and not any(outcome.status == "failed" for outcome in outcomes):
        outcomes.append(Outcome(f"e2e: the runner ended with {code}", "failed", tail(log)))
    return outcomes


def stage_lint(context):
    log = log_path("lint")
    log.unlink(missing_ok=True)
    code = run_logged([sys.executable, "tools/lint.py", "build/dev"], log, context.environment)
    return [Outcome("lint", "passed" if code == 0 else "failed", tail(log))]


def stages():
    every = MODES
    return [
        Stage("dev", every, all_of("dev"), stage_dev),
        Stage("e2e", every, build_e2e, stage_e2e),
        Stage("asan", ("normal", "long"), all_of("asan"), stage_asan),
        Stage("tsan", ("normal", "long"), build_tsan, stage_tsan),
        Stage("fuzz", ("normal", "long"), build_fuzz, stage_fuzz),
        Stage("lint", ("long",), all_of("dev"), stage_lint),  # for headers that the build makes
    ]


def run_stage(stage, context):
    print(f"== {stage.name}", flush=True)
    started = time.monotonic()
    try:
        if stage.built:
            stage.built.result()
        else:
            stage.build(context, False)
        stage.outcomes = stage.run(context)
    except BuildFailed as failure:
        stage.outcomes = [Outcome(f"{stage.name}: build", "failed", str(failure))]
    stage.seconds = time.monotonic() - started
    for outcome in stage.outcomes:
        if outcome.status == "failed":
            print(f"  FAILED {outcome.name}")
            print("    " + "\n    ".join(outcome.output.splitlines()[-60:]), flush=True)
    print(f"  {stage.count('passed')} passed, {stage.count('failed')} failed in {stage.seconds:.0f} s", flush=True)


def run_stages(chosen, context):
    with ThreadPoolExecutor(1) as aside:  # one thing at a time beside the stages
        if any(stage.name == "e2e" for stage in chosen):
            context.clients = aside.submit(bring_clients, context)
        try:
            for index, stage in enumerate(chosen):
                later = chosen[index + 1:]
                context.build_ahead = lambda later=later: begin_builds(later, context, aside)
                run_stage(stage, context)
        except KeyboardInterrupt:
            aside.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def begin_builds(stages_to_come, context, aside):
    for stage in stages_to_come:
        stage.built = aside.submit(stage.build, context, True)


def main():
    parser = argparse.ArgumentParser(prog="./test", description="Runs varve's tests.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", default="normal")
    mode.add_argument("--long", dest="mode", action="store_const", const="long")
    parser.add_argument("--only", default="", help="comma-separated stages")
    parser.add_argument("--list", action="store_true", help="name the stages")
    options = parser.parse_args()

    only = [name for name in options.only.split(",") if name]
    known = stages()
    unknown = set(only) - {stage.name for stage in known}
    if unknown:
        parser.error(f"unknown stage {', '.join(sorted(unknown))}")
    if options.list:
        for stage in known:
            print(f"{stage.name:6} {', '.join(stage.modes)}")
        return 0

    context = Context(options.mode)
    chosen = [stage for stage in known if (stage.name in only if only else options.mode in stage.modes)]
    run_stages(chosen, context)

    print()
    print(f"{'stage':8}{'passed':>8}{'failed':>8}{'skipped':>8}{'seconds':>9}")
    for stage in chosen:
        print(f"{stage.name:8}{stage.count('passed'):8}{stage.count('failed'):8}{stage.count('skipped'):8}"
              f"{stage.seconds:9.0f}")
    for stage in chosen:
        for outcome in stage.outcomes:
            if outcome.status != "passed":
                print(f"{outcome.status}: {stage.name}: {outcome.name}")
    passed, failed, skipped = (sum(stage.count(status) for stage in chosen)
                               for status in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
