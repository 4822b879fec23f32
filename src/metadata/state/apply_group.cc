// Consumer groups: their membership and their offsets. Who a member is and when it is one is the coordinator's business
// (broker/group); here only what it saved is judged.
#include <algorithm>

#include "base/hash.h"
#include "metadata/state/apply.h"

namespace varve::metadata {
namespace {

// One command about one group.
class GroupChange {
 public:
  GroupChange(StateData& state, std::string_view id)
      : state_(state), id_hash_(hash64(id)), group_(state.groups.find(id)) {}

  bool is_owned_by(BrokerId broker) const { return state_.brokers.owner_of(id_hash_) == broker; }
  // Of the group as it is now; 0: there is none.
  uint64_t version() const { return group_ == nullptr ? 0 : group_->version; }

  // kRefused stands for Rule::kBadGroup.
  CommandVerdict run(const SaveGroup& command, CommandOutcome&) {
    if (command.version != version() && !state_.bugs.group_version_unchecked)
      return CommandVerdict::kStaleGroup;
    if (!is_well_formed(command)) return CommandVerdict::kRefused;
    if (!find_or_add(command.group)) return CommandVerdict::kOverLimit;
    if (version() == 0 || group_->phase != command.phase) group_->phase_since = state_.log_time;
    state_.groups.renew_version(*group_);
    group_->protocol_type = command.protocol_type;
    group_->phase = command.phase;
    group_->generation = command.generation;
    group_->protocol = command.protocol;
    group_->leader = command.leader;
    save_members(command.members);
    return CommandVerdict::kDone;
  }

  CommandVerdict run(const CommitOffsets& command, CommandOutcome& outcome) {
    CommandVerdict verdict = judge(command);
    if (verdict != CommandVerdict::kDone) return verdict;
    if (command.group.size() > kGroupIdBytesMax) return CommandVerdict::kRefused;
    for (uint32_t i = 0; i < command.offsets.size(); ++i) {
      if (state_.partitions.find(command.offsets[i].partition) == nullptr) {
        outcome.unknown_partitions.push_back(i);
      }
    }
    // Nothing to keep, so no group to keep it in.
    if (outcome.unknown_partitions.size() == command.offsets.size()) return CommandVerdict::kDone;
    if (!find_or_add(command.group)) return CommandVerdict::kOverLimit;
    if (version() == 0) {
      state_.groups.renew_version(*group_);
      group_->phase_since = state_.log_time;
    }
    save_offsets(command, outcome.unknown_partitions);
    return CommandVerdict::kDone;
  }

  CommandVerdict run(const DeleteOffsets& command, CommandOutcome&) {
    if (command.version != version()) return CommandVerdict::kStaleGroup;
    if (group_ == nullptr) return CommandVerdict::kUnknownGroup;
    state_.groups.before_change(id_hash_);
    for (PartitionHandle partition : command.partitions) group_->offsets.erase(partition);
    return CommandVerdict::kDone;
  }

  CommandVerdict run(const DeleteGroup& command, CommandOutcome&) {
    if (command.version != version()) return CommandVerdict::kStaleGroup;
    if (group_ == nullptr) return CommandVerdict::kUnknownGroup;
    if (group_->phase != GroupPhase::kEmpty) return CommandVerdict::kNonEmptyGroup;
    state_.groups.remove(*group_);
    group_ = nullptr;
    return CommandVerdict::kDone;
  }

 private:
  // False if there is no room for one more group; else it is there, and about to change.
  bool find_or_add(std::string_view id) {
    if (group_ != nullptr) {
      state_.groups.before_change(id_hash_);
      return true;
    }
    if (state_.groups.all().size() >= kGroupsMax) return false;
    group_ = &state_.groups.add(id, id_hash_);
    return true;
  }

  bool is_well_formed(const SaveGroup& command) const {
    if (command.group.size() > kGroupIdBytesMax) return false;
    if (command.phase == GroupPhase::kEmpty && !command.members.empty()) return false;
    for (size_t i = 0; i < command.members.size(); ++i) {
      const SavedMember& member = command.members[i];
      if (i > 0 && member.id <= command.members[i - 1].id) return false;
      bool is_known = group_ != nullptr && group_->members.contains(member.id);
      if (!member.details && !is_known) return false;
    }
    return true;
  }

  void save_members(const std::vector<SavedMember>& members) {
    std::map<std::string, GroupMember> before = std::exchange(group_->members, {});
    for (const SavedMember& saved : members) {
      GroupMember& member = group_->members[saved.id];
      auto known = before.find(saved.id);
      if (known != before.end()) member = std::move(known->second);
      if (saved.details) member.details = *saved.details;
      if (saved.assignment) member.assignment = *saved.assignment;
    }
  }

