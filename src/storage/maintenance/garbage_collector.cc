#include "storage/maintenance/garbage_collector.h"

#include <algorithm>
#include <optional>
#include <set>

#include "metadata/state/object_key.h"
#include "runtime/task_scope.h"
#include "storage/maintenance/orphans.h"

namespace varve::storage {

using metadata::ObjectId;
using metadata::State;

struct GarbageCollector::Impl {
  // What the core says at the beginning of a round.
  struct Round {
    bool is_mine = false;
    FenceEpoch fence;
    LogPosition newest_work;
    std::vector<std::pair<ObjectId, std::string>> dead;  // with their keys
  };

  Impl(runtime::Runtime& runtime_in, metadata::MetadataClient& client_in, object_store::ObjectStore& store_in,
       GarbageCollectorConfig config_in, Logger logger_in, MetricRegistry& metrics, PlantedBugs bugs)
      : runtime(runtime_in),
        client(client_in),
        store(store_in),
        config(std::move(config_in)),
        logger(logger_in.component("collector")),
        rules{config.key_prefix, client.identity().id, bugs},
        deleted(
            metrics.counter("varve_objects_deleted_total", "Dereferenced objects deleted from the store")),
        swept(metrics.counter("varve_orphans_deleted_total", "Uncommitted objects deleted by the sweep")),
        failures(metrics.counter("varve_deletions_failed_total", "Deletions that the store did not confirm")),
        sweeps(metrics.counter("varve_sweeps_total", "Sweeps of the bucket that got to its end")) {}

  runtime::Task<> work();
  Round begin_round() const;
  runtime::Task<> advance_fence(Round round);
  // True if there may be more to delete at once.
  runtime::Task<bool> delete_dead(Round round);
  runtime::Task<> sweep();
  // The keys that the store has deleted; nullopt: it did not say.
  runtime::Task<std::optional<std::set<std::string>>> remove(std::vector<std::string> keys);

  runtime::Runtime& runtime;
  metadata::MetadataClient& client;
  object_store::ObjectStore& store;
  const GarbageCollectorConfig config;
  const Logger logger;
  const OrphanRules rules;
  Counter& deleted;
  Counter& swept;
  Counter& failures;
  Counter& sweeps;
  LogLimiter store_problems{60s};

  // The worker's own.
  MonotonicTime next_fence;
  MonotonicTime next_sweep;
  // Advanced since, and again only after more work, or when a sweep finds what the fence has not passed: an advance
  // where nobody uploaded passes nobody.
  std::optional<LogPosition> fenced_work;

