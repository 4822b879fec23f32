// Makes record batches, for clients, tests and the simulator.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "protocol/records/batch.h"
#include "protocol/records/record_iterator.h"

namespace varve::protocol::records {

struct NewRecord {
  WallTime timestamp{0};
  std::optional<ByteView> key;  // nullopt: null
  std::optional<ByteView> value;
  std::span<const HeaderView> headers = {};
};

// What the header says beside the records. Defaults: a plain CreateTime batch as a client sends it.
struct BatchOptions {
  Codec codec = Codec::kNone;
  Offset base_offset{0};
  int32_t partition_leader_epoch = kNoLeaderEpoch;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  Sequence base_sequence = kNoSequence;
  bool transactional = false;
  bool control = false;
};

// Collects records, then build(). One user at a time.
class BatchBuilder {
 public:
  explicit BatchBuilder(const BatchOptions& options) : options_(options) {}

  // Takes the next offset after the record before it.
  void add(const NewRecord& record) { add_at(next_delta_, record); }
  // At a distance from the base offset that is above the last record's: compaction leaves gaps.
  void add_at(int32_t offset_delta, const NewRecord& record);

  // Of the batch to be built; a client learns them last.
  void set_producer(ProducerId id, ProducerEpoch epoch, Sequence base_sequence) {
    options_.producer_id = id;
    options_.producer_epoch = epoch;
    options_.base_sequence = base_sequence;
  }

  int32_t record_count() const { return count_; }
  // Of the batch so far, uncompressed.
  size_t bytes() const { return kBatchHeaderBytes + records_.size(); }

  // The batch, and the builder is empty again. CHECKs that it has records, below 1 GiB. last_offset_delta: set by
  // compaction when records at the end are gone.
  std::vector<uint8_t> build(std::optional<int32_t> last_offset_delta = std::nullopt);

 private:
  BatchOptions options_;
  ByteWriter records_;
  ByteWriter body_;  // of one record, for its length
  int32_t count_ = 0;
  int32_t next_delta_ = 0;
  WallTime base_timestamp_ = kNoTimestamp;
  WallTime max_timestamp_ = kNoTimestamp;
};

// A batch without records that holds the place of offsets [options.base_offset, last_offset], as compaction and
// publication leave it. `max_timestamp` is that of the records it stands for.
std::vector<uint8_t> build_empty_batch(const BatchOptions& options, Offset last_offset,
                                       WallTime max_timestamp);

}  // namespace varve::protocol::records
