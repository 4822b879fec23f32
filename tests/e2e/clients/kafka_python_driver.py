"""Drives kafka-python; runs in a venv that has it. Called as record_lines.py describes."""

import sys
import time

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaConnectionError, KafkaError, OffsetOutOfRangeError

from record_lines import PATIENCE_SECONDS, RebalanceNotes, record_of, run_steps


class KafkaPythonDriver:
    def __init__(self, bootstrap):
        self._bootstrap = bootstrap
        self._consumer = None

    def create(self, topic, partitions):
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap)
        admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)],
                            timeout_ms=PATIENCE_SECONDS * 1000)
        admin.close()

    def delete(self, topic):
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap)
        admin.delete_topics([topic], timeout_ms=PATIENCE_SECONDS * 1000)
        admin.close()

    def produce(self, topic, codec, records):
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, acks="all", linger_ms=5,
                                 compression_type=None if codec == "none" else codec)
        futures = [producer.send(topic, partition=record.partition, key=record.key, value=record.value,
                                 headers=list(record.headers), timestamp_ms=record.timestamp) for record in records]
        producer.flush(PATIENCE_SECONDS)
        results = [record._replace(offset=future.get(PATIENCE_SECONDS).offset)
                   for record, future in zip(records, futures)]
        producer.close()
        return results

    def consume(self, topic, partitions):
        consumer = self._open_consumer()
        targets = [TopicPartition(topic, partition) for partition in range(partitions)]
        records = []
        for target, end in sorted(consumer.end_offsets(targets).items()):
            if end == 0:
                continue
            consumer.assign([target])
            consumer.seek(target, 0)
            while not records or records[-1].partition != target.partition or records[-1].offset < end - 1:
                records += self._poll(consumer, target)
        return records

    def seek(self, topic, points):
        consumer = self._open_consumer()
        found = []
        for partition, kind, number in points:
            target, offset = TopicPartition(topic, partition), number
            if kind == "time":
                answer = consumer.offsets_for_times({target: number})[target]
                if answer is None:
                    found.append(None)
                    continue
                offset = answer.offset
            consumer.assign([target])
            consumer.seek(target, offset)
            found.append(self._poll(consumer, target, 1)[0])
        return found

    def reset(self, topic, offset, policy):
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None, enable_auto_commit=False,
                                 auto_offset_reset=policy, fetch_max_wait_ms=100)
        target = TopicPartition(topic, 0)
        consumer.assign([target])
        consumer.seek(target, offset)
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while time.monotonic() < deadline:
                messages = consumer.poll(timeout_ms=200, max_records=1).get(target)
                if messages:
                    return messages[0].offset
                if consumer.position(target) != offset:
                    return consumer.position(target)
            raise TimeoutError("the position stays")
        except OffsetOutOfRangeError:
            return None
        finally:
            consumer.close()

    def member(self, group, topics, options, log):
        settings = {"group_instance_id": options["instance"]} if "instance" in options else {}
        if "api_version_auto_timeout_ms" in KafkaConsumer.DEFAULT_CONFIG:  # 2.0.2 waits for 2 s, too little among many
            settings["api_version_auto_timeout_ms"] = PATIENCE_SECONDS * 1000
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=group, enable_auto_commit=False,
                                 auto_offset_reset="earliest", fetch_max_wait_ms=100, heartbeat_interval_ms=500,
                                 session_timeout_ms=int(options.get("session", 6000)), **settings)
        consumer.subscribe(topics, listener=Listener(log))
        while not log.must_stop():
            try:
                found = consumer.poll(timeout_ms=100, max_records=100)
            except KafkaConnectionError:  # 3.0 may say so where 2.0 only tries again
                continue
            for target, messages in found.items():
                log.records(target.topic, map(record_of, messages))
            if found:
                # What poll() has given out, of all partitions.
                next_offsets = [(*target, messages[-1].offset + 1) for target, messages in found.items()]
                try:
                    consumer.commit()
                    log.committed(next_offsets)
                except KafkaError as error:
                    log.refused(repr(error))
        consumer.close()
        log.left()

    def _open_consumer(self):
        if self._consumer is None:
            self._consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None, check_crcs=True,
                                           enable_auto_commit=False, auto_offset_reset="none",
                                           fetch_max_wait_ms=100)
        return self._consumer

    @staticmethod
    def _poll(consumer, target, count=1000):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            messages = consumer.poll(timeout_ms=500, max_records=count).get(target)
            if messages:
                return [record_of(message) for message in messages]
        raise TimeoutError("no record came")


class Listener(RebalanceNotes, ConsumerRebalanceListener):
    pass


run_steps(KafkaPythonDriver(sys.argv[1]), sys.argv[2])
