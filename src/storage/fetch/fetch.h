// What the read path is asked and what it answers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/time.h"
#include "metadata/state/state.h"

namespace varve::storage {

enum class FetchErrc : uint8_t {
  kNone,
  kUnknownPartition,  // deleted: the handle is never used again
  kOffsetOutOfRange,  // below the log start, or beyond the high watermark after a sync
  kCorrupt,           // the batch fails its checksum or contradicts its run, twice from the store
  kStorage,           // the object is missing after a new plan, or the store does not answer
  kNoProgress,        // this broker has not heard of the log for limits' time: ask again (invariant 5)
};
std::string_view fetch_error_name(FetchErrc error);

struct FetchPartition {
  PartitionHandle partition;
  Offset offset;
  uint32_t bytes_max = 1 << 20;  // Kafka: partition_max_bytes
};

// Partitions in the order in which they share `bytes_max`.
struct FetchRequest {
  std::vector<FetchPartition> partitions{};
  uint32_t bytes_max = UINT32_MAX;  // of the whole answer; the first batch of it is whole even so (KIP-74)
  uint32_t bytes_min = 0;           // over all partitions together
  MonotonicTime deadline{};         // when to answer with less than bytes_min: now + max_wait_ms
  bool is_read_committed = false;
};

struct FetchedPartition {
  FetchErrc error = FetchErrc::kNone;
  Offset high_watermark{-1};
  Offset last_stable{-1};
  Offset log_start{-1};
  std::vector<metadata::AbortedTransaction> aborted;  // only if read committed
  // Whole batches, one after another, with base offset and leader epoch in place. The first may begin before
  // the offset asked for: clients skip its records below it.
  std::vector<Slice> records;
  size_t records_bytes = 0;
};

// ListOffsets' special times.
inline constexpr int64_t kLatestTimestamp = -1;
inline constexpr int64_t kEarliestTimestamp = -2;
inline constexpr int64_t kMaxTimestamp = -3;
inline constexpr int64_t kEarliestLocalTimestamp = -4;  // as earliest: nothing is more local than the rest
inline constexpr int64_t kLatestTieredTimestamp = -5;   // nothing is tiered: offset -1

struct OffsetQuery {
  PartitionHandle partition;
  int64_t timestamp = kLatestTimestamp;  // ms, or special
};

struct FoundOffset {
  FetchErrc error = FetchErrc::kNone;
  Offset offset{-1};        // -1: no such record
  int64_t timestamp = -1;   // ms, of the record found; -1 for latest and earliest
  bool is_missing = false;  // with kStorage: an object was not there
};

}  // namespace varve::storage
