"""What tests of one broker share, which all tests of a class use: connections, topics that are ready, waiting."""

import time
import unittest

from harness import wire
from harness.broker import broker_class
from harness.wire import Connection


class OneBroker(unittest.TestCase):
    CONNECTION_SECONDS = 20
    WAIT_SECONDS = 10

    @classmethod
    def setUpClass(cls):
        cls.broker = broker_class()()
        cls.addClassCleanup(cls.broker.__exit__)
        cls.broker.start()

    def connect(self, timeout=None):
        connection = Connection(self.broker.port, timeout or self.CONNECTION_SECONDS)
        self.addCleanup(connection.__exit__)
        return connection

    def make_topic(self, connection, name, partitions, configs):
        """Creates a topic and waits until it can be written to; configs have "_" for "."."""
        settings = [(config.replace("_", "."), value) for config, value in configs.items()]
        self.assertEqual(wire.NONE, connection.create_topic(name, partitions, settings))
        self.wait_for(lambda: all(connection.list_offset(name, partition) == (wire.NONE, 0)
                                  for partition in range(partitions)))
        return name

    def wait_for(self, condition, seconds=None):
        deadline = time.monotonic() + (seconds or self.WAIT_SECONDS)
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not come true in time")
            time.sleep(0.02)
