// StorageLedger: what producers sent and were told, and what readers must therefore find.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "protocol/records/batch.h"
#include "sim/scenario.h"
#include "storage/fetch/fetch.h"
#include "storage/ingest/append.h"

namespace varve::sim {

// A batch is named by its base timestamp, which no other has.
using BatchName = int64_t;

struct SentBatch {
  BatchName name = 0;
  PartitionHandle partition;
  Slice bytes;
  uint32_t records = 0;
  // Idempotent producers send a batch until it is acknowledged: it is stored once, in order of sequence.
  ProducerId producer_id = kNoProducerId;
  Sequence first_sequence = kNoSequence;
  // The others send a batch once: what is stored of a connection is in the order in which it was sent.
  uint64_t connection = 0;
  uint64_t place = 0;  // in the order of sending, over all
};

// A batch as it was read.
struct StoredBatch {
  Offset base_offset;
  BatchName name = 0;
  uint32_t records = 0;
};

// Belongs to no node: it survives crashes.
class StorageLedger {
 public:
  explicit StorageLedger(Findings& findings) : findings_(findings) {}

  // Makes a batch that no other equals.
  SentBatch& make(PartitionHandle partition, uint32_t records, size_t value_bytes, ProducerId producer_id,
                  Sequence first_sequence, uint64_t connection);
  void acknowledged(const SentBatch& batch, const storage::AppendResult& result);
  // Acknowledged from the buffer of a broker that has not crashed since.
  void promised(const SentBatch& batch) { promised_.push_back(batch.name); }
  // An answer to a fetch from `offset`: its batches, checked against what was sent.
  std::vector<StoredBatch> read(PartitionHandle partition, Offset offset,
                                const storage::FetchedPartition& fetched);
  // Everything a partition holds, in the end.
  void check_partition(PartitionHandle partition, const std::vector<StoredBatch>& stored,
                       Offset high_watermark);
  // After all partitions were checked.
  void check_promises();

  // Any acknowledged batch of the partition, the n-th of them modulo their number.
  std::optional<Offset> acknowledged_offset(PartitionHandle partition, uint64_t n) const;
  size_t acknowledged_count() const { return acknowledged_count_; }
  // The partition was deleted: nothing of it is looked for.
  void forget(PartitionHandle partition);
  Findings& findings() { return findings_; }

 private:
  Findings& findings_;
  BatchName next_name_ = 1'000'000;
  std::map<BatchName, SentBatch> sent_;
  std::map<PartitionHandle, std::map<Offset, BatchName>> acknowledged_;
  size_t acknowledged_count_ = 0;
  std::vector<BatchName> promised_;
  std::map<BatchName, Offset> found_;
};

}  // namespace varve::sim
