// What a partition remembers of producers with an id: the last batches of each, for the checks of idempotence
// (KIP-98).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "metadata/state/entry.h"
#include "metadata/state/outcome.h"

namespace varve::metadata {

// The sequence `count` after `sequence`: after 2147483647 comes 0.
inline Sequence sequence_after(Sequence sequence, uint32_t count) {
  uint64_t sum = static_cast<uint64_t>(sequence.value()) + count;
  return Sequence(static_cast<int32_t>(sum & 0x7fffffff));
}

struct KeptBatch {
  Sequence first;
  uint32_t records = 0;
  int64_t base_offset = 0;
};

// One producer on one partition. All kept batches are of `epoch`, the newest last.
struct PartitionProducer {
  ProducerEpoch epoch;
  int64_t last_time = 0;  // log time of the newest batch, ms: expiry goes by it
  std::vector<KeptBatch> batches;

  Sequence next_sequence() const { return sequence_after(batches.back().first, batches.back().records); }
};

struct ProducerJudgement {
  BatchVerdict verdict = BatchVerdict::kAccepted;
  int64_t original_offset = -1;  // kDuplicate
};

// The rules for a producer known to the partition; `batch` is well formed.
ProducerJudgement judge_batch(const PartitionProducer& producer, const ProducerBatch& batch);

// Ordered, so that its bytes in a chunk are.
using ProducerTable = std::map<ProducerId, PartitionProducer>;

// Remembers an accepted batch, and forgets all but the newest `batches_kept`.
void remember_batch(PartitionProducer& producer, const ProducerBatch& batch, int64_t base_offset,
                    int64_t log_time, uint32_t batches_kept);

}  // namespace varve::metadata
