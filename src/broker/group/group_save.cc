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
    bool has_other_details = stored == nullptr || stored->details != member.details;
    if (has_other_details) {
      if (take(bytes_of(member.details))) {
        saved.details = member.details;
      } else if (stored == nullptr) {
        return;
      }
    }
    bool has_other_assignment =
        stored == nullptr ? !member.assignment.empty() : stored->assignment != member.assignment;
    if (has_other_assignment && take(member.assignment.size())) saved.assignment = member.assignment;
    step_.command.members.push_back(std::move(saved));
  }

 private:
  // False: not in this step. The first is taken whatever its size.
  bool take(size_t bytes) {
    if (bytes > room_ && has_change_) {
      step_.is_complete = false;
      return false;
    }
    has_change_ = has_change_ || bytes > 0;
    room_ -= std::min(room_, bytes);
    return true;
  }

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
  // From a phase in which a new owner is asked for what is missing: who has its assignment asks for none any more, and
  // would wait for a leader who knows of nothing.
  bool is_assigning = group.phase() == GroupPhase::kStable && stored != nullptr &&
                      stored->phase == GroupPhase::kCompletingRebalance;
  command.phase = is_assigning ? GroupPhase::kCompletingRebalance : GroupPhase::kPreparingRebalance;
  if (!is_assigning && stored != nullptr) command.generation = stored->generation;
  return step;
}

}  // namespace varve::broker
