"""./run, as the README says: one command, three lines to paste, and a second time in seconds."""

import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from harness.broker import accepts
from harness.places import ROOT, free_port
from harness.wire import Connection, batch

SECONDS_ON_A_BUILT_TREE_MAX = 10


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="varve-run-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.port = free_port()
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("KAFSCALE_", "DISKLESS_", "VARVE_"))}
        self.environment = {**clean, "KAFSCALE_DATA_DIR": str(self.folder / "data"),
                            "KAFSCALE_BROKER_ADDR": f"127.0.0.1:{self.port}",
                            "KAFSCALE_METRICS_ADDR": f"127.0.0.1:{free_port()}"}

    def start(self):
        """Runs ./run until it has printed its lines; gives the process and the lines."""
        output = self.folder / "output"
        with open(output, "wb") as file:
            process = subprocess.Popen([ROOT / "run"], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                       env=self.environment, start_new_session=True)
        self.addCleanup(self.end, process)
        began = time.monotonic()
        while len(lines := re.findall(r"^  ((?:seq|kcat) .*)$", output.read_text(), re.MULTILINE)) < 3:
            self.assertIsNone(process.poll(), output.read_text())
            self.assertLess(time.monotonic() - began, SECONDS_ON_A_BUILT_TREE_MAX, output.read_text())
            time.sleep(0.05)
        return process, lines

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def paste(self, line):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr if done.returncode else ""), line)
        return done.stdout

    def test_the_three_lines_that_run_prints_produce_and_consume(self):
        process, lines = self.start()
        self.assertEqual(3, len(lines))
        self.assertEqual("", self.paste(lines[0]))
        self.assertEqual("998\n999\n1000\n", self.paste(lines[1]))
        self.assertRegex(self.paste(lines[2]), r"^offset 500, written \d+ ms: 501\n$")

        # Ctrl-C goes to the whole group, as from a terminal.
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(0, process.wait(30))
        self.assertFalse(accepts(self.port))

        process, lines = self.start()
        self.assertEqual("998\n999\n1000\n", self.paste(lines[1]))
        os.kill(process.pid, signal.SIGTERM)
        self.assertEqual(0, process.wait(30))
        self.assertFalse(accepts(self.port))

    def test_ctrl_c_stops_the_broker_cleanly_while_requests_are_under_way(self):
        for _ in range(5):
            process, _ = self.start()
            with Connection(self.port) as connection:
                connection.create_topic("busy", 1)
                for _ in range(200):
                    connection.send_produce("busy", 0, batch([b"x" * 1000]))
                os.killpg(process.pid, signal.SIGINT)
                self.assertEqual(0, process.wait(30), "the broker's own code, not that of a signal")

    def test_run_build_only_builds_and_takes_seconds_where_all_is_built(self):
        began = time.monotonic()
        done = subprocess.run([ROOT / "run", "--build"], env=self.environment, capture_output=True, text=True,
                              timeout=600, check=True)
        self.assertLess(time.monotonic() - began, SECONDS_ON_A_BUILT_TREE_MAX)
        self.assertEqual("Built build/release/varve\n", done.stdout)
        self.assertFalse(accepts(self.port))
        self.assertFalse((self.folder / "data").exists())

    def test_a_port_that_is_taken_is_said(self):
        self.start()
        done = subprocess.run([ROOT / "run"], env=self.environment, capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn(f"something listens on 127.0.0.1:{self.port} already", done.stderr)
