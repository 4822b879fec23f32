"""The proxy (src/apps/store_proxy/) between a broker and its store: counts requests, and makes them slow or wrong."""

import json
import subprocess
import time
import urllib.parse
import urllib.request

from harness.broker import VarveBroker, accepts
from harness.places import free_port

START_SECONDS_MAX = 30


class StoreProxy:
    """In front of a store of harness/object_store.py, which outlives it. Values are those of its own --help."""

    def __init__(self, store, seed=1, **values):
        self.store, self.port = store, free_port()
        program = VarveBroker.program().parent / "varve_store_proxy"
        self.process = subprocess.Popen([str(program), f"--port={self.port}", f"--store-port={store.port}",
                                         f"--seed={seed}", *_pairs(values)], stdin=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while not accepts(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError("the proxy does not serve")
            time.sleep(0.02)
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()

    def settings(self, bucket):
        """What a broker has to be told to go this way."""
        return {**self.store.settings(bucket), "KAFSCALE_S3_ENDPOINT": f"http://127.0.0.1:{self.port}"}

    def set(self, **values):
        query = "&".join(urllib.parse.quote(pair, safe="=") for pair in _pairs(values))
        self._ask(urllib.request.Request(f"http://127.0.0.1:{self.port}/_proxy/set?{query}", method="POST"))

    def counts(self):
        """Requests by kind ("put", "get", ...), "bytes_put" and "bytes_got", since the proxy's start."""
        return json.loads(self._ask(f"http://127.0.0.1:{self.port}/_proxy/counts"))

    @staticmethod
    def _ask(request):
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()


def _pairs(values):
    return [f"{name.replace('_', '-')}={value}" for name, value in values.items()]
