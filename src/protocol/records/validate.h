// What a broker checks of a batch before it stores it.
#pragma once

#include <cstdint>
#include <limits>

#include "base/limits.h"
#include "protocol/records/batch.h"
#include "protocol/records/payload_reader.h"

namespace varve::protocol::records {

// The topic's settings and the request's circumstances.
struct ProduceRules {
  size_t batch_bytes_max = 1'048'588;  // max.message.bytes: the whole batch, header included
  // max.decompressed.message.bytes: of the records; the limits bind beside it.
  size_t decompressed_bytes_max = std::numeric_limits<size_t>::max();
  TimestampType timestamp_type = TimestampType::kCreateTime;
  // message.timestamp.before.max.ms and .after.max.ms, looked at with kCreateTime only; distances from `now`.
  int64_t timestamp_before_ms_max = std::numeric_limits<int64_t>::max();
  int64_t timestamp_after_ms_max = 3'600'000;
  WallTime now{0};
  bool keys_required = false;  // cleanup.policy has compact
  bool zstd_allowed = true;    // Produce 7 and above
};

struct ProducedBatch {
  BatchView batch;
  // The header to store. It differs from the batch's in attributes, maximum timestamp and CRC when `repaired`: the
  // producer's maximum timestamp was not that of its records (old Sarama sends -1), or it set bits that are
  // not a producer's. With kLogAppendTime nothing is stamped yet: the time comes with the commit.
  BatchHeader header;
  bool repaired = false;
  uint64_t uncompressed_bytes = 0;  // of the records, without the header
};

// Checks the records of one partition of a Produce request: one whole batch, which is returned as a view into
// `records`; the caller stores header.encode() and the batch's payload. Kafka drops an incomplete second batch
// behind the first, so those bytes are ignored here too.
//
// All records are walked, decompressing in a window, because a batch that cannot be read back would block every
// consumer. About one pass for the CRC and one for the records; allocates nothing per record. Errors: see
// RecordErrc; their order of precedence is Kafka's.
Result<ProducedBatch, RecordError> validate_produced(ByteView records, const ProduceRules& rules,
                                                     const Limits& limits, DecodeScratch& scratch);

}  // namespace varve::protocol::records
