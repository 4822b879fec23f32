"""Drives aiokafka; runs in a venv that has it. Called as record_lines.py describes."""

import asyncio
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from record_lines import PATIENCE_SECONDS, RebalanceNotes, record_of, run_steps


class AiokafkaDriver:
    def __init__(self, bootstrap):
        self._bootstrap = bootstrap

    def create(self, topic, partitions):
        self._administer(lambda admin: admin.create_topics(
            [NewTopic(topic, partitions, 1)], timeout_ms=PATIENCE_SECONDS * 1000), "topic_errors")

    def delete(self, topic):
        self._administer(lambda admin: admin.delete_topics([topic], timeout_ms=PATIENCE_SECONDS * 1000),
                         "topic_error_codes")

    def produce(self, topic, codec, records):
        return asyncio.run(self._produce(topic, codec, records))

    def consume(self, topic, partitions):
        return asyncio.run(self._consume(topic, partitions))

    def seek(self, topic, points):
        return asyncio.run(self._seek(topic, points))

    def reset(self, topic, offset, policy):
        return asyncio.run(self._reset(topic, offset, policy))

    def member(self, group, topics, options, log):
        asyncio.run(self._member(group, topics, options, log))

    def _administer(self, call, errors):
        async def run():
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                answer = await call(admin)
            finally:
                await admin.close()
            for topic, error, *_ in getattr(answer, errors):
                if error != 0:
                    raise RuntimeError(f"{topic}: error {error}")

        asyncio.run(run())

    async def _produce(self, topic, codec, records):
        # Idempotent for one half of the codecs, so that both kinds of producer meet the broker.
        producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, acks="all", linger_ms=5,
                                    enable_idempotence=codec in ("none", "lz4", "zstd"),
                                    compression_type=None if codec == "none" else codec)
        await producer.start()
        try:
            futures = [await producer.send(topic, partition=record.partition, key=record.key, value=record.value,
                                           headers=list(record.headers), timestamp_ms=record.timestamp)
                       for record in records]
            await producer.flush()
            return [record._replace(offset=(await future).offset) for record, future in zip(records, futures)]
        finally:
            await producer.stop()

    async def _consume(self, topic, partitions):
        async with self._consumer() as consumer:
            targets = [TopicPartition(topic, partition) for partition in range(partitions)]
            consumer.assign(targets)
            ends, records = await consumer.end_offsets(targets), []
            for target in targets:
                consumer.assign([target])
                consumer.seek(target, 0)
                read = []
                while len(read) < ends[target]:
                    read += await self._poll(consumer, target)
                records += read
            return records

    async def _seek(self, topic, points):
        async with self._consumer() as consumer:
            found = []
            for partition, kind, number in points:
                target, offset = TopicPartition(topic, partition), number
                consumer.assign([target])
                if kind == "time":
                    answer = (await consumer.offsets_for_times({target: number}))[target]
                    if answer is None:
                        found.append(None)
                        continue
                    offset = answer.offset
                consumer.seek(target, offset)
                found.append((await self._poll(consumer, target, 1))[0])
            return found

    async def _reset(self, topic, offset, policy):
        target = TopicPartition(topic, 0)
        async with self._consumer(policy) as consumer:
            consumer.assign([target])
            consumer.seek(target, offset)
            deadline = time.monotonic() + PATIENCE_SECONDS
            try:
                while time.monotonic() < deadline:
                    messages = (await consumer.getmany(target, timeout_ms=200, max_records=1)).get(target)
                    if messages:
                        return messages[0].offset
                    if await consumer.position(target) != offset:
                        return await consumer.position(target)
            except OffsetOutOfRangeError:
                return None
        raise TimeoutError("the position stays")

    async def _member(self, group, topics, options, log):
        consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=group, enable_auto_commit=False,
                                    auto_offset_reset="earliest", fetch_max_wait_ms=100, heartbeat_interval_ms=500,
                                    session_timeout_ms=int(options.get("session", 6000)),
                                    group_instance_id=options.get("instance"))
        consumer.subscribe(topics, listener=Listener(log))
        await consumer.start()
        while not log.must_stop():
            found = await consumer.getmany(timeout_ms=100, max_records=100)
            for target, messages in found.items():
                log.records(target.topic, map(record_of, messages))
            if found:
                offsets = {target: messages[-1].offset + 1 for target, messages in found.items()}
                try:
                    await consumer.commit(offsets)
                    log.committed((*target, offset) for target, offset in offsets.items())
                except KafkaError as error:
                    log.refused(repr(error))
        await consumer.stop()
        log.left()

    def _consumer(self, policy="none"):
        return AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None, check_crcs=True,
                                enable_auto_commit=False, auto_offset_reset=policy, fetch_max_wait_ms=100)

    @staticmethod
    async def _poll(consumer, target, count=1000):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            messages = (await consumer.getmany(target, timeout_ms=500, max_records=count)).get(target)
            if messages:
                return [record_of(message) for message in messages]
        raise TimeoutError("no record came")


class Listener(RebalanceNotes, ConsumerRebalanceListener):
    pass


run_steps(AiokafkaDriver(sys.argv[1]), sys.argv[2])
