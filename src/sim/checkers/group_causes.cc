#include "sim/checkers/group_causes.h"

#include <algorithm>

namespace varve::sim {

using client::GroupIdentity;
using client::MembershipAnswer;
using protocol::ApiKey;
using protocol::ErrorCode;

namespace {

// A cause has effects for so long at most: requests that were given up, and entries of the log, come late.
constexpr Duration kEchoMax = 25s;
// An owner of the past that does not hear of the log goes on answering heartbeats for 8 s.
constexpr Duration kStaleOwnerMax = 10s;

const std::string& key_of(const GroupIdentity& who) {
  return who.instance_id ? *who.instance_id : who.member_id;
}

// After which a client asks to join once more.
bool failed(const MembershipAnswer& answer) {
  if (answer.api != ApiKey::kJoinGroup && answer.api != ApiKey::kSyncGroup) return false;
  return answer.error != ErrorCode::kNone && answer.error != ErrorCode::kMemberIdRequired &&
         answer.error != ErrorCode::kRebalanceInProgress && answer.error != ErrorCode::kUnknownMemberId &&
         answer.error != ErrorCode::kIllegalGeneration;
}

}  // namespace

void GroupCauses::add(const std::string& group, Duration session_timeout, Duration rebalance_timeout) {
  Group& added = groups_[group];
  added.session_timeout = session_timeout;
  added.rebalance_timeout = rebalance_timeout;
}

void GroupCauses::asks(const std::string& name, ApiKey api, const GroupIdentity& who) {
  Group& group = groups_.at(name);
  if (api == ApiKey::kLeaveGroup) group.members[key_of(who)].has_left = true;
  if (api == ApiKey::kJoinGroup && who.member_id.empty()) note_cause(group);
}

void GroupCauses::answered(const std::string& name, const MembershipAnswer& answer) {
  Group& group = groups_.at(name);
  if (failed(answer)) note_cause(group);
  if (key_of(answer.who).empty()) return;
  bool is_heartbeat = answer.api == ApiKey::kHeartbeat;
  bool is_heard =
      answer.error == ErrorCode::kNone || (is_heartbeat && answer.error == ErrorCode::kRebalanceInProgress);
  if (!is_heard || answer.api == ApiKey::kLeaveGroup) return;
  Member& member = group.members[key_of(answer.who)];
  member.heard_at = std::max(member.heard_at.value_or(answer.sent_at), answer.sent_at);
  if (answer.api == ApiKey::kSyncGroup) member.synced = answer.who.generation;
  if (is_heartbeat && answer.error == ErrorCode::kNone) {
    group.stable_at = std::max(group.stable_at, answer.sent_at);
  }
}

bool GroupCauses::may_be_lost(const Group& group, const Member& member, MonotonicTime at) const {
  if (!member.heard_at || member.has_left || member.synced < group.generation) return true;
  // What a former owner answered holds for nothing once there is another, who begins to wait anew.
  auto has_passed = [&](MonotonicTime since, Duration timeout) {
    bool may_be_stale = since < group.owner_since + kStaleOwnerMax;
    return at - since >= timeout || (may_be_stale && at - group.owner_since >= timeout);
  };
  return has_passed(*member.heard_at, group.session_timeout) ||
         has_passed(group.stable_at, group.rebalance_timeout);
}

void GroupCauses::saved(const metadata::GroupView& view, MonotonicTime at) {
  auto found = groups_.find(view.id);
  if (found == groups_.end()) return;
  Group& group = found->second;
  std::set<std::string> members;
  for (const auto& [id, member] : view.members) members.insert(member.details.instance_id.value_or(id));
  for (const std::string& lost : group.saved) {
    if (members.contains(lost)) continue;
    findings_.require(may_be_lost(group, group.members[lost], at),
                      "group {} lost its member {} at {} ms, which had neither left nor been silent", view.id,
                      lost, at.since_zero() / 1ms);
  }
  group.has_other_members = group.has_other_members || members != group.saved;
  group.saved = std::move(members);
  if (view.generation == group.generation) return;
  bool has_cause = group.has_other_members || group.last_cause + kEchoMax >= group.changed_at;
  findings_.require(has_cause, "group {} went from generation {} to {} at {} ms without a cause", view.id,
                    group.generation, view.generation, at.since_zero() / 1ms);
  group.generation = view.generation;
  group.changed_at = at;
  group.has_other_members = false;
}

void GroupCauses::owners_changed(const metadata::State& state, MonotonicTime at) {
  for (auto& [id, group] : groups_) {
    std::optional<BrokerId> owner = state.group_owner(id);
    if (owner == group.owner) continue;
    group.owner = owner;
    group.owner_since = at;
  }
}

}  // namespace varve::sim
