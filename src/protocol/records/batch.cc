#include "protocol/records/batch.h"

#include <algorithm>
#include <limits>

#include "base/crc32c.h"

namespace varve::protocol::records {
namespace {

// The smallest length that any Kafka format allows (magic 0); Kafka calls a smaller one corrupt before it looks at
// the magic.
constexpr int32_t kBatchLengthMin = 14;
constexpr size_t kBytesToMagic = kMagicAt + 1;

template <class T>
T field(ByteView bytes, size_t at) {
  return load_be<T>(bytes.data() + at);
}

}  // namespace

BatchHeader BatchHeader::decode(ByteView bytes) {
  CHECK(bytes.size() >= kBatchHeaderBytes);
  BatchHeader header;
  header.base_offset = Offset(field<int64_t>(bytes, kBaseOffsetAt));
  header.batch_length = field<int32_t>(bytes, kBatchLengthAt);
  header.partition_leader_epoch = field<int32_t>(bytes, kPartitionLeaderEpochAt);
  header.magic = field<int8_t>(bytes, kMagicAt);
  header.crc = field<uint32_t>(bytes, kCrcAt);
  header.attributes = field<int16_t>(bytes, kAttributesAt);
  header.last_offset_delta = field<int32_t>(bytes, kLastOffsetDeltaAt);
  header.base_timestamp = WallTime(field<int64_t>(bytes, kBaseTimestampAt));
  header.max_timestamp = WallTime(field<int64_t>(bytes, kMaxTimestampAt));
  header.producer_id = ProducerId(field<int64_t>(bytes, kProducerIdAt));
  header.producer_epoch = ProducerEpoch(field<int16_t>(bytes, kProducerEpochAt));
  header.base_sequence = Sequence(field<int32_t>(bytes, kBaseSequenceAt));
  header.record_count = field<int32_t>(bytes, kRecordCountAt);
  return header;
}

void BatchHeader::encode(MutableByteView bytes) const {
  CHECK(bytes.size() >= kBatchHeaderBytes);
  uint8_t* to = bytes.data();
  store_be(to + kBaseOffsetAt, base_offset.value());
  store_be(to + kBatchLengthAt, batch_length);
  store_be(to + kPartitionLeaderEpochAt, partition_leader_epoch);
  store_be(to + kMagicAt, magic);
  store_be(to + kCrcAt, crc);
  store_be(to + kAttributesAt, attributes);
  store_be(to + kLastOffsetDeltaAt, last_offset_delta);
  store_be(to + kBaseTimestampAt, base_timestamp.value());
  store_be(to + kMaxTimestampAt, max_timestamp.value());
  store_be(to + kProducerIdAt, producer_id.value());
  store_be(to + kProducerEpochAt, producer_epoch.value());
  store_be(to + kBaseSequenceAt, base_sequence.value());
  store_be(to + kRecordCountAt, record_count);
}

Sequence BatchHeader::last_sequence() const {
  if (base_sequence == kNoSequence) return kNoSequence;
  return sequence_after(base_sequence, last_offset_delta);
}

Sequence sequence_after(Sequence sequence, int32_t count) {
  int64_t sum = int64_t{sequence.value()} + count;
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  return Sequence(static_cast<int32_t>(sum > kMax ? sum - kMax - 1 : sum));
}

Result<BatchView, RecordError> BatchView::first_of(ByteView bytes) {
  if (bytes.size() < kBatchOverheadBytes) return refuse(RecordErrc::kNoBatch, "no record batch");
  int32_t length = field<int32_t>(bytes, kBatchLengthAt);
  if (length < kBatchLengthMin) {
    return refuse(RecordErrc::kCorruptFrame, fmt::format("batch length {} cannot be", length));
  }
  if (bytes.size() < kBytesToMagic) return refuse(RecordErrc::kNoBatch, "record batch cut short");
  int8_t magic = field<int8_t>(bytes, kMagicAt);
  if (magic < 0 || magic > kMagicV2) {
    return refuse(RecordErrc::kCorruptFrame, fmt::format("unknown magic {}", magic));
  }
  size_t size = kBatchOverheadBytes + static_cast<size_t>(length);
  if (bytes.size() < size) return refuse(RecordErrc::kNoBatch, "record batch cut short");
  if (magic < kMagicV2) {
    return refuse(RecordErrc::kOldFormat, fmt::format("message format {} is not supported, only 2", magic));
  }
  if (size < kBatchHeaderBytes) {
    return refuse(RecordErrc::kCorruptFrame,
                  fmt::format("batch of {} bytes is smaller than its header", size));
  }
  return BatchView(bytes.first(size), BatchHeader::decode(bytes));
}

bool BatchView::checksum_matches() const { return crc32c(bytes_.subspan(kAttributesAt)) == header_.crc; }

void set_base_offset(MutableByteView header, Offset base_offset) {
  CHECK(header.size() >= kBatchHeaderBytes);
  store_be(header.data() + kBaseOffsetAt, base_offset.value());
}

void set_partition_leader_epoch(MutableByteView header, int32_t epoch) {
  CHECK(header.size() >= kBatchHeaderBytes);
  store_be(header.data() + kPartitionLeaderEpochAt, epoch);
}

void set_attributes_and_max_timestamp(MutableByteView header, int16_t attributes, WallTime max_timestamp) {
  CHECK(header.size() >= kBatchHeaderBytes);
  constexpr size_t kChangedEnd = kMaxTimestampAt + sizeof(int64_t);
  std::array<uint8_t, kChangedEnd - kAttributesAt> difference;
  std::copy_n(header.data() + kAttributesAt, difference.size(), difference.begin());
  store_be(header.data() + kAttributesAt, attributes);
  store_be(header.data() + kMaxTimestampAt, max_timestamp.value());
  for (size_t i = 0; i < difference.size(); ++i) difference[i] ^= header[kAttributesAt + i];

  size_t size = kBatchOverheadBytes + static_cast<size_t>(field<int32_t>(header, kBatchLengthAt));
  uint32_t crc = field<uint32_t>(header, kCrcAt);
  store_be(header.data() + kCrcAt, crc32c_patch(crc, difference, size - kChangedEnd));
}

void stamp_log_append_time(MutableByteView header, WallTime append_time) {
  int16_t attributes = field<int16_t>(header, kAttributesAt);
  set_attributes_and_max_timestamp(header, static_cast<int16_t>(attributes | kLogAppendTimeFlag),
                                   append_time);
}

void seal(MutableByteView batch) {
  CHECK(batch.size() >= kBatchHeaderBytes);
  store_be(batch.data() + kCrcAt, crc32c(batch.subspan(kAttributesAt)));
}

}  // namespace varve::protocol::records
