// MetadataClient: one broker's hold on the metadata log. It replays the log into the state, proposes entries and
// tells their fate, keeps the registration alive, answers sync(), takes snapshots and trims.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/planted_bugs.h"
#include "metadata/client/image.h"
#include "metadata/log/metadata_log.h"
#include "metadata/state/state.h"
#include "object_store/object_store.h"
#include "runtime/runtime.h"

namespace varve::metadata {

enum class ProposeErrc : uint8_t {
  kUnknown,  // it may have been applied; nobody here will know (snapshot reloaded, broker stopping in flight)
  kRejected,  // it was not and will not be applied
  kFull,      // the log takes no more of this kind now, or too much waits for it; not applied; retry later
  kStopping,  // this broker is stopping; not applied
};
using ProposeError = ErrorOf<ProposeErrc>;
using ProposeResult = Result<std::vector<CommandOutcome>, ProposeError>;

enum class SyncErrc : uint8_t { kTimeout, kStopping };
using SyncError = ErrorOf<SyncErrc>;

enum class StartErrc : uint8_t {
  kLog,            // the log cannot be opened; the message says why
  kStore,          // the object store cannot be used
  kForeignBucket,  // `_log/identity` names another log, or an empty log beside foreign objects (invariant 6)
  kRolledBack,     // the log is older than what the bucket proves
  kSnapshotsDamaged,
  kFenced,  // another broker registered with this id while starting
  kFeatureLevel,
  kStopped,
};
using StartError = ErrorOf<StartErrc>;

struct ClientConfig {
  BrokerId broker;
  std::vector<Endpoint> endpoints;
  std::string rack;
  std::string key_prefix;       // the namespace; object keys start with it and '/'
  Duration sync_interval = 2s;  // without other syncs (invariant 5)
  Duration stale_after = 8s;    // no completed sync for so long: has_progress() is false
  Duration beat_after = 5s;     // idle, with more than one live broker
  uint64_t snapshot_after_bytes = 64ull << 20;
  Duration snapshot_after_time = 60s;                         // while deletions wait
  Duration producer_expiry_interval = std::chrono::hours(1);  // between looks for what to forget
  size_t proposals_waiting_max = Limits().proposals_waiting_max;
};

// Why the broker cannot go on: the app logs it and ends the process.
struct FatalError {
  std::string message;
};

// Life: construct, co_await start() on an io executor, serve, co_await stop(), destroy. Owned by the broker.
// Core state is touched by jobs on the core executor only; the methods say where they may be called.
class MetadataClient {
 public:
  using AppliedListener = std::function<void(const ApplyOutcome& outcome)>;

  MetadataClient(runtime::Runtime& runtime, MetadataLog& log, object_store::ObjectStore& store,
                 ClientConfig config, Logger& logger, MetricRegistry& metrics, PlantedBugs bugs = {});
  ~MetadataClient();
  MetadataClient(const MetadataClient&) = delete;
  MetadataClient& operator=(const MetadataClient&) = delete;

  // Any io task, once. Returns when this broker's registration is applied: it may serve. After an error nothing of it
  // runs any more, and stop() is not called.
  runtime::Task<Result<void, StartError>> start();
  // Any io task, once, after start(). Proposals that wait fail with kStopping, those in flight with kUnknown.
  runtime::Task<> stop();

  // Core only.
  const State& state() const;
  // Core only. Called after each applied entry, own or not. Set before start().
  void set_applied_listener(AppliedListener listener);
  // Core only. The newest entry by which anybody did more than beat, snapshot and collect: at or below it nothing is
  // new, however far the log goes on.
  LogPosition newest_work() const;
  // Core only. States differ somewhere: nothing may be deleted by what this one says.
  bool is_diverged() const;
  // Core only. The completion gets the outcome after this broker has applied the entry, in order of proposing.
  // Commands of one call go into one entry, together with others'.
  void propose(std::vector<Command> commands, runtime::Completion<ProposeResult> completion);

  // Any io task: hops to the core. As above, for one command.
  runtime::Task<ProposeResult> propose(Command command);
  // Any io task. When it succeeds, this broker has applied everything that anybody had acknowledged before the
  // call (invariant 5). Calls made while a sync runs share the next one.
  runtime::Task<Result<LogPosition, SyncError>> sync(MonotonicTime deadline);

  // Any thread. Never null after start().
  std::shared_ptr<const MetadataImage> image() const;
  // Any thread. False after stale_after without a completed sync: state-dependent errors must then be retriable.
  bool has_progress() const;
  // Any thread. How long ago the last completed sync began.
  Duration since_progress() const;
  // Any thread, after start(). The incarnation changes when the broker must register anew.
  Incarnation incarnation() const;
  Nonce nonce() const;
  LogIdentity identity() const;

  // Set when the broker must end (fenced by its own id, another log, diverged state). Waited for by the app.
  runtime::Completion<FatalError> fatal() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::metadata
