"""Drives confluent-kafka (librdkafka); runs in a venv that has it. Called as record_lines.py describes."""

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient, NewTopic

from record_lines import PATIENCE_SECONDS, Record, run_steps


class ConfluentDriver:
    def __init__(self, bootstrap):
        self._bootstrap = bootstrap
        self._consumer = None

    def create(self, topic, partitions):
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        futures = admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)],
                                      operation_timeout=PATIENCE_SECONDS)
        futures[topic].result(PATIENCE_SECONDS)

    def delete(self, topic):
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.delete_topics([topic], operation_timeout=PATIENCE_SECONDS)[topic].result(PATIENCE_SECONDS)

    def produce(self, topic, codec, records):
        # Idempotent for one half of the codecs, so that both kinds of producer meet the broker.
        producer = Producer({"bootstrap.servers": self._bootstrap, "compression.type": codec, "linger.ms": 5,
                             "enable.idempotence": codec in ("none", "lz4", "zstd"), "message.max.bytes": 1_000_000,
                             "queue.buffering.max.messages": len(records) + 1})
        results, errors = [None] * len(records), []

        def delivered(index):
            def callback(error, message):
                if error is not None:
                    errors.append(str(error))
                else:
                    results[index] = records[index]._replace(offset=message.offset())

            return callback

        for index, record in enumerate(records):
            producer.produce(topic, partition=record.partition, key=record.key, value=record.value,
                             headers=list(record.headers), timestamp=record.timestamp, callback=delivered(index))
            producer.poll(0)
        unsent = producer.flush(PATIENCE_SECONDS)
        if errors or unsent:
            raise RuntimeError(f"{len(errors)} records failed ({errors[:1]}), {unsent} never left")
        return results

    def consume(self, topic, partitions):
        consumer = self._open_consumer()
        targets = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
        missing = {target.partition: consumer.get_watermark_offsets(target, timeout=PATIENCE_SECONDS)[1]
                   for target in targets}
        consumer.assign(targets)
        records = [[] for _ in targets]
        while any(missing.values()):
            for record in self._poll(consumer, 1000):
                records[record.partition].append(record)
                missing[record.partition] -= 1
        return [record for of_partition in records for record in of_partition]

    def seek(self, topic, points):
        consumer = self._open_consumer()
        found = []
        for partition, kind, number in points:
            target = TopicPartition(topic, partition, number)
            if kind == "time":
                target = consumer.offsets_for_times([target], timeout=PATIENCE_SECONDS)[0]
                # Past the last record librdkafka gives the end, as a number or as OFFSET_END (-1).
                _, end = consumer.get_watermark_offsets(target, timeout=PATIENCE_SECONDS)
                if target.offset < 0 or target.offset >= end:
                    found.append(None)
                    continue
            consumer.assign([target])
            found.append(self._poll(consumer, 1)[0])
        return found

    def reset(self, topic, offset, policy):
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "unused", "enable.auto.commit": False,
                             "auto.offset.reset": "error" if policy == "none" else policy,
                             "enable.partition.eof": True, "fetch.wait.max.ms": 10})
        consumer.assign([TopicPartition(topic, 0, offset)])
        message = consumer.poll(PATIENCE_SECONDS)
        consumer.close()
        if message.error() and message.error().code() == KafkaError._AUTO_OFFSET_RESET:
            return None
        # A record, or that the end is reached: both say where.
        if message.error() and message.error().code() != KafkaError._PARTITION_EOF:
            raise KafkaException(message.error())
        return message.offset()

    def member(self, group, topics, options, log):
        settings = {"bootstrap.servers": self._bootstrap, "group.id": group, "enable.auto.commit": False,
                    "auto.offset.reset": "earliest", "session.timeout.ms": int(options.get("session", 6000)),
                    "heartbeat.interval.ms": 500, "fetch.wait.max.ms": 100, "reconnect.backoff.max.ms": 500}
        if libversion()[1] >= 0x02090000:
            # Else one that finds no broker for a moment forgets what it knows of it, and joins again of its own accord.
            settings["metadata.recovery.strategy"] = "none"
        if "instance" in options:
            settings["group.instance.id"] = options["instance"]
        if "assignor" in options:
            settings["partition.assignment.strategy"] = {"cooperative": "cooperative-sticky"}.get(
                options["assignor"], options["assignor"])

        is_cooperative = options.get("assignor") == "cooperative"
        read = {}  # (topic, partition) to the offset to commit

        def commit(consumer):
            offsets = [TopicPartition(*place, offset) for place, offset in read.items()]
            try:
                if offsets:
                    consumer.commit(offsets=offsets, asynchronous=False)
                    log.committed((*place, offset) for place, offset in read.items())
                    read.clear()
            except KafkaException as error:
                # As in the midst of a cooperative rebalance, which the member reads through. It tries again.
                log.refused(error)

        def on_assign(consumer, partitions):
            (log.added if is_cooperative else log.assigned)(_places(partitions), member=consumer.memberid())

        def on_revoke(consumer, partitions):
            commit(consumer)
            for place in _places(partitions):
                read.pop(place, None)
            log.revoked(_places(partitions))

        consumer = Consumer(settings)
        consumer.subscribe(topics, on_assign=on_assign, on_revoke=on_revoke)
        while not log.must_stop():
            # One by one: what consume() gives may be from before a rebalance that it went through.
            message = consumer.poll(0.05)
            if message is not None and not message.error():
                log.records(message.topic(), [_record(message)])
                read[message.topic(), message.partition()] = message.offset() + 1
            if message is None or (message.offset() or 0) % 100 == 0:
                commit(consumer)
        consumer.close()
        log.left()

    def _open_consumer(self):
        if self._consumer is None:
            # A group id is demanded by librdkafka; with assign() and no commits the group is never used.
            self._consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "unused",
                                       "enable.auto.commit": False, "check.crcs": True,
                                       "auto.offset.reset": "error", "fetch.wait.max.ms": 10,
                                       "topic.metadata.refresh.fast.interval.ms": 20})
        return self._consumer

    @staticmethod
    def _poll(consumer, count):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            first = consumer.poll(0.5)
            # consume() would wait for all of its count, so it takes only what is there already.
            messages = [] if first is None else [first]
            if messages and count > 1:
                messages += consumer.consume(count - 1, timeout=0)
            for message in messages:
                if message.error():
                    raise KafkaException(message.error())
            if messages:
                return [_record(message) for message in messages]
        raise TimeoutError("no record came")


def _record(message):
    return Record(message.partition(), message.offset(), message.timestamp()[1], message.key(), message.value(),
                  tuple(message.headers() or ()))


def _places(partitions):
    return [(target.topic, target.partition) for target in partitions]


run_steps(ConfluentDriver(sys.argv[1]), sys.argv[2])
