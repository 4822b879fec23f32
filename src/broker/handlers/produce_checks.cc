#include "broker/handlers/produce_checks.h"

#include <utility>

#include "broker/handlers/errors.h"
#include "broker/handlers/topic_rules.h"
#include "protocol/records/validate.h"

namespace varve::broker {
namespace {

using protocol::records::BatchHeader;
using protocol::records::ProducedBatch;
using protocol::records::ProduceRules;
using protocol::records::RecordErrc;
using protocol::records::RecordError;

// zstd came with Produce 7 (KIP-110): older clients could not read it back.
constexpr int16_t kFirstZstdVersion = 7;

RefusedBatch refused(RecordError error) {
  RefusedBatch result;
  result.code = error_of(error.code);
  result.message = std::move(error.message);
  for (const auto& bad : error.bad_records) {
    auto& row = result.record_errors.emplace_back();
    row.batch_index = bad.batch_index;
    row.batch_index_error_message = bad.code == RecordErrc::kMissingKey
                                        ? "a compacted topic takes no record without a key"
                                        : "the timestamp is out of the topic's range";
  }
  return result;
}

// The batch's bytes as they are to be stored.
Slice stored_bytes(const Slice& records, const ProducedBatch& produced) {
  ByteView bytes = produced.batch.bytes();
  if (!produced.repaired)
    return records.sub(static_cast<size_t>(bytes.data() - records.data()), bytes.size());
  std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  produced.header.encode(copy);
  return Slice::take(std::move(copy));
}

}  // namespace

Result<CheckedBatch, RefusedBatch> check_batch(const metadata::TopicView& topic, PartitionIndex partition,
                                               const std::optional<protocol::SliceChain>& records,
                                               int16_t version, const Limits& limits, WallTime now,
                                               protocol::records::DecodeScratch& scratch) {
  Slice bytes = records ? records->joined() : Slice();
  ProduceRules rules = produce_rules(topic, limits);
  rules.now = now;
  rules.zstd_allowed = version >= kFirstZstdVersion;
  auto produced = protocol::records::validate_produced(bytes.view(), rules, limits, scratch);
  if (!produced) return std::unexpected(refused(std::move(produced.error())));
  const BatchHeader& header = produced->header;
  // Kafka takes it, and holds a state under epoch -1 that no client asks for; entries here have no place for it.
  if (header.has_producer() && header.producer_epoch.value() < 0) {
    RefusedBatch nobody;
    nobody.code = protocol::ErrorCode::kInvalidRecord;
    nobody.message = "a producer id without an epoch";
    return std::unexpected(std::move(nobody));
  }
  CheckedBatch checked;
  checked.records = static_cast<uint32_t>(header.record_count);
  storage::AppendBatch& batch = checked.batch;
  batch.partition = topic.partitions[static_cast<size_t>(partition.value())];
  batch.topic = topic.id;
  batch.index = partition;
  batch.bytes = stored_bytes(bytes, *produced);
  batch.records = checked.records;
  batch.max_timestamp = header.max_timestamp.value();
  if (header.has_producer()) {
    batch.producer_id = header.producer_id;
    batch.producer_epoch = header.producer_epoch;
    batch.first_sequence = header.base_sequence;
  }
  batch.is_transactional = header.transactional();
  batch.is_log_append_time = rules.timestamp_type == protocol::records::TimestampType::kLogAppendTime;
  return checked;
}

bool is_transactional(const std::optional<protocol::SliceChain>& records) {
  if (!records || records->size() < protocol::records::kBatchHeaderBytes) return false;
  Slice first = records->joined();
  BatchHeader header = BatchHeader::decode(first.view());
  return header.magic == protocol::records::kMagicV2 && header.transactional();
}

}  // namespace varve::broker
