// From a snapshot to a state: which one may be used is decided by the log (decision 005).
#include "metadata/client/client_loops.h"

namespace varve::metadata {
namespace {

// For the log to show what it had when it was asked for its tail.
constexpr Duration kSeeTailWithin = 30s;

}  // namespace

using runtime::Task;

Task<MetadataClient::Impl::RestoreResult> MetadataClient::Impl::restore(std::vector<FoundSnapshot> found,
                                                                        LogPosition above,
                                                                        LogPosition trimmed) {
  Restored restored;
  for (const FoundSnapshot& snapshot : found) {
    if (snapshot.position <= above || snapshot.position < trimmed) break;
    auto loaded = co_await snapshots.load(snapshot, bugs);
    if (!loaded && loaded.error().code == SnapshotErrc::kStore) {
      co_return fail(LogErrc::kUnavailable, loaded.error().message);
    }
    if (!loaded) {
      logger.warn("a snapshot is damaged, trying an older one", {{"problem", loaded.error().message}});
      restored.problems += "\n  " + loaded.error().message;
      continue;
    }
    auto state = std::make_shared<State>(std::move(*loaded));
    state->set_local_broker(config.broker);
    auto recorded = co_await replay_to_record(state);
    if (!recorded) co_return pass_error(recorded);
    if (*recorded) {
      restored.state = std::move(state);
      restored.snapshot = snapshot.position;
      break;
    }
    // Somebody wrote it and did not come to record it, or it is of a past that an older copy of the log knows no more.
    logger.info("a snapshot is not recorded in the log, trying an older one", {{"snapshot", snapshot.key}});
    restored.problems += fmt::format("\n  {}: the log does not record it", snapshot.key);
  }
  co_return restored;
}

Task<LogResult<bool>> MetadataClient::Impl::replay_to_record(std::shared_ptr<State> state) {
  runtime::TaskContext& context = co_await runtime::this_context();
  LogPosition position = state->position();
  uint64_t hash = state->hash();
  auto tail = co_await log.tail();
  if (!tail) co_return pass_error(tail);
  MonotonicTime deadline = runtime.now() + kSeeTailWithin;
  while (state->position() < *tail) {
    auto page = co_await log.read(state->position(), kPageBytes);
    if (!page && page.error().code == LogErrc::kTrimmed) co_return false;
    if (!page) co_return pass_error(page);
    if (page->trimmed > state->position()) co_return false;
    if (page->entries.empty()) {
      if (context.stop.stop_requested() || runtime.now() > deadline) {
        co_return fail(LogErrc::kUnavailable, "the log does not show its tail");
      }
      co_await runtime::sleep_for(kBackoffMin);
      continue;
    }
    bool is_recorded = co_await runtime::offload(
        runtime, runtime::Lane::kBulk, [state, position, hash, entries = std::move(page->entries)] {
          for (const LogEntry& entry : entries) {
            if (entry.position <= state->position()) continue;
            // It is for the core to halt, before it applies what it does not know.
            if (state->feature_level() > kHighestFeatureLevel) return true;
            ApplyOutcome outcome = state->apply(entry.position, entry.bytes.view());
            if (!outcome.has_snapshot) continue;
            const RetainedSnapshot& taken = state->snapshots().back();
            if (taken.position == position && taken.state_hash == hash) return true;
          }
          return false;
        });
    if (is_recorded) co_return true;
  }
  co_return false;
}

}  // namespace varve::metadata
