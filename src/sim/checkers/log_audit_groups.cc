// The part of LogAudit that is about consumer groups (invariant 14).
#include "base/hash.h"
#include "metadata/state/entry.h"
#include "sim/checkers/log_audit.h"

namespace varve::sim {

// Writers who break rules on purpose are not excused: what they may not do is refused.
void LogAudit::judge_group(const metadata::Command& command, const metadata::CommandOutcome& outcome,
                           BrokerId sender, LogPosition at) {
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { one.owners; }) judge_owner(one, sender, at);
      },
      command);
  if (const auto* save = std::get_if<metadata::SaveGroup>(&command)) {
    SavedGroup& known = groups_[save->group];
    findings_.require(save->version == known.version,
                      "the entry at {} was saved over version {} of group {}, and builds on {}", at,
                      known.version, save->group, save->version);
    findings_.require(save->generation >= known.generation,
                      "the entry at {} takes group {} from generation {} to {}", at, save->group,
                      known.generation, save->generation);
    known = {outcome.group_version, save->generation};
  }
  if (const auto* commit = std::get_if<metadata::CommitOffsets>(&command)) {
    SavedGroup& known = groups_[commit->group];
    findings_.require(commit->generation < 0 || commit->generation == known.generation,
                      "the entry at {} commits offsets of group {} in generation {}, which is in {}", at,
                      commit->group, commit->generation, known.generation);
    known.version = outcome.group_version;
  }
}

void LogAudit::tell_of_groups(const metadata::Entry& entry, MonotonicTime at,
                              const metadata::ApplyOutcome& outcome) {
  if (outcome.has_broker_change) group_watch_->owners_changed(state_, at);
  for (size_t i = 0; i < entry.commands.size(); ++i) {
    const auto* save = std::get_if<metadata::SaveGroup>(&entry.commands[i]);
    if (save == nullptr || outcome.commands.at(i).verdict != metadata::CommandVerdict::kDone) continue;
    const metadata::GroupView* view = state_.find_group(save->group);
    if (view != nullptr) group_watch_->saved(*view, at);
  }
}

// The owner is the same for every broker, by the brokers that are live in the log; and what it judged before one of them
// came or went it must have judged again.
template <class GroupCommand>
void LogAudit::judge_owner(const GroupCommand& command, BrokerId sender, LogPosition at) {
  std::set<BrokerId> live;
  for (const auto& [incarnation, writer] : writers_) {
    if (writer.is_live) live.insert(writer.broker);
  }
  auto owner = rendezvous_owner(hash64(command.group), live);
  findings_.require(owner != live.end() && *owner == sender,
                    "the entry at {} of broker {} about group {} was applied, which is not that broker's", at,
                    sender, command.group);
  uint64_t comings_and_goings = 2 * writers_.size() - live.size();
  findings_.require(
      command.owners == comings_and_goings,
      "the entry at {} about group {} was applied, though a broker came or went since it was judged", at,
      command.group);
}

// What was deleted, or expired with its last offset.
void LogAudit::forget_lost_groups() {
  std::erase_if(groups_, [this](const auto& group) { return state_.find_group(group.first) == nullptr; });
}

}  // namespace varve::sim
