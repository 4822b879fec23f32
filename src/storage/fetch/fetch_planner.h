// Plans of reads, from cluster state at one log position. Plain functions for the core; no I/O.
#pragma once

#include <optional>
#include <vector>

#include "metadata/state/state.h"
#include "storage/cache/object_reader.h"
#include "storage/fetch/fetch.h"
#include "storage/fetch/sequential_readers.h"

namespace varve::storage {

struct PlannedRun {
  metadata::StoredRun run;
  ObjectRef object;  // unless the run is a marker
};

// What is to be read of one partition, and what is said of it whatever the read gives.
struct PlannedPartition {
  FetchErrc error = FetchErrc::kNone;
  bool is_beyond_end = false;  // above the high watermark known here: another broker may know a higher one
  metadata::PartitionView view;
  std::vector<metadata::AbortedTransaction> aborted;
  Offset from;
  Offset end;  // nothing at or above is served
  std::vector<PlannedRun> runs;
  size_t bytes_max = 0;        // 0: nothing is read
  bool must_progress = false;  // its first batch comes whole, whatever its size
  size_t bytes_estimate = 0;   // of what is there to be read, at most what is asked for
  ReadClass read_class = ReadClass::kTail;
  std::vector<PlannedRun> read_ahead;  // for the next fetch of a reader that goes on
};

struct PlannedFetch {
  std::vector<PlannedPartition> partitions;  // as asked
  uint64_t bytes_estimate = 0;
  bool has_error = false;
  bool is_beyond_end = false;
};

struct PlanOptions {
  Uuid log_id;
  bool has_progress = true;   // a recent sync: the end known here may be taken for the end
  bool end_is_final = false;  // after a sync: beyond the end is out of range
  // Null: no reading ahead. Else those who go on get runs of about that many bytes more.
  const SequentialReaders* readers = nullptr;
  size_t read_ahead_bytes = 0;
};

ObjectRef object_ref(const metadata::State& state, const Uuid& log_id, const metadata::StoredRun& run);

PlannedFetch plan_fetch(const metadata::State& state, const FetchRequest& request,
                        const PlanOptions& options);

}  // namespace varve::storage
