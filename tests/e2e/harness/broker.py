"""A broker as a process: varve itself, or Apache Kafka as the reference. Both are used the same way.

A broker owns a folder and a process group. stop(), kill() and the end of a `with` leave neither a process nor a
listening port behind; the folder stays until remove().
"""

import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

from harness.places import ROOT, TOOLS, free_port

STOP_SECONDS_MAX = 30


class BrokerFailed(Exception):
    """The broker ended, or did not do what it was asked to; the text has the end of its log."""


class Broker:
    START_SECONDS_MAX = 60

    def __init__(self, folder=None):
        self.folder = Path(folder or tempfile.mkdtemp(prefix="varve-e2e-"))
        self.port = free_port()
        self.log_path = self.folder.with_name(self.folder.name + ".log")
        self._log_bytes_before = 0
        self.process = None
        # Called in the new process before the program starts.
        self.preexec = None

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    def command(self):
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    def is_ready(self):
        raise NotImplementedError

    def spawn(self):
        """Starts the process and returns at once."""
        assert self.process is None, "already started"
        with open(self.log_path, "ab") as log:
            self._log_bytes_before = log.tell()
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, env=self.environment(),
                                            start_new_session=True, preexec_fn=self.preexec)
        return self

    def start(self):
        """Starts the process and returns once it serves."""
        self.spawn()
        deadline = time.monotonic() + self.START_SECONDS_MAX
        while not self.is_ready():
            if self.process.poll() is not None:
                code = self.process.returncode
                self.process = None
                raise BrokerFailed(f"ended with {code} while starting\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerFailed(f"not ready after {self.START_SECONDS_MAX} s\n{self.log_tail()}")
            time.sleep(0.01)
        return self

    def stop(self):
        """SIGTERM; returns the exit code. A broker that does not end in time is killed, and that is an error."""
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"still there {STOP_SECONDS_MAX} s after SIGTERM\n{self.log_tail()}") from None
        self._check_gone()
        return code

    def kill(self):
        """SIGKILL to the whole group, as the out-of-memory killer would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._check_gone()

    def wait_for_end(self, seconds):
        """Waits for a process that ends by itself; returns its exit code, or None if it runs still."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._check_gone()
        return code

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.log_path.unlink(missing_ok=True)

    def log(self):
        """Of all starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_of_last_start(self):
        return self.log_path.read_bytes()[self._log_bytes_before:].decode(errors="replace")

    def log_tail(self, lines=30):
        return "\n".join(self.log().splitlines()[-lines:])

    def _check_gone(self):
        group, self.process = self.process.pid, None
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        os.killpg(group, signal.SIGKILL)
        raise BrokerFailed("left a process behind")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        try:
            if self.process is not None:
                self.kill()
        finally:
            self.remove()


def accepts(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


class VarveBroker(Broker):
    """`varve broker` of the release build, or of VARVE_PROGRAM; settings are KAFSCALE_* names to values."""

    name = "varve"

    def __init__(self, folder=None, settings=None):
        super().__init__(folder)
        self.metrics_port = free_port()
        self.data_folder = self.folder / "data"
        self.settings = dict(settings or {})
        self.arguments = ()

    @staticmethod
    def program():
        return Path(os.environ.get("VARVE_PROGRAM", ROOT / "build" / "release" / "varve"))

    def command(self):
        return [str(self.program()), "broker", *self.arguments]

    def environment(self):
        # Nothing of the caller's own settings may leak in, nor the counts of ./test, which varve would not know.
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("KAFSCALE_", "KAFKA_", "DISKLESS_", "VARVE_"))}
        return {**clean, "KAFSCALE_BROKER_ADDR": self.bootstrap,
                "KAFSCALE_METRICS_ADDR": f"127.0.0.1:{self.metrics_port}",
                "KAFSCALE_DATA_DIR": str(self.data_folder),
                # As for Apache Kafka below: a first member of a group waits for no others.
                "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0", **self.settings}

    def complaint(self):
        """Why the last start ended: what comes from "varve: " on, without lines of the log.

        The log itself is no proof that something was named: it holds each setting that was given, wrong or not.
        """
        lines = self.log_of_last_start().splitlines()
        first = next((at for at, line in enumerate(lines) if line.startswith("varve: ")), len(lines))
        return "\n".join(line for line in lines[first:] if not re.match(r"\d{4}-\d\d-\d\dT", line))

    def is_ready(self):
        return self.http("/readyz")[0] == 200

    def http(self, path):
        """(status, text) of the admin port; status 0 if nothing answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def inspect(self, *arguments):
        """(exit code, standard output, standard error) of `varve inspect`."""
        done = subprocess.run([str(self.program()), "inspect", *map(str, arguments)], capture_output=True,
                              text=True, timeout=30, check=False)
        return done.returncode, done.stdout, done.stderr


class KafkaBroker(Broker):
    """Apache Kafka: one KRaft node from the jars that `setup.sh --kafka` brings."""

    name = "kafka"
    # On a machine that is busy building, a JVM takes its time.
    START_SECONDS_MAX = 240

    def __init__(self, folder=None, settings=None, java_options=("-Xmx512m",)):
        super().__init__(folder)
        self.settings = dict(settings or {})
        self.java_options = java_options

    _PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
    _LOG4J = """\
Configuration:
  Appenders:
    Console: {name: out, PatternLayout: {pattern: "%d %p %m%n"}}
  Loggers:
    Root: {level: warn, AppenderRef: {ref: out}}
"""

    def start(self):
        properties = self.folder / "server.properties"
        if not properties.exists():
            text = self._PROPERTIES.format(port=self.port, controller=free_port(), folder=self.folder)
            properties.write_text(text + "".join(f"{key}={value}\n" for key, value in self.settings.items()))
            (self.folder / "log4j2.yaml").write_text(self._LOG4J)
            # In one word: an id may begin with '-'.
            self._java("kafka.tools.StorageTool", "format", "--standalone", f"--cluster-id={self._uuid()}",
                       "--config", str(properties))
        return super().start()

    def command(self):
        return [*self._java_command(), *self.java_options, "kafka.Kafka", str(self.folder / "server.properties")]

    def is_ready(self):
        return accepts(self.port)

    def _java_command(self):
        return ["java", "-cp", f"{TOOLS}/kafka/lib/*", f"-Dlog4j2.configurationFile={self.folder}/log4j2.yaml"]

    def _java(self, *arguments):
        done = subprocess.run([*self._java_command(), *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BrokerFailed(done.stdout + done.stderr)

    @staticmethod
    def _uuid():
        return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def broker_class():
    """The broker that the tests run against: VARVE_E2E_BROKER is varve (or not set) or kafka."""
    return {"varve": VarveBroker, "kafka": KafkaBroker}[os.environ.get("VARVE_E2E_BROKER", "varve")]
