// What the produce path hands to ingest and what it gets back.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace varve::storage {

enum class AppendVerdict : uint8_t {
  kAccepted,
  kDuplicate,          // stored before, under base_offset: success for the producer
  kBuffered,           // early acknowledgement: in this broker's memory only, no offset yet (base_offset -1)
  kUnknownPartition,   // deleted, or made again under another handle
  kOutOfOrder,         // sequence gap, or a start other than 0 by an unknown producer
  kStaleEpoch,         // older producer epoch
  kInvalidTxnState,    // transactional without an open transaction
  kStoreFailed,        // the upload failed to its deadline: not stored
  kStoreFull,          // the store has no room: not stored
  kLogFull,            // the metadata log takes no more now: not stored
  kUnknownFate,        // may or may not be stored; the producer has to ask again
  kNotStored,          // the log refused the entry, or the object went out of date twice: not stored
  kPredecessorFailed,  // an earlier batch of the same chain failed: not stored (invariant 9)
  kTooManyWaiting,     // limits.chain_batches_waiting_max of this chain wait already: not stored
  kStopping,           // this broker is stopping: not stored
  kRefused,            // the commit was malformed: a bug of ours, logged; asking again will not help
};

// Whether the batch is stored, or promised by early acknowledgement.
bool is_success(AppendVerdict verdict);
// Whether the producer may send the same batch again and hope.
bool is_retriable(AppendVerdict verdict);
std::string_view append_verdict_name(AppendVerdict verdict);

// One record batch (magic 2) that was validated: CRC, sizes, record count, timestamps.
struct AppendBatch {
  PartitionHandle partition;
  Uuid topic;  // with `index` the partition's name in the object's directory, for a rebuild from objects
  PartitionIndex index;
  Slice bytes;  // the whole batch, header included, contiguous; its base offset and epoch do not matter
  uint32_t records = 0;        // last offset delta + 1
  int64_t max_timestamp = -1;  // ms
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  Sequence first_sequence = kNoSequence;  // not negative if there is a producer id
  bool is_transactional = false;
  bool is_log_append_time = false;  // the topic stamps append time
};

// Batches of one Produce request, in its order; any number of partitions, several of one partition too.
struct AppendRequest {
  // Names the connection while it lives, and never another one: the chain of batches without a producer id.
  uint64_t connection = 0;
  // Capacity of the buffer that the batches' slices share. Its owner must hold memory only: the request's own
  // budget ticket stays with the caller until the results are there, also for acks=0. What outlives the request
  // (in uploads, then in the cache) is charged to ingest's and the cache's budget.
  size_t frame_bytes = 0;
  std::vector<AppendBatch> batches;
};

struct AppendResult {
  AppendVerdict verdict = AppendVerdict::kUnknownFate;
  Offset base_offset{-1};
  Offset log_start{-1};
  int64_t append_time = -1;  // ms; -1 unless the topic stamps append time
};

// One for each batch of the request, in its order.
using AppendResults = std::vector<AppendResult>;

}  // namespace varve::storage
