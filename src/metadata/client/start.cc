#include "metadata/client/bucket_identity.h"
#include "metadata/client/client_loops.h"

namespace varve::metadata {

using runtime::call;
using runtime::Task;

MetadataClient::Impl::Impl(runtime::Runtime& runtime_in, MetadataLog& log_in,
                           object_store::ObjectStore& store_in, ClientConfig config_in, Logger& logger_in,
                           MetricRegistry& metrics, PlantedBugs bugs_in)
    : runtime(runtime_in),
      log(log_in),
      store(store_in),
      config(std::move(config_in)),
      logger(logger_in.component("metadata")),
      bugs(bugs_in),
      random(runtime_in.random_seed()),
      core(config.broker, config.proposals_waiting_max, bugs_in),
      snapshots(runtime_in, store_in, config.key_prefix),
      appends(
          metrics.counter("varve_log_appends_total", "Entries appended to the metadata log by this broker.")),
      append_failures(
          metrics.counter("varve_log_append_failures_total",
                          "Appends that failed or got no answer; the same entry is tried again.")),
      sync_failures(
          metrics.counter("varve_log_sync_failures_total", "Reads of the log's tail that got no answer.")),
      snapshots_taken(metrics.counter("varve_snapshots_total", "Snapshots of the metadata state taken.")),
      snapshot_failures(
          metrics.counter("varve_snapshot_failures_total", "Snapshots that could not be taken.")),
      state_mismatches(metrics.counter(
          "varve_state_mismatches_total",
          "Times that this broker's state was found to differ from another broker's or from a snapshot.")),
      append_seconds(metrics.histogram("varve_log_append_seconds", "Time of one append to the metadata log.",
                                       kStageSecondsBuckets)),
      apply_seconds(metrics.histogram("varve_log_apply_seconds",
                                      "Time from an append's success until this broker has applied the "
                                      "entry: the last stage of a produce.",
                                      kStageSecondsBuckets)) {}

Task<Result<void, StartError>> MetadataClient::Impl::start() {
  auto joined = co_await join();
  // Nobody stops what has not started: nothing of it may go on.
  if (!joined) co_await stop();
  co_return joined;
}

Task<Result<void, StartError>> MetadataClient::Impl::join() {
  auto opened = co_await open_log();
  if (!opened) co_return opened;
  auto caught_up = co_await catch_up();
  if (!caught_up) co_return fail(StartErrc::kLog, "reading the metadata log: " + caught_up.error().message);
  bool is_too_old = co_await call(runtime.core(), [this] { return core.is_above_this_program(); });
  if (is_too_old)
    co_return fail(StartErrc::kFeatureLevel,
                   "the cluster is at a feature level above what this program knows");

  runtime::Executor& executor = runtime.io(0);
  last_progress.store(runtime.now().since_zero().count(), std::memory_order_relaxed);
  scope.spawn(executor, "metadata follow", follow_loop());
  scope.spawn(executor, "metadata sync", sync_loop());
  scope.spawn(executor, "metadata cuts", cut_loop());
  auto registered = co_await register_broker();
  if (!registered) co_return registered;
  scope.spawn(executor, "metadata append", append_loop());
  scope.spawn(executor, "metadata registration", registration_loop());
  scope.spawn(executor, "metadata membership", membership_loop());
  scope.spawn(executor, "metadata snapshots", snapshot_loop());
  scope.spawn(executor, "metadata expiry", expiry_loop());
  logger.info("registered", {{"broker", config.broker},
                             {"incarnation", core.incarnation()},
                             {"log", identity.id.to_string()},
                             {"generation", identity.generation}});
  co_return Result<void, StartError>{};
}

Task<Result<void, StartError>> MetadataClient::Impl::open_log() {
  auto opened = co_await log.open(random.uuid());
  if (!opened) co_return fail(StartErrc::kLog, opened.error().message);
  identity = *opened;
  co_await call(runtime.core(), [this] { core.set_log(identity); });
  snapshots.set_log(identity);

  auto tail = co_await log.tail();
  if (!tail) co_return fail(StartErrc::kLog, tail.error().message);
  auto claimed = co_await claim_namespace(store, config.key_prefix, identity, tail->value() == 0);
  if (!claimed) co_return claimed;
  co_return co_await begin_state(*tail);
}

Task<Result<void, StartError>> MetadataClient::Impl::begin_state(LogPosition tail) {
  while (true) {
    auto first_page = co_await log.read(LogPosition(0), 1);
    LogPosition trimmed;
    if (first_page) {
      trimmed = first_page->trimmed;
    } else if (first_page.error().code == LogErrc::kTrimmed) {
      trimmed = LogPosition(1);  // at least something is gone; catch_up() finds out what
    } else {
      co_return fail(StartErrc::kLog, first_page.error().message);
    }
    auto found = co_await snapshots.find();
    if (!found) co_return fail(StartErrc::kStore, found.error().message);
    auto checked = co_await check_not_rolled_back(*found, tail);
    if (!checked) co_return checked;
    auto restored = co_await restore(*found, LogPosition(0), trimmed);
    if (!restored) {
      // It reads both, and names the one that failed.
      co_return fail(StartErrc::kStore, "restoring the state: " + restored.error().message);
    }
    if (restored->state) {
      co_await call(runtime.core(), [this, state = restored->state] { core.reload(std::move(*state)); });
      logger.info("restored the state from a snapshot", {{"position", restored->snapshot}});
      co_return Result<void, StartError>{};
    }
    // A log that was never trimmed tells everything by itself.
    if (trimmed.value() == 0) co_return Result<void, StartError>{};
    // Meanwhile others may have taken newer ones, trimmed the log above those that were found, and deleted them.
    auto later = co_await snapshots.find();
    if (!later) co_return fail(StartErrc::kStore, later.error().message);
    if (!later->empty() && (found->empty() || later->front().position > found->front().position)) continue;
    co_return fail(
        StartErrc::kSnapshotsDamaged,
        fmt::format("the metadata log is trimmed up to {} and no snapshot at or above that can be "
                    "used:{}\nPut the named objects back from a copy of the bucket (an older "
                    "version, a replica, a backup) and start again",
                    trimmed, restored->problems.empty() ? "\n  none was found" : restored->problems));
  }
}

Task<Result<void, StartError>> MetadataClient::Impl::check_not_rolled_back(std::vector<FoundSnapshot> found,
                                                                           LogPosition tail) {
  if (found.empty() || found.front().position <= tail) co_return Result<void, StartError>{};
  // Others may have got so far since the tail was read. Now it is at or above all that was found, if it is sound.
  auto later = co_await log.tail();
  if (!later) co_return fail(StartErrc::kLog, later.error().message);
  if (found.front().position <= *later) co_return Result<void, StartError>{};
  co_return fail(
      StartErrc::kRolledBack,
      fmt::format(
          "snapshot {} lies above the log's tail {}: an older copy of the metadata log was put "
          "back. Serving from it would lose what came after. Put back the newest copy; rebuilding the "
          "log from the bucket ('varve restore') is not in this version yet",
          found.front().key, *later));
}

Task<> MetadataClient::Impl::stop() {
  co_await call(runtime.core(), [this] {
    core.proposer().stop();
    syncs.stop();
  });
  co_await scope.close();
  // Best effort: a session that stays is fenced by the next registration or when it runs out.
  Nonce nonce = core.nonce();
  if (nonce.value() != 0) co_await log.end_session(nonce);
}

}  // namespace varve::metadata
