// Requests as tests of a broker write them: what matters said, the rest left at what clients send.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "protocol/messages/create_topics.h"
#include "protocol/messages/delete_records.h"
#include "protocol/messages/delete_topics.h"
#include "protocol/messages/fetch.h"
#include "protocol/messages/list_offsets.h"
#include "protocol/messages/metadata.h"
#include "protocol/messages/produce.h"
#include "protocol/records/builder.h"

namespace varve::sim {

struct BatchSpec {
  std::vector<int64_t> timestamps = {1'000};  // ms; a record each
  std::string value = "v";
  std::vector<bool> null_keys{};  // true: the record of that place has no key; by default all have "k"
  bool null_values = false;
  protocol::records::BatchOptions options{};
};

inline Slice make_batch(const BatchSpec& spec) {
  protocol::records::BatchBuilder builder(spec.options);
  for (size_t i = 0; i < spec.timestamps.size(); ++i) {
    protocol::records::NewRecord record;
    record.timestamp = WallTime(spec.timestamps[i]);
    if (i >= spec.null_keys.size() || !spec.null_keys[i]) record.key = as_bytes("k");
    if (!spec.null_values) record.value = as_bytes(spec.value);
    builder.add(record);
  }
  return Slice::take(builder.build());
}
inline Slice make_batch(std::string value) {
  BatchSpec spec;
  spec.value = std::move(value);
  return make_batch(spec);
}
// Of `count` records, with a producer id.
inline Slice idempotent_batch(ProducerId producer, int32_t sequence, size_t count = 1) {
  BatchSpec spec;
  spec.timestamps.assign(count, 1'000);
  spec.options.producer_id = producer;
  spec.options.producer_epoch = ProducerEpoch(0);
  spec.options.base_sequence = Sequence(sequence);
  return make_batch(spec);
}

using PartitionBatches = std::vector<std::pair<int32_t, Slice>>;

inline protocol::ProduceRequest produce_request(const std::string& topic, PartitionBatches batches,
                                                int16_t acks = -1) {
  protocol::ProduceRequest request;
  request.acks = acks;
  request.timeout_ms = 30'000;
  auto& rows = request.topic_data.emplace_back();
  rows.name = topic;
  for (auto& [partition, batch] : batches) {
    auto& row = rows.partition_data.emplace_back();
    row.index = PartitionIndex(partition);
    row.records = std::move(batch);
  }
  return request;
}

struct FetchSpec {
  std::vector<std::pair<int32_t, int64_t>> partitions = {{0, 0}};  // index, offset
  int32_t max_wait_ms = 0;
  int32_t min_bytes = 1;
  int32_t max_bytes = 50 << 20;
  int32_t partition_bytes = 1 << 20;
};
// With both the name and the id: each version takes what it knows.
inline protocol::FetchRequest fetch_request(const std::string& topic, Uuid id, const FetchSpec& spec = {}) {
  protocol::FetchRequest request;
  request.max_wait_ms = spec.max_wait_ms;
  request.min_bytes = spec.min_bytes;
  request.max_bytes = spec.max_bytes;
  auto& rows = request.topics.emplace_back();
  rows.topic = topic;
  rows.topic_id = id;
  for (auto [index, offset] : spec.partitions) {
    auto& row = rows.partitions.emplace_back();
    row.partition = PartitionIndex(index);
    row.fetch_offset = Offset(offset);
    row.partition_max_bytes = spec.partition_bytes;
  }
  return request;
}

inline protocol::ListOffsetsRequest list_offsets_request(const std::string& topic, int32_t partition,
                                                         int64_t timestamp) {
  protocol::ListOffsetsRequest request;
  request.replica_id = BrokerId(-1);
  auto& rows = request.topics.emplace_back();
  rows.name = topic;
  auto& row = rows.partitions.emplace_back();
  row.partition_index = PartitionIndex(partition);
  row.timestamp = timestamp;
  return request;
}

// Partitions with the offsets below which their records go.
inline protocol::DeleteRecordsRequest delete_records_request(
    const std::string& topic, std::vector<std::pair<int32_t, int64_t>> offsets) {
  protocol::DeleteRecordsRequest request;
  request.timeout_ms = 30'000;
  auto& rows = request.topics.emplace_back();
  rows.name = topic;
  for (auto [index, offset] : offsets) {
    auto& row = rows.partitions.emplace_back();
    row.partition_index = PartitionIndex(index);
    row.offset = Offset(offset);
  }
  return request;
}

inline protocol::DeleteTopicsRequest delete_request(const std::string& topic) {
  protocol::DeleteTopicsRequest request;
  request.topic_names = {topic};
  request.timeout_ms = 30'000;
  return request;
}

inline protocol::MetadataRequest metadata_request(std::vector<std::string> topics, bool may_create = true) {
  protocol::MetadataRequest request;
  for (std::string& topic : topics) request.topics->emplace_back().name = std::move(topic);
  request.allow_auto_topic_creation = may_create;
  return request;
}

inline protocol::CreateTopicsRequest create_request(
    const std::string& topic, int32_t partitions,
    std::vector<std::pair<std::string, std::string>> configs = {}) {
  protocol::CreateTopicsRequest request;
  auto& row = request.topics.emplace_back();
  row.name = topic;
  row.num_partitions = partitions;
  row.replication_factor = -1;
  for (auto& [name, value] : configs) {
    auto& config = row.configs.emplace_back();
    config.name = std::move(name);
    config.value = std::move(value);
  }
  return request;
}

}  // namespace varve::sim
