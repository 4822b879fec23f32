// What a State is made of. Only files of metadata/state/ include this.
#pragma once

#include <optional>
#include <vector>

#include "metadata/state/broker_table.h"
#include "metadata/state/chunk_changes.h"
#include "metadata/state/group_table.h"
#include "metadata/state/object_table.h"
#include "metadata/state/partition_table.h"
#include "metadata/state/refusal_counts.h"
#include "metadata/state/state.h"
#include "metadata/state/topic_table.h"

namespace varve::metadata {

inline constexpr int64_t kReadGraceMs = 60'000;          // invariant 7
inline constexpr int64_t kAppendTimeLeadMsMax = 60'000;  // of an entry's time before log time
inline constexpr size_t kSnapshotsRetained = 3;

inline constexpr uint32_t kProducerBatchesKeptMax = 255;
// A partition at or above takes no more records.
inline constexpr int64_t kHighWatermarkMax = int64_t{1} << 62;

inline bool are_in_range(const SetLimits& limits) {
  return limits.producer_batches_kept >= 1 && limits.producer_batches_kept <= kProducerBatchesKeptMax &&
         limits.partitions_max >= 1 && limits.partitions_max <= kPartitionsHardMax &&
         limits.producer_expiry_ms <= INT64_MAX;
}

inline bool are_in_range(const SetGroupLimits& limits) { return limits.offsets_retention_ms <= INT64_MAX; }

// Stays where it is made: the tables refer to each other.
struct StateData {
  StateData() = default;
  StateData(const StateData&) = delete;
  StateData& operator=(const StateData&) = delete;

  PlantedBugs bugs;
  BrokerId local_broker{-1};  // read only under the planted bug of invariant 2

  LogPosition position;
  FeatureLevel feature_level{1};
  int64_t log_time = 0;
  FenceEpoch fence_epoch;
  SetLimits limits;
  SetGroupLimits group_limits;
  int64_t next_producer_id = 0;
  int64_t producer_ids_at_expiry = 0;  // next_producer_id when producers were last expired
  uint64_t image_version = 0;
  std::vector<RetainedSnapshot> snapshots;  // oldest first
  BrokerTable brokers;

  // The general chunk and that of brokers always count as changed.
  ChunkChanges changes{*this};
  TopicTable topics{changes};
  ObjectTable objects{changes};
  PartitionTable partitions{objects, changes};
  GroupTable groups{changes};

  // Hashes of the other chunks, as they were when they were last encoded, and their sum.
  std::map<ChunkKey, uint64_t> chunk_hashes;
  uint64_t chunk_hash_sum = 0;

  RefusalCounts refusals;

  DereferenceMoment now() const { return {position, log_time}; }
  PartitionView view_of(PartitionHandle handle, const Partition& partition) const;
};

}  // namespace varve::metadata
