// Fetcher: the read path. A plan from cluster state, taken on the core at one log position; then I/O on the
// caller's executor, through the block cache, all partitions in parallel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/planted_bugs.h"
#include "metadata/client/metadata_client.h"
#include "object_store/object_store.h"
#include "runtime/runtime.h"
#include "storage/cache/block_cache.h"
#include "storage/fetch/fetch.h"

namespace varve::storage {

struct FetcherConfig {
  std::string key_prefix;  // the namespace
};

// Life: construct before the metadata client starts, serve while it serves, co_await stop(), destroy. Owned by
// the broker.
class Fetcher {
 public:
  Fetcher(runtime::Runtime& runtime, metadata::MetadataClient& client, object_store::ObjectStore& store,
          BlockCache& cache, FetcherConfig config, const Limits& limits, Logger logger,
          MetricRegistry& metrics, PlantedBugs bugs = {});
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // Any io task. Answers, in the order asked, when bytes_min are there over all partitions, when a partition has
  // an error, or at the deadline; a waiting fetch holds no thread and no lock. A stop request ends the wait.
  runtime::Task<std::vector<FetchedPartition>> fetch(FetchRequest request);

  // Any io task. Offsets by time or special value, after a sync that must end by `deadline` (else kNoProgress
  // for all). With `is_read_committed` nothing at or above the last stable offset is found.
  runtime::Task<std::vector<FoundOffset>> list_offsets(std::vector<OffsetQuery> queries,
                                                       bool is_read_committed, MonotonicTime deadline);

  // Core only; the broker calls it from the metadata client's applied listener.
  void on_applied(const metadata::ApplyOutcome& outcome);

  // Any io task, once. Waiting fetches answer with what there is.
  runtime::Task<> stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::storage
