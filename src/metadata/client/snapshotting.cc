#include "metadata/client/client_loops.h"

namespace varve::metadata {
namespace {

constexpr Duration kCheckInterval = 1s;
// The longest pause after snapshots that failed, one after the other.
constexpr Duration kRetryMax = 60s;
// For a large state to be cut.
constexpr Duration kCutWithin = 60s;
// For the other live brokers to say their hash. One whose session has ended is fenced before.
constexpr Duration kAgreeWithin = 30s;
constexpr Duration kAskAgainAfter = 100ms;

}  // namespace

using runtime::call;
using runtime::Task;

Task<> MetadataClient::Impl::snapshot_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  MonotonicTime last_taken = runtime.now();
  Duration pause = kCheckInterval;
  while (!context.stop.stop_requested()) {
    co_await runtime::sleep_for(pause);
    if (context.stop.stop_requested()) break;
    bool is_old = runtime.now() - last_taken >= config.snapshot_after_time;
    bool is_due = co_await call(runtime.core(), [this, is_old] {
      if (core.is_diverged()) return false;
      // One broker does it; the others step in when it falls far behind.
      uint64_t threshold =
          core.is_first_live() ? config.snapshot_after_bytes : 2 * config.snapshot_after_bytes;
      bool is_wanted = core.state().pending_deletions() > 0 || core.is_snapshot_overdue();
      return core.bytes_since_snapshot() >= threshold || (core.is_first_live() && is_old && is_wanted);
    });
    if (!is_due) continue;
    last_taken = runtime.now();
    if (co_await take_snapshot()) {
      pause = kCheckInterval;
      snapshots_taken.add();
      co_await trim_and_delete();
    } else {
      pause = std::min(2 * pause, kRetryMax);
      snapshot_failures.add();
    }
  }
}

// Cuts what is to be hashed or written, a little at a time, so that nobody waits long for the core.
Task<> MetadataClient::Impl::cut_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  while (!context.stop.stop_requested()) {
    auto wanted = co_await call(runtime.core(), [this] { return core.cut_wanted(); });
    co_await runtime::wait_until(wanted, MonotonicTime::never(), runtime::Done{});
    bool has_more = true;
    while (has_more && !context.stop.stop_requested()) {
      has_more = co_await call(runtime.core(), [this] { return core.cut_work(); });
    }
  }
}

Task<std::optional<SnapshotCut>> MetadataClient::Impl::cut_snapshot() {
  std::optional<SnapshotCut> none;
  auto wanted = co_await call(runtime.core(), [this] { return core.cut_at_next_beat(); });
  // An entry of its own for each try also makes the names of each try new (invariant 8).
  auto asked = co_await propose(Beat{});
  auto cut = asked ? co_await runtime::wait_until(wanted, runtime.now() + kCutWithin, none) : none;
  if (!cut) co_await call(runtime.core(), [this] { core.cancel_snapshot(); });
  co_return cut;
}

Task<bool> MetadataClient::Impl::is_agreed(LogPosition position) {
  runtime::TaskContext& context = co_await runtime::this_context();
  MonotonicTime deadline = runtime.now() + kAgreeWithin;
  while (!context.stop.stop_requested()) {
    bool is_late = runtime.now() >= deadline;
    Agreement agreement = co_await call(
        runtime.core(), [this, position, is_late] { return core.agreement(position, is_late); });
    if (agreement != Agreement::kAwaited) co_return agreement == Agreement::kAgreed;
    if (is_late) break;
    co_await runtime::sleep_for(kAskAgainAfter);
  }
  co_return false;
}

Task<bool> MetadataClient::Impl::take_snapshot() {
  std::optional<SnapshotCut> cut = co_await cut_snapshot();
  if (!cut) {
    logger.warn("snapshot failed", {{"problem", "the state could not be cut"}});
    co_return false;
  }
  LogPosition position = cut->state.position;
  uint64_t hash = cut->state.hash;
  // Before anything is uploaded: what is never recorded would only lie about.
  if (!co_await is_agreed(position)) {
    logger.warn("no snapshot: not enough live brokers say that it is of their state",
                {{"position", position}});
    co_return false;
  }
  auto written = co_await snapshots.write(position, core.nonce(), cut->state.fence_epoch, hash,
                                          std::move(cut->state.chunks), std::move(cut->retained));
  if (!written) {
    logger.warn("snapshot failed", {{"problem", written.error().message}});
    co_return false;
  }
  uint64_t bytes = 0;
  for (const auto& chunk : written->chunks) bytes += chunk.bytes;
  auto proposed = co_await propose(SnapshotTaken{position, written->predecessor, hash, bytes});
  bool is_recorded = proposed && proposed->front().verdict == CommandVerdict::kDone;
  if (!is_recorded) logger.info("snapshot not recorded", {{"position", position}});
  co_return is_recorded;
}

Task<> MetadataClient::Impl::trim_and_delete() {
  struct Retained {
    bool is_diverged = false;
    LogPosition trimmable;
    std::vector<LogPosition> positions;
    std::set<Nonce> registered;
  };
  Retained retained = co_await call(runtime.core(), [this] {
    Retained result{core.is_diverged(), core.state().trimmable(), retained_positions(core.state()), {}};
    for (const auto& [incarnation, broker] : core.state().incarnations()) {
      result.registered.insert(broker.nonce);
    }
    if (bugs.trim_above_snapshot) result.trimmable = core.state().position();
    return result;
  });
  if (retained.is_diverged) co_return;
  if (retained.trimmable.value() > 0) {
    auto trimmed = co_await log.trim(retained.trimmable);
    if (!trimmed) logger.warn("trimming the log failed", {{"problem", trimmed.error().message}});
  }
  auto deleted =
      co_await snapshots.delete_unretained(std::move(retained.positions), std::move(retained.registered));
  if (!deleted) logger.warn("deleting old snapshots failed", {{"problem", deleted.error().message}});
}

}  // namespace varve::metadata
