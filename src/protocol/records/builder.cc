#include "protocol/records/builder.h"

#include <algorithm>

namespace varve::protocol::records {
namespace {

void append_nullable(ByteWriter& to, const std::optional<ByteView>& bytes) {
  to.varint(bytes.has_value() ? static_cast<int64_t>(bytes->size()) : -1);
  if (bytes.has_value()) to.raw(*bytes);
}

BatchHeader header_of(const BatchOptions& options) {
  BatchHeader header;
  header.base_offset = options.base_offset;
  header.partition_leader_epoch = options.partition_leader_epoch;
  header.attributes = static_cast<int16_t>((options.transactional ? kTransactionalFlag : 0) |
                                           (options.control ? kControlFlag : 0));
  header.producer_id = options.producer_id;
  header.producer_epoch = options.producer_epoch;
  header.base_sequence = options.base_sequence;
  return header;
}

// Puts the header before the payload that already lies behind its place.
std::vector<uint8_t> finish(BatchHeader header, std::vector<uint8_t> batch) {
  header.batch_length = static_cast<int32_t>(batch.size() - kBatchOverheadBytes);
  header.encode(batch);
  seal(batch);
  return batch;
}

}  // namespace

void BatchBuilder::add_at(int32_t offset_delta, const NewRecord& record) {
  CHECK(offset_delta >= next_delta_, "offsets must rise");
  if (count_ == 0) base_timestamp_ = record.timestamp;
  body_.u8(0);
  body_.varint(record.timestamp.value() - base_timestamp_.value());
  body_.varint(offset_delta);
  append_nullable(body_, record.key);
  append_nullable(body_, record.value);
  body_.varint(static_cast<int64_t>(record.headers.size()));
  for (const HeaderView& header : record.headers) {
    append_nullable(body_, as_bytes(header.key));
    append_nullable(body_, header.value);
  }
  records_.varint(static_cast<int64_t>(body_.size()));
  records_.raw(body_.view());
  body_.truncate(0);
  max_timestamp_ = std::max(max_timestamp_, record.timestamp);
  next_delta_ = offset_delta + 1;
  ++count_;
}

std::vector<uint8_t> BatchBuilder::build(std::optional<int32_t> last_offset_delta) {
  CHECK(count_ > 0, "a batch without records: use build_empty_batch");
  BatchHeader header = header_of(options_);
  header.attributes = static_cast<int16_t>(header.attributes | static_cast<int16_t>(options_.codec));
  header.last_offset_delta = last_offset_delta.value_or(next_delta_ - 1);
  CHECK(header.last_offset_delta >= next_delta_ - 1, "the last offset lies before the last record");
  header.base_timestamp = base_timestamp_;
  header.max_timestamp = max_timestamp_;
  header.record_count = count_;

  ByteWriter batch(kBatchHeaderBytes + records_.size());
  batch.raw(std::array<uint8_t, kBatchHeaderBytes>{});
  auto packed = compress(options_.codec, records_.view(), batch);
  CHECK(packed.has_value(), "{}", packed.error().message);
  *this = BatchBuilder(options_);
  return finish(header, batch.take());
}

std::vector<uint8_t> build_empty_batch(const BatchOptions& options, Offset last_offset,
                                       WallTime max_timestamp) {
  int64_t delta = last_offset.value() - options.base_offset.value();
  CHECK(delta >= 0 && delta <= std::numeric_limits<int32_t>::max(), "a batch cannot span {} offsets", delta);
  BatchHeader header = header_of(options);
  header.last_offset_delta = static_cast<int32_t>(delta);
  header.max_timestamp = max_timestamp;
  return finish(header, std::vector<uint8_t>(kBatchHeaderBytes));
}

}  // namespace varve::protocol::records
