// Record batch v2 (magic 2), the unit that Kafka produces, stores and fetches; format: KIP-98 and the "Record Batch"
// section of Kafka's documentation. Everything is big-endian; the CRC-32C covers what follows it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/compression.h"
#include "base/ids.h"
#include "base/limits.h"
#include "base/time.h"
#include "protocol/records/record_error.h"

namespace varve::protocol::records {

// Where the header's fields begin.
inline constexpr size_t kBaseOffsetAt = 0;
inline constexpr size_t kBatchLengthAt = 8;
inline constexpr size_t kPartitionLeaderEpochAt = 12;
inline constexpr size_t kMagicAt = 16;
inline constexpr size_t kCrcAt = 17;
inline constexpr size_t kAttributesAt = 21;
inline constexpr size_t kLastOffsetDeltaAt = 23;
inline constexpr size_t kBaseTimestampAt = 27;
inline constexpr size_t kMaxTimestampAt = 35;
inline constexpr size_t kProducerIdAt = 43;
inline constexpr size_t kProducerEpochAt = 51;
inline constexpr size_t kBaseSequenceAt = 53;
inline constexpr size_t kRecordCountAt = 57;
inline constexpr size_t kBatchHeaderBytes = kRecordBatchHeaderBytes;
// Base offset and length: what the length does not count.
inline constexpr size_t kBatchOverheadBytes = 12;

inline constexpr int8_t kMagicV2 = 2;
inline constexpr WallTime kNoTimestamp{-1};
inline constexpr int32_t kNoLeaderEpoch = -1;

enum class TimestampType : uint8_t { kCreateTime = 0, kLogAppendTime = 1 };

// Bits of the attributes above the codec's three.
inline constexpr int16_t kCodecMask = 0x07;
inline constexpr int16_t kLogAppendTimeFlag = 0x08;
inline constexpr int16_t kTransactionalFlag = 0x10;
inline constexpr int16_t kControlFlag = 0x20;
inline constexpr int16_t kDeleteHorizonFlag = 0x40;

// The header's fields as they stand, unchecked.
struct BatchHeader {
  Offset base_offset{0};
  int32_t batch_length = 0;
  int32_t partition_leader_epoch = kNoLeaderEpoch;
  int8_t magic = kMagicV2;
  uint32_t crc = 0;
  int16_t attributes = 0;
  int32_t last_offset_delta = 0;
  WallTime base_timestamp = kNoTimestamp;
  WallTime max_timestamp = kNoTimestamp;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  Sequence base_sequence = kNoSequence;
  int32_t record_count = 0;

  bool operator==(const BatchHeader&) const = default;

  // `bytes` has at least kBatchHeaderBytes.
  static BatchHeader decode(ByteView bytes);
  void encode(MutableByteView bytes) const;

  // nullopt: the number of no codec.
  std::optional<Codec> codec() const { return codec_of_id(attributes & kCodecMask); }
  bool log_append_time() const { return (attributes & kLogAppendTimeFlag) != 0; }
  bool transactional() const { return (attributes & kTransactionalFlag) != 0; }
  bool control() const { return (attributes & kControlFlag) != 0; }
  // As in Kafka, any negative id is none.
  bool has_producer() const { return producer_id.value() >= 0; }
  Offset last_offset() const { return base_offset.plus(last_offset_delta); }
  // kNoSequence when the batch has none.
  Sequence last_sequence() const;
};

// The sequence `count` records after `sequence`: 2147483647 is followed by 0. count >= 0.
Sequence sequence_after(Sequence sequence, int32_t count);

// One whole batch over bytes that somebody else keeps alive. A value, cheap to copy; any thread.
class BatchView {
 public:
  // The batch that `bytes` begins with; what follows it is bytes.subspan(view.bytes().size()). Checks that it is
  // whole and of magic 2, nothing else: kNoBatch, kCorruptFrame, kOldFormat.
  static Result<BatchView, RecordError> first_of(ByteView bytes);

  ByteView bytes() const { return bytes_; }
  // The records, perhaps compressed.
  ByteView payload() const { return bytes_.subspan(kBatchHeaderBytes); }
  const BatchHeader& header() const { return header_; }
  // Reads every byte.
  bool checksum_matches() const;

 private:
  BatchView(ByteView bytes, const BatchHeader& header) : bytes_(bytes), header_(header) {}

  ByteView bytes_;
  BatchHeader header_;
};

// What the broker writes into a batch that it owns a copy of. `header` begins at the batch and has at least
// kBatchHeaderBytes, of a header that BatchView accepted; the records need not be there.

// Base offset and leader epoch lie before what the CRC covers.
void set_base_offset(MutableByteView header, Offset base_offset);
void set_partition_leader_epoch(MutableByteView header, int32_t epoch);
// Sets attributes and maximum timestamp, and moves the CRC along without reading the records: a CRC that was wrong
// stays wrong.
void set_attributes_and_max_timestamp(MutableByteView header, int16_t attributes, WallTime max_timestamp);
// message.timestamp.type=LogAppendTime: all records show `append_time`.
void stamp_log_append_time(MutableByteView header, WallTime append_time);
// Computes the CRC of a whole batch and stores it.
void seal(MutableByteView batch);

}  // namespace varve::protocol::records
