"""Real clients against one broker: what any of them writes, others read, also after a restart.

Each client creates a topic a codec it has, writes records with keys, headers, null values and timestamps of their
own, and reads them back; the broker restarts; then each client reads what others wrote: whole topics, from single
offsets, and from points in time. Compared are partition, offset, key, value, headers and timestamp.
"""

import unittest
from concurrent.futures import ThreadPoolExecutor

from harness.broker import broker_class
from harness.clients import CLIENTS
from harness.places import count, mode
from harness.records import PARTITIONS, by_partition, difference, draw_points, draw_records
from harness.wire import Connection, codecs_of

import record_lines


# Clients at work at the same time. Each reader reads one topic in so many; with --long, all.
CLIENTS_AT_ONCE = 3
READS_ONE_TOPIC_IN = 3


class ClientMatrix(unittest.TestCase):
    """One broker for all; the tests run in the order of their names, and stand on each other's topics."""

    @classmethod
    def setUpClass(cls):
        cls.broker = cls.make_broker()
        cls.addClassCleanup(cls.broker.__exit__)
        cls.broker.start()
        cls.written = {}  # topic: the records as the broker has to have them
        cls.records = count("VARVE_RECORDS", 5000)

    @classmethod
    def make_broker(cls):
        return broker_class()()

    def codecs(self, client):
        # A quick run takes two codecs a client, and all five over the clients.
        if mode() != "quick":
            return client.codecs
        first = [other.name for other in CLIENTS].index(client.name)
        return (client.codecs[first % len(client.codecs)], client.codecs[(first + 2) % len(client.codecs)])

    def each(self, work, clients=CLIENTS):
        """Calls work(client) for each; each is a subtest."""
        with ThreadPoolExecutor(CLIENTS_AT_ONCE) as pool:
            futures = [(client, pool.submit(work, client)) for client in clients]
            for client, future in futures:
                with self.subTest(client=client.name):
                    future.result()

    def test_1_each_client_writes_and_reads_back(self):
        self.each(self.write_and_read_back)

    def write_and_read_back(self, client):
        steps, sent = client.steps(self.broker.bootstrap), {}
        for codec in self.codecs(client):
            topic, partitions = f"{client.name}.{codec}", self.partitions(client)
            records = client.sendable(draw_records(topic, self.records))
            sent[topic] = [record._replace(partition=record.partition % partitions) for record in records]
            steps.create(topic, partitions).produce(topic, codec, sent[topic]).consume(topic, partitions)
        results = steps.run()
        for topic, records in sent.items():
            written = results["produce", topic, topic.rpartition(".")[2]]
            self.check_written(client, records, written)
            self.check_read(client, self.in_order(written), results["consume", topic], topic)
            self.written[topic] = self.in_order(written)
            self.check_codec(topic, topic.rpartition(".")[2])

    def check_read(self, client, written, read, topic):
        self.assertIsNone(difference(client.sees(written), read), topic)

    def check_codec(self, topic, codec):
        """A client that finds no use for the codec here sends uncompressed without a word."""
        with Connection(self.broker.port) as connection:
            batches = codecs_of(connection.fetch(topic, 0, 0)[2])
        self.assertTrue(batches)
        number = record_lines.CODECS.index(codec)
        self.assertTrue(set(batches) <= {0, number} and number in batches, f"{topic}: {batches}")

    def test_2_after_a_restart_clients_read_what_others_wrote(self):
        self.assertEqual(0, self.restarted())
        self.each(self.read_all)

    def read_all(self, reader):
        steps, topics = reader.steps(self.broker.bootstrap), self.topics_of(reader)
        for topic in topics:
            steps.consume(topic, self.written[topic][-1].partition + 1)
        results = steps.run()
        for topic in topics:
            self.check_read(reader, self.written[topic], results["consume", topic], topic)

    def test_3_every_client_reads_from_any_offset_and_time(self):
        self.each(self.seek, [client for client in CLIENTS if client.seeks])

    def seek(self, reader):
        points_a_topic = 4 if mode() == "quick" else 8
        steps, expected = reader.steps(self.broker.bootstrap), {}
        for topic in self.topics_of(reader):
            points, expected[topic] = draw_points(f"{reader.name} {topic}", self.written[topic], points_a_topic)
            steps.seek(topic, points)
        results = steps.run()
        for topic, records in expected.items():
            self.assertIsNone(difference(records, results["seek", topic]), topic)

    def test_4_a_deleted_topic_is_gone_and_comes_back_empty(self):
        self.each(self.delete_and_make_again, [client for client in CLIENTS if client.is_full])

    def delete_and_make_again(self, client):
        topic = f"{client.name}.{self.codecs(client)[0]}"
        records = client.sendable(draw_records("again " + topic, 50))
        results = (client.steps(self.broker.bootstrap).delete(topic).create(topic, PARTITIONS)
                   .produce(topic, "none", records).consume(topic, PARTITIONS).run())
        written = results["produce", topic, "none"]
        self.check_written(client, records, written)
        self.check_read(client, self.in_order(written), results["consume", topic], topic)
        self.written[topic] = self.in_order(written)

    def partitions(self, client):
        # A topic that comes by being asked for has the broker's default, one partition.
        return PARTITIONS if client.is_full else 1

    def topics_of(self, reader):
        """The topics that it reads. Neighbours differ in their codec: so each reader meets all codecs, and each topic
        several readers."""
        self.assertTrue(self.written, "nothing was written")
        first = CLIENTS.index(reader)
        return [topic for at, topic in enumerate(sorted(self.written))
                if mode() == "long" or (at + first) % READS_ONE_TOPIC_IN == 0]

    def restarted(self):
        code = self.broker.stop()
        self.broker.start()
        return 0 if self.broker.name == "kafka" else code

    @staticmethod
    def in_order(records):
        return [record for _, records in sorted(by_partition(records).items()) for record in records]

    def check_written(self, client, sent, written):
        """The broker's offsets are dense from 0, in the order of sending; nothing else changed."""
        self.assertEqual(len(sent), len(written))
        for partition, records in by_partition(written).items():
            self.assertEqual(list(range(len(records))), [record.offset for record in records])
            mine = [record for record in sent if record.partition == partition]
            if not client.is_full:  # its timestamps are the clock's
                mine = [record._replace(timestamp=0) for record in mine]
                records = [record._replace(timestamp=0) for record in records]
            self.assertIsNone(difference([record._replace(offset=at) for at, record in enumerate(mine)], records))
