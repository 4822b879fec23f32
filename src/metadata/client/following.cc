#include "metadata/client/client_loops.h"

namespace varve::metadata {
namespace {

// A host's wake-up may get lost; the log is looked at this often anyway.
constexpr Duration kPollInterval = 500ms;

}  // namespace

using runtime::call;
using runtime::Completion;
using runtime::Done;
using runtime::Task;

Task<> MetadataClient::Impl::follow_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  Duration backoff = kBackoffMin;
  while (!context.stop.stop_requested()) {
    LogPosition position = co_await call(runtime.core(), [this] { return core.state().position(); });
    co_await log.wait_for_entries(position, runtime.now() + kPollInterval);
    if (context.stop.stop_requested()) break;
    auto caught_up = co_await catch_up();
    if (caught_up) {
      backoff = kBackoffMin;
      continue;
    }
    if (is_fatal(caught_up.error().code)) {
      end_with("the metadata log cannot be followed any more: " + caught_up.error().message);
      break;
    }
    logger.warn("reading the metadata log failed, trying again", {{"problem", caught_up.error().message}});
    co_await runtime::sleep_for(backoff);
    backoff = longer_backoff(backoff);
  }
}

Task<LogResult<void>> MetadataClient::Impl::catch_up() {
  while (true) {
    LogPosition position = co_await call(runtime.core(), [this] { return core.state().position(); });
    auto page = co_await log.read(position, kPageBytes);
    bool needs_snapshot = page ? page->trimmed > position : page.error().code == LogErrc::kTrimmed;
    if (needs_snapshot) {
      auto reloaded = co_await reload_newest_snapshot(page ? page->trimmed : position.plus(1));
      if (!reloaded) co_return reloaded;
      continue;
    }
    if (!page) co_return pass_error(page);
    if (page->entries.empty()) co_return LogResult<void>{};
    co_await call(runtime.core(), [this, entries = std::move(page->entries)] { core.apply(entries); });
  }
}

Task<LogResult<void>> MetadataClient::Impl::reload_newest_snapshot(LogPosition trimmed) {
  auto found = co_await snapshots.find();
  if (!found) co_return fail(LogErrc::kUnavailable, found.error().message);
  LogPosition position = co_await call(runtime.core(), [this] { return core.state().position(); });
  auto restored = co_await restore(std::move(*found), position, trimmed);
  if (!restored) co_return pass_error(restored);
  if (!restored->state) {
    // One that another broker has just recorded may not be listed yet; asking again is all that helps.
    co_return fail(LogErrc::kUnavailable,
                   "the log is trimmed above this broker and no newer snapshot can be used:" +
                       (restored->problems.empty() ? " none was found" : restored->problems));
  }
  co_await call(runtime.core(), [this, state = restored->state] { core.reload(std::move(*state)); });
  logger.info("reloaded a snapshot, the log was trimmed past this broker",
              {{"position", restored->snapshot}});
  co_return LogResult<void>{};
}

Task<> MetadataClient::Impl::sync_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  Duration backoff = kBackoffMin;
  while (!context.stop.stop_requested()) {
    Completion<Done> wanted = co_await call(runtime.core(), [this] { return syncs.wanted(); });
    co_await runtime::wait_until(wanted, runtime.now() + config.sync_interval, Done{});
    if (context.stop.stop_requested()) break;

    // Taken before the tail is read: later callers wait for the next round.
    auto waiters = co_await call(runtime.core(), [this] { return syncs.begin_round(); });
    MonotonicTime started = runtime.now();
    auto tail = co_await log.tail();
    if (!tail) {
      sync_failures.add();
      if (is_fatal(tail.error().code))
        end_with("the metadata log's tail cannot be read: " + tail.error().message);
      co_await call(runtime.core(),
                    [this, waiters = std::move(waiters)]() mutable { syncs.put_back(std::move(waiters)); });
      co_await runtime::sleep_for(backoff);
      backoff = longer_backoff(backoff);
      continue;
    }
    backoff = kBackoffMin;
    LogPosition position = *tail;
    auto applied = co_await call(runtime.core(), [this, position] { return core.applied_up_to(position); });
    co_await runtime::wait_until(applied, MonotonicTime::never(), Done{});
    if (context.stop.stop_requested()) {
      for (const SyncQueue::Waiter& waiter : waiters) waiter.set(sync_stopped());
      break;
    }
    last_progress.store(started.since_zero().count(), std::memory_order_relaxed);
    for (const SyncQueue::Waiter& waiter : waiters) waiter.set(position);
  }
}

Task<Result<LogPosition, SyncError>> MetadataClient::Impl::sync(MonotonicTime deadline) {
  if (bugs.absence_without_sync) {
    co_return co_await call(runtime.core(), [this] { return core.state().position(); });
  }
  SyncQueue::Waiter waiter;
  co_await call(runtime.core(), [this, waiter] { syncs.add(waiter); });
  Result<LogPosition, SyncError> late =
      fail(SyncErrc::kTimeout, "the metadata log's tail was not reached in time");
  co_return co_await runtime::wait_until(waiter, deadline, late);
}

}  // namespace varve::metadata
