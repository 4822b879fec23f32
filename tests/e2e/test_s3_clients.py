"""What every client writes and reads, with the records in a bucket."""

import test_clients
from harness.broker import VarveBroker
from harness.object_store import SeaweedFS

BUCKET = "records"


class ClientMatrix(test_clients.ClientMatrix):
    @classmethod
    def make_broker(cls):
        store = SeaweedFS()
        cls.addClassCleanup(store.__exit__)
        store.start()
        store.make_bucket(BUCKET)
        return VarveBroker(settings=store.settings(BUCKET))
