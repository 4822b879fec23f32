// ClientCore: what MetadataClient keeps on the core executor. Plain functions; the loops of client_loops.h
// feed it with entries and answers and do what it asks.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "metadata/client/image.h"
#include "metadata/client/metadata_client.h"
#include "metadata/client/proposer.h"
#include "metadata/state/state.h"

namespace varve::metadata {

// A snapshot to be written: the state at a position whose hash every live broker was asked for.
struct SnapshotCut {
  StateCut state;
  std::vector<LogPosition> retained;  // snapshots then
};

// Of the snapshots that the state retains, the oldest first.
std::vector<LogPosition> retained_positions(const State& state);

enum class Agreement : uint8_t { kAwaited, kAgreed, kDisagreed };

// How a registration ended, told when its entry is applied here.
struct RegistrationResult {
  Incarnation incarnation;  // 0: refused
  std::string problem;
};

// Core only, except image() and incarnation(). Owned by MetadataClient.
class ClientCore {
 public:
  ClientCore(BrokerId broker, size_t proposals_waiting_max, PlantedBugs bugs);

  void set_log(LogIdentity log) { log_ = log; }
  void set_listener(MetadataClient::AppliedListener listener) { listener_ = std::move(listener); }

  const State& state() const { return state_; }
  Proposer& proposer() { return proposer_; }

  // Applies entries above the position applied so far; others are skipped.
  void apply(const std::vector<LogEntry>& entries);
  // Puts a loaded snapshot in place of the state, if it is newer.
  void reload(State state);
  // Log bytes applied since the newest snapshot that this broker knows of.
  uint64_t bytes_since_snapshot() const { return bytes_since_snapshot_; }

  // Completed once everything up to `position` is applied.
  runtime::Completion<runtime::Done> applied_up_to(LogPosition position);

  // The registration entry of `nonce` was, or is about to be, appended.
  runtime::Completion<RegistrationResult> expect_registration(Nonce nonce);
  // Its session was gone before it was appended: it never will be.
  void registration_failed(Nonce nonce);
  // The session of `nonce` is gone. If that is the current incarnation's, it will be fenced: nothing more is sent under
  // it. An answer may be late, and tell of one before.
  void session_lost(Nonce nonce);
  // True if the current incarnation was fenced by another broker's FenceBroker: a new registration is needed.
  bool needs_registration() const { return needs_registration_; }
  // Completed when needs_registration() becomes true, or was already.
  runtime::Completion<runtime::Done> registration_needed();
  // Another broker registered with this broker's id, or this broker's state is not the others': it must end.
  runtime::Completion<FatalError> fatal() const { return fatal_; }

  // Live incarnations and their nonces, for the comparison with the log's sessions.
  std::vector<std::pair<Incarnation, Nonce>> live() const;
  // Those of `live` without one of `sessions`, which were asked for later: they are to be fenced. Each is told once, and
  // none of this broker's, which is session_lost().
  std::vector<Incarnation> fences_due(const std::vector<std::pair<Incarnation, Nonce>>& live,
                                      const std::vector<Nonce>& sessions);
  // A beat to propose now, or nullopt: it was asked for, or this broker is not alone, and silent since `beat_after`.
  std::optional<Beat> beat_due(MonotonicTime now, Duration beat_after);
  void sent_entry(MonotonicTime now) { last_sent_ = now; }
  // The state will be cut at the next Beat{} of this broker, which is to be proposed then: it asks all others for their
  // hash there. nullopt if another state took its place, or cancel_snapshot().
  runtime::Completion<std::optional<SnapshotCut>> cut_at_next_beat();
  void cancel_snapshot();
  // Whether the brokers' hashes at that position are this one's, as far as they have said it. kAwaited: a live one has
  // not; if `is_late`, half of the live brokers, this one among them, are enough.
  Agreement agreement(LogPosition position, bool is_late) const;
  // Set when cut_work() has something to do. At most one waiter.
  runtime::Completion<runtime::Done> cut_wanted();
  // Does a little of it, in some milliseconds at most; true: there is more.
  bool cut_work();

