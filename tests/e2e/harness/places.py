"""Where things are, and ports that nobody else takes."""

import os
import random
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
E2E = ROOT / "tests" / "e2e"
TOOLS = ROOT / ".tools"
# The drivers' shared module, which they find beside themselves.
sys.path.insert(0, str(E2E / "clients"))


def free_port():
    """A loopback port that is free now and below the range that outgoing connections take theirs from."""
    for _ in range(200):
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port between 20000 and 32000")


def count(name, default):
    """One of the counts that ./test sets (docs/testing.md)."""
    return int(os.environ.get(name, default))


def mode():
    return os.environ.get("VARVE_TEST_MODE", "normal")
