// Drives kafkajs; called as clients/record_lines.py describes. It has no reader outside of a group, and so no steps
// that go to a place by offset or time.

"use strict";

const zlib = require("node:zlib");
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require("kafkajs");
const LZ4Codec = require("kafkajs-lz4");
const SnappyCodec = require("kafkajs-snappy");
const { runSteps } = require("./record_lines.js");

const PATIENCE_MS = 60_000;
const RECORDS_A_REQUEST = 200;
const TYPES = { none: "None", gzip: "GZIP", snappy: "Snappy", lz4: "LZ4", zstd: "ZSTD" };

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec;
CompressionCodecs[CompressionTypes.LZ4] = new LZ4Codec().codec;
// Its published plug-ins for zstd do not install or load on this Node, which brings zstd itself.
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => zlib.zstdCompressSync(encoder.buffer),
  decompress: async (buffer) => zlib.zstdDecompressSync(buffer),
});

class KafkajsDriver {
  constructor(bootstrap) {
    this.kafka = new Kafka({
      brokers: [bootstrap],
      clientId: "e2e",
      logLevel: logLevel.NOTHING,
      retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 100 },
    });
  }

  async create(topic, partitions) {
    await this.administer((admin) => admin.createTopics({ topics: [{ topic, numPartitions: partitions }] }));
  }

  async delete(topic) {
    await this.administer((admin) => admin.deleteTopics({ topics: [topic] }));
  }

  async administer(call) {
    const admin = this.kafka.admin();
    await admin.connect();
    try {
      return await call(admin);
    } finally {
      await admin.disconnect();
    }
  }

  async produce(topic, codec, records) {
    // Idempotent for one half of the codecs, so that both kinds of producer meet the broker.
    const idempotent = ["none", "lz4", "zstd"].includes(codec);
    const producer = this.kafka.producer({ idempotent, maxInFlightRequests: 1 });
    await producer.connect();
    try {
      for (let from = 0; from < records.length; from += RECORDS_A_REQUEST) {
        const chunk = records.slice(from, from + RECORDS_A_REQUEST);
        const answer = await producer.send({
          topic,
          acks: -1,
          compression: CompressionTypes[TYPES[codec]],
          messages: chunk.map((record) => ({ ...record, timestamp: String(record.timestamp), headers: grouped(record) })),
        });
        const next = new Map(answer.map((row) => [row.partition, Number(row.baseOffset)]));
        for (const record of chunk) {
          record.offset = next.get(record.partition);
          next.set(record.partition, record.offset + 1);
        }
      }
      return records;
    } finally {
      await producer.disconnect();
    }
  }

  async consume(topic, partitions) {
    const ends = await this.administer((admin) => admin.fetchTopicOffsets(topic));
    const missing = new Map(ends.map((row) => [row.partition, Number(row.high)]));
    const read = Array.from({ length: partitions }, () => []);
    const isDone = () => [...missing.entries()].every(([partition, end]) => read[partition].length >= end);
    const consumer = this.kafka.consumer({ groupId: `reader-of-${topic}-${process.pid}`, maxWaitTimeInMs: 100 });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    try {
      await new Promise((resolve, reject) => {
        const patience = setTimeout(() => reject(new Error("not all records came")), PATIENCE_MS);
        const end = () => {
          clearTimeout(patience);
          resolve();
        };
        consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || reject(payload.error));
        if (isDone()) end();
        consumer.run({
          autoCommit: false,
          eachBatch: async ({ batch }) => {
            read[batch.partition].push(...batch.messages.map((message) => lineOf(batch.partition, message)));
            if (isDone()) end();
          },
        }).catch(reject);
      });
    } finally {
      await consumer.disconnect();
    }
    return read.flat();
  }

  async member(group, topics, settings, log) {
    const consumer = this.kafka.consumer({
      groupId: group,
      sessionTimeout: Number(settings.session ?? 6000),
      heartbeatInterval: 500,
      maxWaitTimeInMs: 100,
    });
    let owned = [];
    const revoke = () => {
      if (owned.length > 0) log.revoked(owned);
      owned = [];
    };
    // It goes on with what it had until all have joined again; only then comes the assignment.
    consumer.on(consumer.events.REQUEST, ({ payload }) => payload.apiName === "JoinGroup" && revoke());
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      owned = Object.entries(payload.memberAssignment)
        .flatMap(([topic, partitions]) => partitions.map((partition) => [topic, partition]));
      log.assigned(owned, payload.memberId);
    });
    await consumer.connect();
    await consumer.subscribe({ topics, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch, heartbeat }) => {
        const { topic, partition, messages } = batch;
        log.records(topic, messages.map((message) => lineOf(partition, message)));
        const offset = Number(messages.at(-1).offset) + 1;
        try {
          await consumer.commitOffsets([{ topic, partition, offset: String(offset) }]);
          log.committed([[topic, partition, offset]]);
        } catch (error) {
          log.refused(error);
        }
        await heartbeat();
      },
    });
    while (!log.mustStop()) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await consumer.disconnect();
    log.left();
  }
}

// kafkajs takes and gives headers by name, so their order is kept only among those of one name.
function grouped(record) {
  const headers = {};
  for (const [name, value] of record.headers) {
    headers[name] = name in headers ? [...headers[name], value] : [value];
  }
  return headers;
}

function lineOf(partition, message) {
  const headers = Object.entries(message.headers ?? {}).flatMap(([name, values]) =>
    Array.isArray(values) ? values.map((value) => [name, value]) : [[name, values]]);
  return { partition, offset: message.offset, timestamp: message.timestamp, key: message.key, value: message.value, headers };
}

runSteps(new KafkajsDriver(process.argv[2]), process.argv[3])
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(() => process.exit()); // Else a timer of a connection that was lost would keep it.
