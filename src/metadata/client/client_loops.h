// The tasks of a MetadataClient: following the log, appending, registering, syncing, taking snapshots. Each runs
// on the first io executor and touches the core only through call().
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "metadata/client/client_core.h"
#include "metadata/client/metadata_client.h"
#include "metadata/client/snapshot_store.h"
#include "metadata/client/sync_queue.h"
#include "runtime/task_scope.h"

namespace varve::metadata {

// Of one read of the log.
inline constexpr size_t kPageBytes = 1 << 20;

struct MetadataClient::Impl {
  Impl(runtime::Runtime& runtime_in, MetadataLog& log_in, object_store::ObjectStore& store_in,
       ClientConfig config_in, Logger& logger_in, MetricRegistry& metrics, PlantedBugs bugs_in);

  // start.cc
  runtime::Task<Result<void, StartError>> start();
  runtime::Task<Result<void, StartError>> join();
  runtime::Task<Result<void, StartError>> open_log();
  // Puts the state of a snapshot in place, if there is one to use, for catch_up() to go on from.
  runtime::Task<Result<void, StartError>> begin_state(LogPosition tail);
  runtime::Task<Result<void, StartError>> check_not_rolled_back(std::vector<FoundSnapshot> found,
                                                                LogPosition tail);
  runtime::Task<> stop();

  // restoring.cc
  // What became of a look for a snapshot to begin from.
  struct Restored {
    std::shared_ptr<State> state;  // null: there is none to use
    LogPosition snapshot;          // which one it began from
    std::string problems;          // of those that could not be used, a line each
  };
  using RestoreResult = LogResult<Restored>;  // kUnavailable: log or store gave no answer
  // The newest of `found`, above `above` and not below `trimmed`, that is whole and that the log records, with the log
  // applied at least up to where it does.
  runtime::Task<RestoreResult> restore(std::vector<FoundSnapshot> found, LogPosition above,
                                       LogPosition trimmed);
  // Applies the log to the state of a snapshot until it has seen that the snapshot was recorded: true. False: the log
  // up to its tail does not record it.
  runtime::Task<LogResult<bool>> replay_to_record(std::shared_ptr<State> state);

  // following.cc
  runtime::Task<> follow_loop();
  // Applies what the log has now. kTrimmed entries are replaced by a snapshot.
  runtime::Task<LogResult<void>> catch_up();
  runtime::Task<LogResult<void>> reload_newest_snapshot(LogPosition trimmed);
  runtime::Task<> sync_loop();
  runtime::Task<Result<LogPosition, SyncError>> sync(MonotonicTime deadline);

  // appending.cc
  runtime::Task<> append_loop();
  runtime::Task<ProposeResult> propose(Command command);
  runtime::Task<> propose_and_forget(Command command);
  // Waits after a failed append as its cause asks; true: the cause ends this broker.
  runtime::Task<bool> after_failed_append(EntryKey key, LogError error);

  // registering.cc
  runtime::Task<Result<void, StartError>> register_broker();
  // One attempt under one nonce; kSessionGone asks for another.
  runtime::Task<LogResult<RegistrationResult>> register_as(Nonce nonce);
  runtime::Task<> registration_loop();
  runtime::Task<> membership_loop();

  // expiring.cc
  runtime::Task<> expiry_loop();
  // What to propose if the state holds a producer, or a group's offset, so old that it is to be forgotten, and that is
  // this broker's duty.
  runtime::Task<std::optional<ExpireProducers>> producer_expiry_due();
  runtime::Task<std::optional<ExpireOffsets>> offset_expiry_due();

  // snapshotting.cc
  runtime::Task<> snapshot_loop();
  runtime::Task<bool> take_snapshot();
  // The state at a beat that asks all others for their hash there.
  runtime::Task<std::optional<SnapshotCut>> cut_snapshot();
  // Whether the live brokers have the same state there (ClientCore::agreement); waits for those that have not said yet.
  runtime::Task<bool> is_agreed(LogPosition position);
  runtime::Task<> trim_and_delete();
  runtime::Task<> cut_loop();

  void end_with(const std::string& message) { core.fatal().set(FatalError{message}); }
  // Whether a call of the log that failed so would fail again, whatever is done: it ends this broker.
  static bool is_fatal(LogErrc code);

  runtime::Runtime& runtime;
  MetadataLog& log;
  object_store::ObjectStore& store;
  const ClientConfig config;
  const Logger logger;
  const PlantedBugs bugs;
  LogIdentity identity;
  Random random;  // first io executor only

  ClientCore core;
  SnapshotStore snapshots;
  SyncQueue syncs;  // core only
  std::atomic<int64_t> last_progress{0};

  Counter& appends;
  Counter& append_failures;
  Counter& sync_failures;
  Counter& snapshots_taken;
  Counter& snapshot_failures;
  Counter& state_mismatches;
  Histogram& append_seconds;
  Histogram& apply_seconds;
  runtime::TaskScope scope;
};

// First pause after a failure, and the longest.
inline constexpr Duration kBackoffMin = 20ms;
inline constexpr Duration kBackoffMax = 1s;
inline Duration longer_backoff(Duration backoff) { return std::min(backoff * 2, kBackoffMax); }

}  // namespace varve::metadata
