"""S3 stores as processes on loopback, for brokers to keep their records in."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from harness import s3_requests
from harness.places import TOOLS, free_port

START_SECONDS_MAX = 60


class StoreFailed(Exception):
    pass


class ObjectStore:
    """A store owns a folder and a process group; the end of a `with` leaves nothing behind."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="varve-e2e-store-"))
        self.port = free_port()
        self.process = None

    def command(self):
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, env=self.environment(), cwd=self.folder,
                                            start_new_session=True)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise StoreFailed(f"{self.name} does not serve\n{self.log_tail()}")
            time.sleep(0.1)
        return self

    def _answers(self):
        try:
            return s3_requests.request(self.port, "GET", "/")[0] == 200
        except OSError:
            return False

    def make_bucket(self, bucket):
        """Until the store can take one: its parts come up one after the other."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                return s3_requests.make_bucket(self.port, bucket)
            except (s3_requests.S3Failed, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def kill(self):
        process, self.process = self.process, None
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def settings(self, bucket):
        """What a broker has to be told."""
        return {"KAFSCALE_S3_BUCKET": bucket, "KAFSCALE_S3_ENDPOINT": self.endpoint,
                "KAFSCALE_S3_ACCESS_KEY": s3_requests.ACCESS_KEY, "KAFSCALE_S3_SECRET_KEY": s3_requests.SECRET_KEY}

    def log_tail(self, lines=30):
        return "\n".join((self.folder / "log").read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception):
        try:
            if self.process is not None:
                self.kill()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class SeaweedFS(ObjectStore):
    name = "seaweedfs"

    def command(self):
        identity = {"name": "varve", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
                    "credentials": [{"accessKey": s3_requests.ACCESS_KEY, "secretKey": s3_requests.SECRET_KEY}]}
        config = self.folder / "s3.json"
        config.write_text(json.dumps({"identities": [identity]}))
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        program = next((TOOLS / "seaweedfs").glob("lib/python3*/site-packages/**/weed"), TOOLS / "seaweedfs/bin/weed")
        # Of gRPC too: by default 10,000 above the others, where outgoing connections take theirs from.
        ports = [*(f"-{part}.port={free_port()}" for part in ("master", "volume", "filer")),
                 *(f"-{part}.port.grpc={free_port()}" for part in ("master", "volume", "filer", "s3"))]
        return [str(program), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}", "-filer", "-s3",
                f"-s3.port={self.port}", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={config}",
                "-master.volumeSizeLimitMB=1024", *ports]


class VersityGateway(ObjectStore):
    name = "versitygw"

    def command(self):
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        return [str(TOOLS / "versitygw" / "bin" / "versitygw"), "--port", f"127.0.0.1:{self.port}", "posix", str(data)]

    def environment(self):
        return {**os.environ, "ROOT_ACCESS_KEY": s3_requests.ACCESS_KEY, "ROOT_SECRET_KEY": s3_requests.SECRET_KEY}


STORES = (SeaweedFS, VersityGateway)