  runtime::TaskScope scope;
};

// Core.
GarbageCollector::Impl::Round GarbageCollector::Impl::begin_round() const {
  const State& state = client.state();
  Round round;
  round.fence = state.fence_epoch();
  round.newest_work = client.newest_work();
  const auto& live = state.live_brokers();
  bool is_first = !live.empty() && live.begin()->first == config.broker;
  round.is_mine = is_first && client.has_progress() && !client.is_diverged();
  if (!round.is_mine) return round;
  for (const metadata::PendingDeletion& pending : state.deletable(config.keys_per_request)) {
    auto incarnation = state.incarnations().find(pending.object.incarnation);
    if (incarnation == state.incarnations().end()) continue;
    metadata::WalObjectName name{.log_id = rules.log_id,
                                 .nonce = incarnation->second.nonce,
                                 .epoch = pending.epoch,
                                 .number = pending.object.number};
    round.dead.emplace_back(pending.object, metadata::wal_key(config.key_prefix, name));
  }
  return round;
}

runtime::Task<> GarbageCollector::Impl::work() {
  next_fence = runtime.now() + config.fence_interval;
  // A crash may have been why this broker starts, so the first sweep comes soon after the first fence.
  next_sweep = next_fence;
  while (co_await runtime::sleep_for(config.look_interval) == runtime::Wake::kTimeReached) {
    Round round = co_await runtime::call(runtime.core(), [this] { return begin_round(); });
    if (!round.is_mine) continue;
    if (runtime.now() >= next_fence) {
      next_fence = runtime.now() + config.fence_interval;
      co_await advance_fence(round);
    }
    while (co_await delete_dead(std::move(round))) {
      round = co_await runtime::call(runtime.core(), [this] { return begin_round(); });
    }
    if (runtime.now() >= next_sweep) {
      co_await sweep();
      next_sweep = runtime.now() + config.sweep_interval;
    }
  }
}

runtime::Task<> GarbageCollector::Impl::advance_fence(Round round) {
  // The log of an idle cluster stays as it is, but for beats.
  if (round.newest_work == fenced_work) co_return;
  FenceEpoch next = round.fence.plus(1);
  auto advanced = co_await client.propose(metadata::AdvanceGcFence{next});
  if (!advanced) co_return;
  // Work that came between may have begun under the new epoch, or under the old one: then the next advance is due.
  fenced_work = round.newest_work;
  logger.debug("the fence advanced", {{"epoch", next}});
}

runtime::Task<bool> GarbageCollector::Impl::delete_dead(Round round) {
  if (round.dead.empty()) co_return false;
  std::vector<std::string> keys;
  keys.reserve(round.dead.size());
  for (const auto& [object, key] : round.dead) keys.push_back(key);
  auto gone = co_await remove(std::move(keys));
  if (!gone) co_return false;
  metadata::ObjectsDeleted command;
  for (const auto& [object, key] : round.dead) {
    if (gone->contains(key)) command.objects.push_back(object);
  }
  if (command.objects.empty()) co_return false;
  deleted.add(command.objects.size());
  bool is_complete = command.objects.size() == config.keys_per_request;
  // Unknown or refused: the next round deletes again what is gone already, which is harmless.
  auto told = co_await client.propose(std::move(command));
  co_return is_complete&& told.has_value();
}

runtime::Task<std::optional<std::set<std::string>>> GarbageCollector::Impl::remove(
    std::vector<std::string> keys) {
  std::set<std::string> gone(keys.begin(), keys.end());
  auto left = co_await store.delete_many(std::move(keys));
  if (!left) {
    failures.add(gone.size());
    logger.limited(store_problems, runtime.now(), LogLevel::kWarn, "objects could not be deleted",
                   {{"problem", left.error().message}});
    co_return std::nullopt;
  }
  for (const std::string& key : *left) gone.erase(key);
  failures.add(left->size());
  co_return gone;
}

runtime::Task<> GarbageCollector::Impl::sweep() {
  std::string after;
  while (true) {
    auto page = co_await store.list(config.key_prefix + "/_wal/", after, config.keys_per_request);
    if (!page) {
      logger.limited(store_problems, runtime.now(), LogLevel::kWarn, "the bucket could not be swept",
                     {{"problem", page.error().message}});
      co_return;
    }
    if (!page->objects.empty()) after = page->objects.back().key;
    auto keys = std::make_shared<std::vector<std::string>>();
    for (object_store::ObjectInfo& object : page->objects) keys->push_back(std::move(object.key));
    // The state has applied the fence it goes by, so no entry to come can refer to what it calls an orphan.
    Orphans orphans = co_await runtime::call(runtime.core(), [this, keys] {
      return client.is_diverged() ? Orphans() : find_orphans(client.state(), rules, *keys);
    });
    // Its upload was given up, and nothing in the log tells of that.
    if (orphans.has_later) fenced_work.reset();
    if (!orphans.keys.empty()) {
      auto gone = co_await remove(std::move(orphans.keys));
      if (gone) swept.add(gone->size());
    }
    if (!page->is_truncated) break;
  }
  sweeps.add();
}

GarbageCollector::GarbageCollector(runtime::Runtime& runtime, metadata::MetadataClient& client,
                                   object_store::ObjectStore& store, GarbageCollectorConfig config,
                                   Logger logger, MetricRegistry& metrics, PlantedBugs bugs)
    : impl_(std::make_unique<Impl>(runtime, client, store, std::move(config), std::move(logger), metrics,
                                   bugs)) {}

GarbageCollector::~GarbageCollector() = default;

void GarbageCollector::start() {
  impl_->scope.spawn(impl_->runtime.io(impl_->runtime.io_count() - 1), "collector", impl_->work());
}

runtime::Task<> GarbageCollector::stop() { co_await impl_->scope.close(); }

}  // namespace varve::storage