  // As Apache Kafka judges a commit to a classic group (ClassicGroup.validateOffsetCommit in 4.x).
  CommandVerdict judge(const CommitOffsets& command) const {
    bool is_without_generation = command.generation < 0;
    if (group_ == nullptr) {
      return is_without_generation ? CommandVerdict::kDone : CommandVerdict::kIllegalGeneration;
    }
    if (is_without_generation && group_->phase == GroupPhase::kEmpty) return CommandVerdict::kDone;
    if (is_without_generation && command.member.empty() && !command.instance_id) {
      return CommandVerdict::kUnknownMember;  // beside members only members commit
    }
    CommandVerdict verdict = judge_member(command);
    if (verdict != CommandVerdict::kDone) return verdict;
    bool is_past = command.generation != group_->generation && !state_.bugs.commit_generation_unchecked;
    if (is_past) return CommandVerdict::kIllegalGeneration;
    return group_->phase == GroupPhase::kCompletingRebalance ? CommandVerdict::kRebalanceInProgress
                                                             : CommandVerdict::kDone;
  }

  CommandVerdict judge_member(const CommitOffsets& command) const {
    auto member = group_->members.find(command.member);
    bool is_known = member != group_->members.end();
    if (!command.instance_id) return is_known ? CommandVerdict::kDone : CommandVerdict::kUnknownMember;
    if (is_known && member->second.details.instance_id == command.instance_id) return CommandVerdict::kDone;
    bool is_of_another = std::ranges::any_of(group_->members, [&](const auto& other) {
      return other.second.details.instance_id == command.instance_id;
    });
    return is_of_another ? CommandVerdict::kFencedInstance : CommandVerdict::kUnknownMember;
  }

  void save_offsets(const CommitOffsets& command, const std::vector<uint32_t>& unknown) {
    auto next_unknown = unknown.begin();
    for (uint32_t i = 0; i < command.offsets.size(); ++i) {
      if (next_unknown != unknown.end() && *next_unknown == i) {
        ++next_unknown;
        continue;
      }
      const OffsetCommit& commit = command.offsets[i];
      CommittedOffset& kept = group_->offsets[commit.partition];
      kept.offset = commit.offset;
      kept.leader_epoch = commit.leader_epoch;
      kept.metadata = commit.metadata;
      kept.commit_time = state_.log_time;
      kept.expires_at = std::max<int64_t>(command.expires_at, -1);
    }
  }

  StateData& state_;
  const uint64_t id_hash_;
  GroupView* group_;
};

}  // namespace

template <class GroupCommand>
CommandOutcome Applier::change_group(const GroupCommand& command) {
  GroupChange change(state_, command.group);
  bool may_change = change.is_owned_by(sender_->broker) || state_.bugs.group_owner_unchecked;
  if (!may_change) return refuse(CommandVerdict::kNotCoordinator);
  // Since the sender judged it, another broker may have owned the group and changed it, and be gone again.
  bool is_late = command.owners != state_.brokers.owners_version() && !state_.bugs.owner_change_unchecked;
  CommandOutcome outcome;
  CommandVerdict verdict = is_late ? CommandVerdict::kStaleGroup : change.run(command, outcome);
  if (verdict == CommandVerdict::kRefused) {
    outcome = refuse(Rule::kBadGroup);
  } else if (verdict != CommandVerdict::kDone) {
    outcome = refuse(verdict);
  }
  outcome.group_version = change.version();
  return outcome;
}

CommandOutcome Applier::run(const SaveGroup& command) { return change_group(command); }
CommandOutcome Applier::run(const CommitOffsets& command) { return change_group(command); }
CommandOutcome Applier::run(const DeleteOffsets& command) { return change_group(command); }
CommandOutcome Applier::run(const DeleteGroup& command) { return change_group(command); }

CommandOutcome Applier::run(const SetGroupLimits& command) {
  if (!are_in_range(command)) return refuse(Rule::kLimitOutOfRange);
  state_.group_limits = command;
  return {};
}

CommandOutcome Applier::run(const ExpireOffsets& command) {
  int64_t latest = state_.log_time - static_cast<int64_t>(state_.group_limits.offsets_retention_ms);
  if (command.cut_off > latest) return refuse(Rule::kCutoffTooLate);
  state_.groups.expire_offsets({command.cut_off, state_.log_time});
  return {};
}

}  // namespace varve::metadata