  // This broker is the one to do a duty that one broker does: the live one with the lowest id.
  bool is_first_live() const;
  // The entries to come are in a grammar that this program does not know: it must not apply them (invariant 2).
  bool is_above_this_program() const { return state_.feature_level() > kHighestFeatureLevel; }
  // The newest entry by which anybody did more than beat, snapshot and collect.
  LogPosition newest_work() const { return newest_work_; }
  // For tests: what is remembered of registrations and fences, which must not grow.
  size_t remembered() const { return own_nonces_.size() + fences_proposed_.size(); }
  // How often a state was found to differ.
  uint64_t mismatches() const { return mismatches_; }
  // The newest snapshot is of another state than this broker's, and its writer has gone.
  bool is_snapshot_overdue() const;
  // States differ somewhere: nobody may snapshot, trim or delete.
  bool is_diverged() const { return is_diverged_; }

  // Any thread.
  std::shared_ptr<const MetadataImage> image() const {
    std::lock_guard lock(image_mutex_);
    return image_;
  }
  Incarnation incarnation() const { return Incarnation(incarnation_.load(std::memory_order_relaxed)); }
  Nonce nonce() const { return Nonce(nonce_.load(std::memory_order_relaxed)); }

  void publish_image();

 private:
  void resolve_registration(Nonce nonce, Incarnation incarnation);
  void after_entry(const LogEntry& entry, const ApplyOutcome& outcome);
  void note_registration(LogPosition position, const ApplyOutcome& outcome);
  void note_fences(const ApplyOutcome& outcome);
  // divergence.cc
  void note_beats(LogPosition position, const ApplyOutcome& outcome);
  // `asker`: another broker, which asks for this one's hash there.
  void begin_cut_at(LogPosition position, std::optional<BrokerId> asker, bool is_own_ask);
  void end_cut();
  // True: it found and counted one that is not of this broker's state.
  bool check_snapshots();
  void tell_of_reload(const std::set<PartitionHandle>& before);
  void compare_hashes();
  void wake_position_waiters();

  const BrokerId broker_;
  const PlantedBugs bugs_;
  LogIdentity log_;
  State state_;
  Proposer proposer_;
  MetadataClient::AppliedListener listener_;

  std::multimap<LogPosition, runtime::Completion<runtime::Done>> position_waiters_;
  std::optional<std::pair<Nonce, runtime::Completion<RegistrationResult>>> expected_registration_;
  // Nonces under which this broker lives or may come to live: none of them is another broker.
  std::set<Nonce> own_nonces_;
  std::set<Incarnation> fences_proposed_;
  bool needs_registration_ = false;
  std::optional<runtime::Completion<runtime::Done>> registration_waiter_;
  runtime::Completion<FatalError> fatal_;

  uint64_t bytes_since_snapshot_ = 0;
  LogPosition newest_snapshot_;
  MonotonicTime last_sent_;
  // Own hashes at the positions of the last beats: what the beats and snapshots of others are compared with.
  std::map<LogPosition, uint64_t> hash_at_beat_;
  std::map<BrokerId, LogPosition> asked_at_;  // the last ask of each other broker that has no answer yet
  std::optional<runtime::Completion<std::optional<SnapshotCut>>> snapshot_wanted_;
  bool is_snapshot_cut_ = false;  // the state's cut is for that
  LogPosition snapshot_at_;
  std::map<Incarnation, uint64_t> answers_;  // hashes at snapshot_at_ by others' beats
  std::optional<runtime::Completion<runtime::Done>> cut_waiter_;
  // Who took the retained snapshots that were recorded before this broker's eyes, and those of them that are not of its
  // state.
  std::map<LogPosition, Incarnation> authors_;
  std::map<LogPosition, Incarnation> doubted_;
  uint64_t mismatches_ = 0;
  LogPosition newest_work_;
  bool is_diverged_ = false;

  uint64_t published_version_ = UINT64_MAX;
  mutable std::mutex image_mutex_;
  std::shared_ptr<const MetadataImage> image_;
  std::atomic<uint64_t> incarnation_{0};
  std::atomic<uint64_t> nonce_{0};
};

}  // namespace varve::metadata
