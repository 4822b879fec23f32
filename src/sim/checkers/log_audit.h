// LogAudit: replays the metadata log beside the brokers, with their own apply, and holds every outcome against rules
// of its own. It knows nothing of how apply decides.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "metadata/state/state.h"
#include "sim/metadata_log.h"
#include "sim/scenario.h"

namespace varve::sim {

// Hears what the log makes of consumer groups, in its order.
class GroupWatch {
 public:
  virtual ~GroupWatch() = default;
  // As an entry left it that was committed at that time.
  virtual void saved(const metadata::GroupView& group, MonotonicTime at) = 0;
  // Groups may have other owners now.
  virtual void owners_changed(const metadata::State& state, MonotonicTime at) = 0;
};

// Life: for one run; made before the first entry. `bugs` are those of the brokers: the audit's State is one more of
// theirs, and only its outcomes are judged.
class LogAudit {
 public:
  LogAudit(const SimMetadataLog& log, PlantedBugs bugs, Findings& findings);

  // Nonces of writers who break rules on purpose: their entries are applied, not judged.
  void excuse(Nonce nonce) { excused_.insert(nonce); }

  // Outlives the calls of catch_up().
  void watch_groups(GroupWatch* watch) { group_watch_ = watch; }

  // Applies and judges everything up to the log's tail.
  void catch_up();
  // The state at the tail, after catch_up().
  const metadata::State& state() const { return state_; }
  // Whether any entry referred to the object.
  bool was_referenced(const metadata::ObjectId& object) const { return referenced_.contains(object); }
  // Below it no object can be referred to any more, as the entries have it.
  FenceEpoch fence() const { return fence_; }

 private:
  struct Writer {
    BrokerId broker;
    Nonce nonce;
    EntrySequence last_sequence{1};
    bool is_live = true;
  };

  void judge(const metadata::Entry& entry, LogPosition at, const metadata::ApplyOutcome& outcome);
  void judge_sender(const metadata::Entry& entry, LogPosition at);
  void judge_registration(const metadata::Entry& entry, LogPosition at);
  void judge_snapshot(LogPosition at, const metadata::ApplyOutcome& outcome);
  void judge_commit(const metadata::CommitObject& commit, const metadata::CommandOutcome& outcome,
                    LogPosition at, bool is_excused);
  void judge_run(const metadata::CommitObject& commit, const metadata::Run& run,
                 const metadata::RunOutcome& outcome, LogPosition at, bool is_excused);
  void judge_group(const metadata::Command& command, const metadata::CommandOutcome& outcome, BrokerId sender,
                   LogPosition at);
  void tell_of_groups(const metadata::Entry& entry, MonotonicTime at, const metadata::ApplyOutcome& outcome);
  template <class GroupCommand>
  void judge_owner(const GroupCommand& command, BrokerId sender, LogPosition at);
  void forget_lost_groups();
  void judge_accepted(PartitionHandle partition, const metadata::BatchOutcome& outcome, uint32_t records,
                      LogPosition at);

  const SimMetadataLog& log_;
  Findings& findings_;
  metadata::State state_;
  GroupWatch* group_watch_ = nullptr;
  size_t records_seen_ = 0;
  std::set<Nonce> excused_;
  std::map<Incarnation, Writer> writers_;
  FenceEpoch fence_;
  std::map<LogPosition, uint64_t> hashes_;  // at beats
  std::set<metadata::ObjectId> referenced_;
  std::set<std::pair<metadata::ObjectId, uint32_t>> decided_runs_;
  std::map<PartitionHandle, Offset> ends_;
  // Groups as they were saved last.
  struct SavedGroup {
    uint64_t version = 0;
    int32_t generation = 0;
  };
  std::map<std::string, SavedGroup> groups_;
  std::set<std::tuple<PartitionHandle, ProducerId, ProducerEpoch, Sequence>> accepted_;
};

}  // namespace varve::sim
