// StorageBroker: the parts of a broker below the Kafka protocol, on one simulated node: metadata client, cache,
// write path, read path. Tests call it from coroutines on the node.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "metadata/client/metadata_client.h"
#include "object_store/object_store.h"
#include "object_store/retrying_store.h"
#include "runtime/task_scope.h"
#include "sim/metadata_log.h"
#include "sim/node.h"
#include "sim/object_store.h"
#include "storage/fetch/fetcher.h"
#include "storage/ingest/ingest.h"
#include "storage/maintenance/garbage_collector.h"

namespace varve::sim {

struct StorageBrokerOptions {
  BrokerId id{1};
  Limits limits{};
  storage::IngestConfig ingest{.key_prefix = "ns"};
  uint64_t snapshot_after_bytes = 64ull << 20;
  Duration snapshot_after_time = 60s;
  // Its prefix and broker are filled in; looks never, unless the interval is set.
  storage::GarbageCollectorConfig collector{.look_interval = std::chrono::hours(1'000)};
  PlantedBugs bugs{};
  // Puts a store of the test's in front of the one that ingest and fetch use, below the retries.
  std::function<std::unique_ptr<object_store::ObjectStore>(object_store::ObjectStore&)> wrap_store{};
  LogSink* log_sink = nullptr;  // null: nothing is logged
};

// Life: made after world, node, store and log. boot() after the node has booted, crash() or stop() before the next
// boot() and before it is destroyed.
class StorageBroker {
 public:
  StorageBroker(Node& node, SimObjectStore& store, SimMetadataLog& log, StorageBrokerOptions options)
      : node_(node), store_(store), log_(log), options_(std::move(options)) {}
  StorageBroker(const StorageBroker&) = delete;
  StorageBroker& operator=(const StorageBroker&) = delete;

  // Starts registering; is_serving() becomes true some time later.
  void boot();
  // The node's process ends where it stands.
  void crash(CrashKind kind = CrashKind::kKilled);
  runtime::Task<> stop();

  bool is_serving() const { return parts_ && parts_->is_serving; }
  bool is_up() const { return parts_ != nullptr; }
  // It did not get through its start, or had to end: crash() it and boot again.
  bool has_failed() const { return parts_ && parts_->has_failed; }
  Node& node() { return node_; }
  Process& process() { return node_.process(); }
  runtime::Executor& io(size_t index = 0) { return process().io(index); }
  metadata::MetadataClient& client() { return *parts_->client; }
  storage::Ingest& ingest() { return *parts_->ingest; }
  storage::Fetcher& fetcher() { return *parts_->fetcher; }
  storage::BlockCache& cache() { return *parts_->cache; }
  MetricRegistry& metrics() { return parts_->metrics; }
  uint64_t counter(std::string_view name) { return parts_->metrics.counter(name, "").value(); }
  const StorageBrokerOptions& options() const { return options_; }

  // Calls from outside the node: they run on it and end with it, in which case the completion is never set.
  runtime::Completion<std::vector<storage::FetchedPartition>> fetch(storage::FetchRequest request);
  runtime::Completion<metadata::ProposeResult> propose(metadata::Command command);

 private:
  struct Parts {
    MetricRegistry metrics;
    Logger logger;
    std::unique_ptr<object_store::ObjectStore> store;
    std::unique_ptr<object_store::ObjectStore> wrapped_store;
    std::unique_ptr<object_store::RetryingStore> data_store;  // that of ingest and fetch
    std::unique_ptr<metadata::MetadataLog> log;
    std::unique_ptr<metadata::MetadataClient> client;
    std::unique_ptr<storage::BlockCache> cache;
    std::unique_ptr<storage::Ingest> ingest;
    std::unique_ptr<storage::Fetcher> fetcher;
    std::unique_ptr<storage::GarbageCollector> collector;
    bool is_serving = false;
    bool has_failed = false;
    runtime::TaskScope scope;
  };

  runtime::Task<> run(Parts* parts);

  Node& node_;
  SimObjectStore& store_;
  SimMetadataLog& log_;
  const StorageBrokerOptions options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace varve::sim
