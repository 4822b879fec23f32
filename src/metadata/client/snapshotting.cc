#include "metadata/client/client_loops.h"

namespace varve::metadata {
namespace {

constexpr Duration kCheckInterval = 1s;

std::vector<LogPosition> retained_positions(const State& state) {
  std::vector<LogPosition> positions;
  for (const RetainedSnapshot& snapshot : state.snapshots()) positions.push_back(snapshot.position);
  return positions;
}

}  // namespace

using runtime::call;
using runtime::Task;

Task<> MetadataClient::Impl::snapshot_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  MonotonicTime last_taken = runtime.now();
  while (!context.stop.stop_requested()) {
    co_await runtime::sleep_for(kCheckInterval);
    if (context.stop.stop_requested()) break;
    bool is_old = runtime.now() - last_taken >= config.snapshot_after_time;
    bool is_due = co_await call(runtime.core(), [this, is_old] {
      if (core.is_diverged()) return false;
      // One broker does it; the others step in when it falls far behind.
      uint64_t threshold =
          core.is_first_live() ? config.snapshot_after_bytes : 2 * config.snapshot_after_bytes;
      return core.bytes_since_snapshot() >= threshold ||
             (core.is_first_live() && is_old && core.state().pending_deletions() > 0);
    });
    if (!is_due) continue;
    last_taken = runtime.now();
    if (co_await take_snapshot()) {
      snapshots_taken.add();
    } else {
      snapshot_failures.add();
    }
  }
}

Task<bool> MetadataClient::Impl::take_snapshot() {
  struct Cut {
    LogPosition position;
    FenceEpoch epoch;
    uint64_t hash = 0;
    std::vector<Slice> chunks;
    std::vector<LogPosition> retained;
  };
  // What an earlier try at this position wrote may have been deleted by another broker, and its names must not be
  // written again (invariant 8): so the log moves on first.
  bool was_tried = co_await call(runtime.core(), [this] { return core.state().position() == last_cut; });
  if (was_tried && !co_await propose(Beat{})) co_return false;
  Cut cut = co_await call(runtime.core(), [this] {
    const State& state = core.state();
    return Cut{state.position(), state.fence_epoch(), state.hash(), state.to_chunks(),
               retained_positions(state)};
  });
  last_cut = cut.position;
  auto written = co_await snapshots.write(cut.position, core.nonce(), cut.epoch, cut.hash,
                                          std::move(cut.chunks), std::move(cut.retained));
  if (!written) {
    logger.warn("snapshot failed", {{"problem", written.error().message}});
    co_return false;
  }
  uint64_t bytes = 0;
  for (const auto& chunk : written->chunks) bytes += chunk.bytes;
  auto proposed = co_await propose(SnapshotTaken{cut.position, written->predecessor, cut.hash, bytes});
  if (!proposed || proposed->front().verdict != CommandVerdict::kDone) {
    logger.info("snapshot not recorded", {{"position", cut.position}});
    co_return false;
  }
  struct Retained {
    LogPosition trimmable;
    std::vector<LogPosition> positions;
    std::set<Nonce> registered;
  };
  Retained retained = co_await call(runtime.core(), [this] {
    Retained result{core.state().trimmable(), retained_positions(core.state()), {}};
    for (const auto& [incarnation, broker] : core.state().incarnations()) {
      result.registered.insert(broker.nonce);
    }
    if (bugs.trim_above_snapshot) result.trimmable = core.state().position();
    return result;
  });
  if (retained.trimmable.value() > 0) {
    auto trimmed = co_await log.trim(retained.trimmable);
    if (!trimmed) logger.warn("trimming the log failed", {{"problem", trimmed.error().message}});
  }
  auto deleted =
      co_await snapshots.delete_unretained(std::move(retained.positions), std::move(retained.registered));
  if (!deleted) logger.warn("deleting old snapshots failed", {{"problem", deleted.error().message}});
  co_return true;
}

}  // namespace varve::metadata
