// OffsetLookup: the offset of a record by its time, looking into batches where cluster state alone cannot tell.
#pragma once

#include "base/limits.h"
#include "metadata/client/metadata_client.h"
#include "runtime/runtime.h"
#include "storage/fetch/run_reader.h"

namespace varve::storage {

// Owned by Fetcher. Any io task, after a sync.
class OffsetLookup {
 public:
  OffsetLookup(runtime::Runtime& runtime, metadata::MetadataClient& client, RunReader& reader,
               const Limits& limits)
      : runtime_(runtime), client_(client), reader_(reader), limits_(limits) {}

  runtime::Task<FoundOffset> find(OffsetQuery query, bool is_read_committed);

 private:
  struct Plan {
    FetchErrc error = FetchErrc::kNone;
    metadata::PartitionView view;
    std::vector<PlannedRun> runs;
  };

  // Hops to the core. Runs that may hold a record of that time or later, from the offset on; with kMaxTimestamp
  // the one that may hold the latest.
  runtime::Task<Plan> plan(PartitionHandle partition, int64_t timestamp, Offset from);
  runtime::Task<FoundOffset> first_at_or_after(PartitionHandle partition, int64_t timestamp,
                                               Offset log_start);
  runtime::Task<FoundOffset> latest_time(PartitionHandle partition);
  // The first record of the run at or above the log start with the timestamp or a later one.
  runtime::Task<FoundOffset> find_in(PlannedRun run, int64_t timestamp, Offset log_start);
  // The largest timestamp of a batch of the run that ends above the log start; offset is not set.
  runtime::Task<FoundOffset> latest_in(PlannedRun run, Offset log_start);

  runtime::Runtime& runtime_;
  metadata::MetadataClient& client_;
  RunReader& reader_;
  const Limits limits_;
};

}  // namespace varve::storage
