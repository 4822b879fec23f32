// Ingest: the write path. Batches of all partitions share one buffer; sealed, they are one WAL object; after its
// PUT its runs are committed in the metadata log; own apply gives the offsets.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/planted_bugs.h"
#include "metadata/client/metadata_client.h"
#include "object_store/object_store.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"
#include "storage/cache/block_cache.h"
#include "storage/ingest/append.h"

namespace varve::storage {

struct IngestConfig {
  std::string key_prefix;            // the namespace
  Duration commit_interval = 250ms;  // diskless.append.commit.interval.ms; 5 ms on a local folder
  // KAFSCALE_PRODUCE_SYNC_FLUSH=false: batches without a producer id are acknowledged from the buffer.
  bool early_acks = false;
  size_t early_flush_bytes = 4 * kMiB;    // KAFSCALE_SEGMENT_BYTES: so much early-acknowledged data seals
  Duration early_flush_interval = 500ms;  // KAFSCALE_FLUSH_INTERVAL_MS: so old early-acknowledged data seals
};

// Life: construct before the metadata client starts, serve while it serves, co_await stop(), destroy. Owned by
// the broker. Bookkeeping lives on the core executor, uploads are tasks on io executors.
class Ingest {
 public:
  Ingest(runtime::Runtime& runtime, metadata::MetadataClient& client, object_store::ObjectStore& store,
         BlockCache& cache, IngestConfig config, const Limits& limits, Logger logger, MetricRegistry& metrics,
         PlantedBugs bugs = {});
  ~Ingest();
  Ingest(const Ingest&) = delete;
  Ingest& operator=(const Ingest&) = delete;

  // Any executor. Takes the request's place at once, before it returns: calls made in frame order keep it. The
  // completion gets the results when every batch has one. With limits.ingest_memory_bytes_max in use the request
  // waits for room, and those after it wait behind it. Dropping the completion is allowed.
  runtime::Completion<AppendResults> submit(AppendRequest request);
  // submit(), and waits. The place is taken when the task starts.
  runtime::Task<AppendResults> append(AppendRequest request);

  // Core only; the broker calls it from the metadata client's applied listener.
  void on_applied(const metadata::ApplyOutcome& outcome);

  // Any io task. For SIGTERM: seals what waits, takes nothing new (kStopping), and returns when all is settled,
  // or at `deadline`; true if nothing was left. The store, the log and stop() of the metadata client come later.
  runtime::Task<bool> drain(MonotonicTime deadline);
  // Any io task, once. What is left fails with kStopping or kUnknownFate; uploads are given up.
  runtime::Task<> stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::storage
