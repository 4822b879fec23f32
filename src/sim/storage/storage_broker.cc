#include "sim/storage/storage_broker.h"

namespace varve::sim {

void StorageBroker::boot() {
  CHECK(!parts_, "the broker is up");
  parts_ = std::make_unique<Parts>();
  Process& process = node_.process();
  if (options_.log_sink != nullptr) {
    parts_->logger =
        Logger(
            *options_.log_sink, [&process] { return process.wall_now(); }, LogLevel::kWarn, "broker")
            .with({"host", node_.host()});
  }
  parts_->store = store_.client(node_.host());
  parts_->log = log_.client(process);
  metadata::ClientConfig config;
  config.broker = options_.id;
  config.key_prefix = options_.ingest.key_prefix;
  config.snapshot_after_bytes = options_.snapshot_after_bytes;
  config.snapshot_after_time = options_.snapshot_after_time;
  parts_->client = std::make_unique<metadata::MetadataClient>(process, *parts_->log, *parts_->store, config,
                                                              parts_->logger, parts_->metrics, options_.bugs);
  if (options_.wrap_store) parts_->wrapped_store = options_.wrap_store(*parts_->store);
  object_store::RetryOptions retry;
  retry.attempt_max = options_.limits.object_attempt_max;
  retry.deadline_max = options_.limits.object_deadline_max;
  retry.may_write_twice = [](std::string_view) { return false; };
  parts_->data_store = std::make_unique<object_store::RetryingStore>(
      parts_->wrapped_store ? *parts_->wrapped_store : *parts_->store, process, parts_->metrics,
      std::move(retry));
  object_store::ObjectStore& data_store = *parts_->data_store;
  parts_->cache = std::make_unique<storage::BlockCache>(
      storage::BlockCacheConfig{.bytes_max = options_.limits.cache_bytes_max}, parts_->metrics);
  parts_->ingest =
      std::make_unique<storage::Ingest>(process, *parts_->client, data_store, *parts_->cache, options_.ingest,
                                        options_.limits, parts_->logger, parts_->metrics, options_.bugs);
  parts_->fetcher =
      std::make_unique<storage::Fetcher>(process, *parts_->client, data_store, *parts_->cache,
                                         storage::FetcherConfig{.key_prefix = options_.ingest.key_prefix},
                                         options_.limits, parts_->logger, parts_->metrics, options_.bugs);
  parts_->client->set_applied_listener([parts = parts_.get()](const metadata::ApplyOutcome& outcome) {
    parts->ingest->on_applied(outcome);
    parts->fetcher->on_applied(outcome);
  });
  parts_->scope.spawn(io(), "broker", run(parts_.get()));
}

runtime::Task<> StorageBroker::run(Parts* parts) {
  auto started = co_await parts->client->start();
  if (started) {
    storage::GarbageCollectorConfig config = options_.collector;
    config.key_prefix = options_.ingest.key_prefix;
    config.broker = options_.id;
    parts->collector = std::make_unique<storage::GarbageCollector>(process(), *parts->client, *parts->store,
                                                                   std::move(config), parts->logger,
                                                                   parts->metrics, options_.bugs);
    parts->collector->start();
  }
  parts->is_serving = started.has_value();
  if (started) co_await parts->client->fatal().wait();
  parts->is_serving = false;
  parts->has_failed = true;
}

namespace {

runtime::Task<> fetch_into(storage::Fetcher* fetcher, storage::FetchRequest request,
                           runtime::Completion<std::vector<storage::FetchedPartition>> result) {
  result.set(co_await fetcher->fetch(std::move(request)));
}

runtime::Task<> propose_into(metadata::MetadataClient* client, metadata::Command command,
                             runtime::Completion<metadata::ProposeResult> result) {
  result.set(co_await client->propose(std::move(command)));
}

}  // namespace

runtime::Completion<std::vector<storage::FetchedPartition>> StorageBroker::fetch(
    storage::FetchRequest request) {
  runtime::Completion<std::vector<storage::FetchedPartition>> result;
  parts_->scope.spawn(io(1), "fetch", fetch_into(parts_->fetcher.get(), std::move(request), result));
  return result;
}

runtime::Completion<metadata::ProposeResult> StorageBroker::propose(metadata::Command command) {
  runtime::Completion<metadata::ProposeResult> result;
  parts_->scope.spawn(io(1), "propose", propose_into(parts_->client.get(), std::move(command), result));
  return result;
}

void StorageBroker::crash(CrashKind kind) {
  node_.crash(kind);
  parts_.reset();
}

runtime::Task<> StorageBroker::stop() {
  parts_->is_serving = false;
  if (parts_->collector) co_await parts_->collector->stop();
  co_await parts_->fetcher->stop();
  co_await parts_->ingest->stop();
  co_await parts_->client->stop();
  parts_.reset();
}

}  // namespace varve::sim
