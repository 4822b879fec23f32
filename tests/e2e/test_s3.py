"""A broker whose records lie in a bucket: with two stores that share no code."""

import os
import subprocess
import unittest
from contextlib import ExitStack
from pathlib import Path

from harness import s3_requests, wire
from harness.broker import VarveBroker, accepts
from harness.object_store import STORES, SeaweedFS, VersityGateway
from harness.places import ROOT, free_port
from harness.wire import Connection, batch

BUCKET = "records"
OBJECTS = 1100


def faketime(offset):
    """Settings that let a broker see another time of day."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    return {"LD_PRELOAD": str(library), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


class Conformance(unittest.TestCase):
    """What every object store must do, the store's part: src/object_store/store_conformance.h."""

    # SeaweedFS keeps keys in folders: it lists folder by folder, and takes a backslash for a slash. Neither meets varve's
    # keys, of which all below a prefix are of one depth.
    NOT_DONE = {"seaweedfs": "ListsInOrderOfKeyByPages/*:*OddKeysAreData/*"}

    def test_both_stores_do_what_every_object_store_must(self):
        for kind in STORES:
            with self.subTest(store=kind.name), kind() as store:
                store.make_bucket("conformance")
                done = subprocess.run([ROOT / "build/dev/src/object_store/s3/object_store_s3_test",
                                       f"--gtest_filter=RealStore/*-*{self.NOT_DONE.get(kind.name, 'none')}"], capture_output=True, text=True, check=False,
                                      env={**os.environ, "VARVE_S3_ENDPOINT": store.endpoint,
                                           "AWS_ACCESS_KEY_ID": s3_requests.ACCESS_KEY,
                                           "AWS_SECRET_ACCESS_KEY": s3_requests.SECRET_KEY})
                self.assertEqual(0, done.returncode, done.stdout[-5000:])


class Records(unittest.TestCase):
    def test_records_lie_in_the_bucket_and_outlive_the_broker(self):
        for kind in STORES:
            with self.subTest(store=kind.name), ExitStack() as stack:
                store = stack.enter_context(kind())
                store.make_bucket(BUCKET)
                broker = stack.enter_context(VarveBroker(settings=store.settings(BUCKET)))
                broker.start()
                text = "".join(f"record {i}\n" for i in range(1000))
                kcat = lambda *arguments, **options: subprocess.run(
                    ["kcat", "-b", broker.bootstrap, *arguments], capture_output=True, text=True, check=True, timeout=60,
                    **options).stdout
                kcat("-P", "-t", "t", "-z", "zstd", input=text)
                read = lambda: kcat("-C", "-t", "t", "-o", "beginning", "-e", "-q")
                self.assertEqual(text, read())
                self.assertTrue(any("/_wal/" in key for key in s3_requests.keys(store.port, BUCKET)))
                self.assertFalse(list(broker.data_folder.glob("objects")), "nothing lies on the disk but the log")
                broker.kill()
                broker.start()
                self.assertEqual(text, read())
                self.assertEqual(0, broker.stop())


class Pages(unittest.TestCase):
    """C115: what lies beyond the first thousand keys of a listing."""

    def test_c115_a_topic_of_more_objects_than_a_page_is_read_whole(self):
        with ExitStack() as stack:
            store = stack.enter_context(SeaweedFS())
            store.make_bucket(BUCKET)
            settings = {**store.settings(BUCKET), "DISKLESS_APPEND_COMMIT_INTERVAL_MS": "1"}
            broker = stack.enter_context(VarveBroker(settings=settings)).start()
            with Connection(broker.port) as connection:
                self.assertEqual(wire.NONE, connection.create_topic("t", 1))
                for number in range(OBJECTS):
                    self.assertEqual(wire.NONE, connection.produce("t", 0, batch([b"%d" % number]))[0])
            self.assertGreater(len(self.objects(store)), 1000)
            broker.kill()
            broker.start()
            text = subprocess.run(["kcat", "-b", broker.bootstrap, "-C", "-t", "t", "-o", "beginning", "-e", "-q"],
                                  capture_output=True, text=True, check=True, timeout=120).stdout
            self.assertEqual([str(number) for number in range(OBJECTS)], text.split())

    def objects(self, store):
        return [key for key in s3_requests.keys(store.port, BUCKET) if "/_wal/" in key]


class Refusals(unittest.TestCase):
    """Of starts that cannot be right, each with its sentence."""

    @classmethod
    def setUpClass(cls):
        cls.store = SeaweedFS()
        cls.addClassCleanup(cls.store.__exit__)
        cls.store.start()
        cls.store.make_bucket(BUCKET)

    def complaint(self, **settings):
        with VarveBroker(settings={**self.store.settings(BUCKET), "KAFSCALE_STARTUP_TIMEOUT_SEC": "5", **settings}) as broker:
            broker.spawn()
            code = broker.wait_for_end(30)
            self.assertNotIn(code, (0, None), broker.log_tail())
            self.assertNotIn(s3_requests.SECRET_KEY, broker.log())
            return broker.complaint()

    def test_a_bucket_that_is_not_there(self):
        self.assertIn("bucket", self.complaint(KAFSCALE_S3_BUCKET="not-there"))

    def test_wrong_keys(self):
        self.assertIn("KAFSCALE_S3_SECRET_KEY is not the key's", self.complaint(KAFSCALE_S3_SECRET_KEY="wrong"))
        self.assertIn("the store does not know KAFSCALE_S3_ACCESS_KEY", self.complaint(KAFSCALE_S3_ACCESS_KEY="AKNOBODY"))

    def test_another_region(self):
        with VersityGateway() as store:
            store.make_bucket(BUCKET)
            complaint = self.complaint(**store.settings(BUCKET), KAFSCALE_S3_REGION="eu-west-1")
            self.assertIn("KAFSCALE_S3_REGION", complaint)
            self.assertIn("us-east-1", complaint)

    def test_c119_a_clock_that_is_20_minutes_off(self):
        for offset in ("+20m", "-20m"):
            with self.subTest(offset), VersityGateway() as store:
                store.make_bucket(BUCKET)
                # Both the store's date and the broker's, so that nobody has to guess whose is wrong.
                complaint = self.complaint(**store.settings(BUCKET), **faketime(offset))
                self.assertIn("(set the clock of this machine); here it is ", complaint)

    def test_an_empty_log_beside_a_full_bucket(self):
        with VarveBroker(settings=self.store.settings(BUCKET)) as first:
            first.start()
            first.stop()
        complaint = self.complaint()
        self.assertIn("another metadata log", complaint)
        self.assertIn("varve restore", complaint)

    def test_a_store_that_is_not_there(self):
        port = free_port()
        self.assertFalse(accepts(port))
        self.assertIn(f"127.0.0.1:{port}", self.complaint(KAFSCALE_S3_ENDPOINT=f"http://127.0.0.1:{port}"))
