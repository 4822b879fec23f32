#include "broker/group/group_save.h"

#include <algorithm>

namespace varve::broker {
namespace {

using metadata::GroupPhase;

// Adds members until the room is used up.
class Filler {
 public:
  Filler(SaveStep& step, size_t bytes_max) : step_(step), room_(bytes_max) {}

  void add(const Member& member, const metadata::GroupMember* stored) {
    metadata::SavedMember saved{.id = member.id};
    size_t bytes = 0;
    if (stored == nullptr || stored->details != member.details) {
      saved.details = member.details;
      bytes += bytes_of(member.details);
    }
    bool has_other_assignment =
        stored == nullptr ? !member.assignment.empty() : stored->assignment != member.assignment;
    if (has_other_assignment) {
      saved.assignment = member.assignment;
      bytes += member.assignment.size();
    }
    if (bytes > room_ && has_change_) {
      step_.is_complete = false;
      if (stored != nullptr) step_.command.members.push_back({.id = member.id});
      return;
    }
    has_change_ = has_change_ || bytes > 0;
    room_ -= std::min(room_, bytes);
    step_.command.members.push_back(std::move(saved));
  }

 private:
  SaveStep& step_;
  size_t room_;
  bool has_change_ = false;
};

}  // namespace

SaveStep next_save(const Group& group, const metadata::GroupView* stored, size_t bytes_max) {
  SaveStep step;
  metadata::SaveGroup& command = step.command;
  command.group = group.id();
  command.version = stored == nullptr ? 0 : stored->version;
  command.protocol_type = group.protocol_type();
  command.phase = group.phase();
  command.generation = group.generation();
  command.protocol = group.protocol();
  command.leader = group.leader();
  Filler filler(step, bytes_max);
  for (const auto& [id, member] : group.members()) {
    if (member.is_new) continue;
    const metadata::GroupMember* known = nullptr;
    if (stored != nullptr) {
      auto found = stored->members.find(id);
      if (found != stored->members.end()) known = &found->second;
    }
    filler.add(member, known);
  }
  if (command.members.empty()) command.phase = GroupPhase::kEmpty;
  if (step.is_complete) return step;
  if (group.phase() == GroupPhase::kStable) {
    command.phase = GroupPhase::kCompletingRebalance;
  } else {
    command.phase = GroupPhase::kPreparingRebalance;
    if (stored != nullptr) command.generation = stored->generation;
  }
  return step;
}

}  // namespace varve::broker
