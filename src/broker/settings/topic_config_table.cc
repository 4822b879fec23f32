#include <algorithm>
#include <limits>

#include "broker/settings/topic_configs.h"

namespace varve::broker {
namespace {

using Rows = std::vector<TopicConfigRow>;

constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kLongMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kLongMax = std::numeric_limits<int64_t>::max();
constexpr std::string_view kForever = "9223372036854775807";
constexpr std::string_view kNoTiering =
    "tiered storage has no meaning here: everything is in the object store";

constexpr auto kBool = ConfigType::kBoolean;
constexpr auto kInt = ConfigType::kInt;
constexpr auto kLong = ConfigType::kLong;
constexpr auto kString = ConfigType::kString;
constexpr auto kList = ConfigType::kList;
constexpr auto kInForce = ConfigEffect::kInForce;
constexpr auto kByDesign = ConfigEffect::kByDesign;
constexpr auto kNotYet = ConfigEffect::kNotYet;

void add_batches(Rows& rows) {
  rows.push_back({.name = "max.message.bytes",
                  .type = kInt,
                  .default_text = "1048588",
                  .effect = kInForce,
                  .max = kIntMax,
                  .broker_name = "message.max.bytes",
                  .help = "Largest record batch that is taken, header included."});
  rows.push_back({.name = "max.decompressed.message.bytes",
                  .type = kInt,
                  .default_text = "2147483639",
                  .effect = kInForce,
                  .min = 1,
                  .max = 2'147'483'639,
                  .broker_name = "max.decompressed.message.bytes",
                  .help =
                      "Most bytes that a batch's records may have when they are decompressed. The broker has "
                      "a limit of its own, which is lower than the largest value."});
  rows.push_back({.name = "message.timestamp.type",
                  .type = kString,
                  .default_text = "CreateTime",
                  .effect = kInForce,
                  .choices = {"CreateTime", "LogAppendTime"},
                  .broker_name = "log.message.timestamp.type",
                  .help = "Whether records keep the time that the producer gave them or get that of their "
                          "commit."});
  rows.push_back({.name = "message.timestamp.before.max.ms",
                  .type = kLong,
                  .default_text = kForever,
                  .effect = kInForce,
                  .max = kLongMax,
                  .broker_name = "log.message.timestamp.before.max.ms",
                  .help = "How far in the past a record's time may lie when it arrives, with CreateTime."});
  rows.push_back({.name = "message.timestamp.after.max.ms",
                  .type = kLong,
                  .default_text = "3600000",
                  .effect = kInForce,
                  .max = kLongMax,
                  .broker_name = "log.message.timestamp.after.max.ms",
                  .help = "How far in the future a record's time may lie when it arrives, with CreateTime."});
}

void add_compression(Rows& rows) {
  rows.push_back({.name = "compression.type",
                  .type = kString,
                  .default_text = "producer",
                  .effect = kNotYet,
                  .choices = {"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"},
                  .broker_name = "compression.type",
                  .help = "Codec of stored batches; `producer` keeps that of the producer."});
  rows.push_back({.name = "compression.gzip.level",
                  .type = kInt,
                  .default_text = "-1",
                  .effect = kNotYet,
                  .min = 1,
                  .max = 9,
                  .also = -1,
                  .broker_name = "compression.gzip.level",
                  .help = "Level at which `compression.type=gzip` compresses."});
  rows.push_back({.name = "compression.lz4.level",
                  .type = kInt,
                  .default_text = "9",
                  .effect = kNotYet,
                  .min = 1,
                  .max = 17,
                  .broker_name = "compression.lz4.level",
                  .help = "Level at which `compression.type=lz4` compresses."});
  rows.push_back({.name = "compression.zstd.level",
                  .type = kInt,
                  .default_text = "3",
                  .effect = kNotYet,
                  .min = -131'072,
                  .max = 22,
                  .broker_name = "compression.zstd.level",
                  .help = "Level at which `compression.type=zstd` compresses."});
}

void add_deletion(Rows& rows) {
  rows.push_back(
      {.name = "cleanup.policy",
       .type = kList,
       .default_text = "delete",
       .effect = kNotYet,
       .choices = {"compact", "delete"},
       .broker_name = "log.cleanup.policy",
       .help = "What becomes of old records: `delete` by age and size, `compact` all but the newest of "
               "each key, both, or (empty) neither. With `compact` each record needs a key."});
  rows.push_back({.name = "retention.ms",
                  .type = kLong,
                  .default_text = "604800000",
                  .effect = kNotYet,
                  .min = -1,
                  .max = kLongMax,
                  .help = "Age at which records are deleted; -1: never."});
  rows.push_back(
      {.name = "retention.bytes",
       .type = kLong,
       .default_text = "-1",
       .effect = kNotYet,
       .min = kLongMin,
       .max = kLongMax,
       .broker_name = "log.retention.bytes",
       .help = "Size of a partition above which its oldest records are deleted; negative: never."});
  rows.push_back({.name = "delete.retention.ms",
                  .type = kLong,
                  .default_text = "86400000",
                  .effect = kNotYet,
                  .max = kLongMax,
                  .broker_name = "log.cleaner.delete.retention.ms",
                  .help = "How long compaction keeps a record that deletes its key."});
  rows.push_back({.name = "min.compaction.lag.ms",
                  .type = kLong,
                  .default_text = "0",
                  .effect = kNotYet,
                  .max = kLongMax,
                  .broker_name = "log.cleaner.min.compaction.lag.ms",
                  .help = "Age below which a record is not compacted. At most max.compaction.lag.ms."});
  rows.push_back({.name = "max.compaction.lag.ms",
                  .type = kLong,
                  .default_text = kForever,
                  .effect = kNotYet,
                  .min = 1,
                  .max = kLongMax,
                  .broker_name = "log.cleaner.max.compaction.lag.ms",
                  .help = "Age by which a record is looked at by compaction."});
  rows.push_back({.name = "min.cleanable.dirty.ratio",
                  .type = ConfigType::kDouble,
                  .default_text = "0.5",
                  .effect = kNotYet,
                  .broker_name = "log.cleaner.min.cleanable.ratio",
                  .help = "Share of a partition that is not compacted yet at which compaction begins."});
  rows.push_back(
      {.name = "file.delete.delay.ms",
       .type = kLong,
       .default_text = "60000",
       .effect = kByDesign,
       .max = kLongMax,
       .broker_name = "log.segment.delete.delay.ms",
       .help = "How long a file stays after it is no longer used. Objects go by the cluster's rules."});
}

void add_segments(Rows& rows) {
  rows.push_back({.name = "segment.bytes",
                  .type = kInt,
                  .default_text = "1073741824",
                  .effect = kNotYet,
                  .min = 1024 * 1024,
                  .max = kIntMax,
                  .broker_name = "log.segment.bytes",
                  .help = "Size at which a partition's segment is written."});
  rows.push_back({.name = "segment.ms",
                  .type = kLong,
                  .default_text = "604800000",
                  .effect = kNotYet,
                  .min = 1,
                  .max = kLongMax,
                  .help = "Time after which a partition's segment is written however small it is."});
  rows.push_back(
      {.name = "segment.jitter.ms",
       .type = kLong,
       .default_text = "0",
       .effect = kNotYet,
       .max = kLongMax,
       .help = "Most that is taken off segment.ms at random, so that segments do not end all at once."});
  rows.push_back({.name = "segment.index.bytes",
                  .type = kInt,
                  .default_text = "10485760",
                  .effect = kByDesign,
                  .min = 4,
                  .max = kIntMax,
                  .broker_name = "log.index.size.max.bytes",
                  .help = "Size of the index file of a segment. There is none that grows."});
  rows.push_back({.name = "index.interval.bytes",
                  .type = kInt,
                  .default_text = "4096",
                  .effect = kByDesign,
                  .max = kIntMax,
                  .broker_name = "log.index.interval.bytes",
                  .help = "Bytes between entries of the offset index. Every batch is indexed here."});
  rows.push_back({.name = "preallocate",
                  .type = kBool,
                  .default_text = "false",
                  .effect = kByDesign,
                  .broker_name = "log.preallocate",
                  .help = "Whether files are made at full size. There are none that grow."});
}

void add_durability(Rows& rows) {
  rows.push_back({.name = "min.insync.replicas",
                  .type = kInt,
                  .default_text = "1",
                  .effect = kByDesign,
                  .min = 1,
                  .max = kIntMax,
                  .broker_name = "min.insync.replicas",
                  .help =
                      "Replicas that must have a record before it is acknowledged. An acknowledged record is "
                      "in the object store."});
  rows.push_back({.name = "unclean.leader.election.enable",
                  .type = kBool,
                  .default_text = "false",
                  .effect = kByDesign,
                  .broker_name = "unclean.leader.election.enable",
                  .help = "Whether a replica that lacks records may lead. There are no leaders that could."});
  rows.push_back(
      {.name = "flush.messages",
       .type = kLong,
       .default_text = kForever,
       .effect = kByDesign,
       .min = 1,
       .max = kLongMax,
       .broker_name = "log.flush.interval.messages",
       .help = "Records after which files are synced. A record is durable before it is acknowledged."});
  rows.push_back(
      {.name = "flush.ms",
       .type = kLong,
       .default_text = kForever,
       .effect = kByDesign,
       .max = kLongMax,
       .help = "Time after which files are synced. A record is durable before it is acknowledged."});
  for (std::string_view name :
       {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}) {
    rows.push_back(
        {.name = name,
         .type = kList,
         .default_text = "",
         .effect = kByDesign,
         .help = "Replicas whose copying is slowed, as partition:broker pairs or `*`. Nothing is copied "
                 "between brokers."});
  }
  rows.push_back({.name = "diskless.enable",
                  .type = kBool,
                  .default_text = "true",
                  .effect = kByDesign,
                  .refused_unless_default =
                      "it asks for segments before each acknowledgement, which this version does not write",
                  .help = "Whether records go to the object store without a disk of the broker (KIP-1150)."});
}

void add_tiering(Rows& rows) {
  rows.push_back({.name = "remote.storage.enable",
                  .type = kBool,
                  .default_text = "false",
                  .effect = kByDesign,
                  .refused_unless_default = kNoTiering,
                  .help = "Whether old segments move to a second tier of storage."});
  rows.push_back({.name = "remote.log.copy.disable",
                  .type = kBool,
                  .default_text = "false",
                  .effect = kByDesign,
                  .help = "Whether nothing more is copied to the second tier."});
  rows.push_back({.name = "remote.log.delete.on.disable",
                  .type = kBool,
                  .default_text = "false",
                  .effect = kByDesign,
                  .help = "Whether the second tier is emptied when it is switched off."});
  rows.push_back({.name = "remote.copy.lag.bytes",
                  .type = kLong,
                  .default_text = "-1",
                  .effect = kByDesign,
                  .min = -1,
                  .max = kLongMax,
                  .broker_name = "log.remote.copy.lag.bytes",
                  .help = "Bytes that stay behind when segments are copied to the second tier."});
  rows.push_back({.name = "remote.copy.lag.ms",
                  .type = kLong,
                  .default_text = "0",
                  .effect = kByDesign,
                  .min = -1,
                  .max = kLongMax,
                  .broker_name = "log.remote.copy.lag.ms",
                  .help = "Time that records stay behind when segments are copied to the second tier."});
  rows.push_back({.name = "local.retention.bytes",
                  .type = kLong,
                  .default_text = "-2",
                  .effect = kByDesign,
                  .min = -2,
                  .max = kLongMax,
                  .broker_name = "log.local.retention.bytes",
                  .help = "Size of what the first tier keeps; -2: retention.bytes."});
  rows.push_back({.name = "local.retention.ms",
                  .type = kLong,
                  .default_text = "-2",
                  .effect = kByDesign,
                  .min = -2,
                  .max = kLongMax,
                  .broker_name = "log.local.retention.ms",
                  .help = "Age of what the first tier keeps; -2: retention.ms."});
  rows.push_back({.name = "errors.deadletterqueue.group.enable",
                  .type = kBool,
                  .default_text = "false",
                  .effect = kNotYet,
                  .help = "Whether the topic may take the records that share groups could not process."});
}

}  // namespace

const std::vector<TopicConfigRow>& topic_config_table() {
  static const Rows kTable = [] {
    Rows rows;
    add_batches(rows);
    add_compression(rows);
    add_deletion(rows);
    add_segments(rows);
    add_durability(rows);
    add_tiering(rows);
    std::ranges::sort(rows, {}, &TopicConfigRow::name);
    return rows;
  }();
  return kTable;
}

}  // namespace varve::broker
