#include "broker/group/group.h"

#include <algorithm>

#include "protocol/consumer_protocol.h"

namespace varve::broker {
namespace {

// Each once.
std::set<std::string_view> protocols_of(const Member& member) {
  std::set<std::string_view> names;
  for (const auto& protocol : member.details.protocols) names.insert(protocol.name);
  return names;
}

}  // namespace

size_t bytes_of(const std::vector<metadata::GroupProtocol>& protocols) {
  size_t bytes = 0;
  for (const auto& protocol : protocols) {
    bytes += kBytesPerProtocol + protocol.name.size() + protocol.metadata.size();
  }
  return bytes;
}

size_t bytes_of(const metadata::MemberDetails& details) {
  return details.client_id.size() + details.client_host.size() + details.instance_id.value_or("").size() +
         bytes_of(details.protocols);
}

size_t Member::bytes() const { return Group::kBytesEach + id.size() + assignment.size() + bytes_of(details); }

Group::Group(const metadata::GroupView& view, const GroupConfig& config, MonotonicTime now)
    : id_(view.id),
      config_(config),
      phase_(view.phase),
      generation_(view.generation),
      protocol_type_(view.protocol_type),
      protocol_(view.protocol),
      leader_(view.leader) {
  for (const auto& [id, stored] : view.members) {
    Member& member = members_[id];
    member.id = id;
    member.details = stored.details;
    member.assignment = stored.assignment;
    if (member.is_static()) static_ids_[*member.details.instance_id] = id;
    count_in(member);
  }
  if (members_.empty()) phase_ = Phase::kEmpty;
  if (!members_.contains(leader_)) leader_ = members_.empty() ? "" : members_.begin()->first;
  if (phase_ == Phase::kPreparingRebalance) set_due(join_ends_, now + rebalance_timeout());
  if (phase_ == Phase::kCompletingRebalance) {
    for (const auto& [id, member] : members_) missing_syncs_.insert(id);
    set_due(sync_ends_, now + rebalance_timeout());
  }
  for (auto& [id, member] : members_) expect_heartbeat(member, now);
}

Member* Group::find_member(const std::string& id) {
  auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

void Group::remove(const std::string& id) {
  auto found = members_.find(id);
  if (found != members_.end()) {
    if (found->second.is_static()) static_ids_.erase(*found->second.details.instance_id);
    if (!found->second.is_new) ++revision_;
    count_out(found->second);
    members_.erase(found);
  }
  if (leader_ == id) leader_ = members_.empty() ? "" : members_.begin()->first;
  take_pending(id);
  missing_syncs_.erase(id);
}

void Group::count_in(const Member& member) {
  bytes_ += member.bytes();
  id_bytes_ += member.id.size() + kEntryBytesPerId;
  longest_id_ = std::max(longest_id_, member.id.size());
  for (std::string_view name : protocols_of(member)) {
    auto [supporters, is_new] = supporters_.try_emplace(std::string(name), 0);
    ++supporters->second;
  }
}

void Group::count_out(const Member& member) {
  bytes_ -= member.bytes();
  id_bytes_ -= member.id.size() + kEntryBytesPerId;
  for (std::string_view name : protocols_of(member)) {
    auto supporters = supporters_.find(name);
    if (--supporters->second == 0) supporters_.erase(supporters);
  }
}

// Whether the id had been given out; it is not any more.
bool Group::take_pending(const std::string& id) {
  if (pending_.erase(id) == 0) return false;
  bytes_ -= kBytesEach + id.size();
  return true;
}

void Group::set_due(MonotonicTime& deadline, MonotonicTime when) {
  deadline = when;
  next_due_ = std::min(next_due_, when);
}

void Group::expect_heartbeat(Member& member, MonotonicTime now) {
  set_due(member.session_ends, now + std::chrono::milliseconds(member.details.session_timeout_ms));
}

void Group::wait_in_join(Member& member, JoinReply reply) {
  // The client has asked again: it does not listen to the first answer any more, but nothing stays without one.
  answer(member, JoinAnswer::of(GroupErrc::kRebalanceInProgress, member.id));
  member.join = std::move(reply);
  ++joined_;
}

void Group::wait_in_sync(Member& member, SyncReply reply) {
  answer(member, SyncAnswer::of(GroupErrc::kRebalanceInProgress));
  member.sync = std::move(reply);
}

void Group::answer(Member& member, JoinAnswer answer) {
  if (!member.join) return;
  --joined_;
  answers_.emplace_back(std::pair(std::move(*member.join), std::move(answer)));
  member.join.reset();
}

void Group::answer(Member& member, SyncAnswer answer) {
  if (!member.sync) return;
  answers_.emplace_back(std::pair(std::move(*member.sync), std::move(answer)));
  member.sync.reset();
}

Duration Group::rebalance_timeout() const {
  uint32_t longest = 0;
  for (const auto& [id, member] : members_) longest = std::max(longest, member.details.rebalance_timeout_ms);
  return std::chrono::milliseconds(longest);
}

GroupErrc Group::check_name(const MemberName& member) const {
  if (member.instance) {
    auto known = static_ids_.find(*member.instance);
    if (known == static_ids_.end()) return GroupErrc::kUnknownMember;
    if (known->second != member.id) return GroupErrc::kFencedInstance;
  }
  return members_.contains(member.id) ? GroupErrc::kNone : GroupErrc::kUnknownMember;
}

GroupErrc Group::check(const MemberName& member, int32_t generation) const {
  GroupErrc error = check_name(member);
  if (error != GroupErrc::kNone) return error;
  return generation == generation_ ? GroupErrc::kNone : GroupErrc::kIllegalGeneration;
}

GroupErrc Group::heartbeat(const MemberName& member, int32_t generation, MonotonicTime now) {
  GroupErrc error = check(member, generation);
  if (error != GroupErrc::kNone) return error;
  expect_heartbeat(members_.at(member.id), now);
  return phase_ == Phase::kPreparingRebalance ? GroupErrc::kRebalanceInProgress : GroupErrc::kNone;
}

void Group::committed(const MemberName& member, MonotonicTime now) {
  if (Member* found = find_member(member.id)) expect_heartbeat(*found, now);
}

std::vector<GroupErrc> Group::leave(const std::vector<MemberName>& leaving, MonotonicTime now) {
  std::vector<GroupErrc> errors;
  bool has_left = false;
  for (const MemberName& name : leaving) {
    std::string id = name.id;
    GroupErrc error = GroupErrc::kNone;
    if (id.empty()) {
      // An administrator removes a static member by its instance id.
      auto known = name.instance ? static_ids_.find(*name.instance) : static_ids_.end();
      if (known == static_ids_.end()) {
        error = GroupErrc::kUnknownMember;
      } else {
        id = known->second;
      }
    } else if (!pending_.contains(id)) {
      error = check_name(name);
    }
    errors.push_back(error);
    if (error != GroupErrc::kNone) continue;
    has_left = true;
    // Who is still there joins again at this answer.
    if (Member* member = find_member(id)) answer(*member, JoinAnswer::of(GroupErrc::kUnknownMember));
    if (Member* member = find_member(id)) answer(*member, SyncAnswer::of(GroupErrc::kUnknownMember));
    remove(id);
  }
  if (has_left && phase_ != Phase::kEmpty) rebalance_or_complete(now);
  return errors;
}

std::optional<std::set<std::string>> Group::subscribed_topics() const {
  if (protocol_type_ != protocol::kConsumerProtocolType) return std::nullopt;
  std::set<std::string> topics;
  for (const auto& [id, member] : members_) {
    auto used = std::ranges::find_if(member.details.protocols,
                                     [&](const auto& one) { return protocol_ && one.name == *protocol_; });
    if (used == member.details.protocols.end()) return std::nullopt;
    auto subscription = protocol::read_subscription_head(as_bytes(used->metadata));
    if (!subscription) return std::nullopt;
    topics.insert(subscription->topics.begin(), subscription->topics.end());
  }
  return topics;
}

GroupErrc check_commit(const Group* group, bool is_stored, const MemberName& member, int32_t generation) {
  if (group == nullptr) {
    if (generation < 0) return GroupErrc::kNone;
    return is_stored ? GroupErrc::kUnknownMember : GroupErrc::kGroupIdNotFound;
  }
  if (generation < 0 && group->phase() == metadata::GroupPhase::kEmpty) return GroupErrc::kNone;
  // Beside members only members commit.
  if (generation < 0 && member.id.empty() && !member.instance) return GroupErrc::kUnknownMember;
  GroupErrc error = group->check(member, generation);
  // What joins for the first time is not stored yet.
  bool is_known = error == GroupErrc::kNone || error == GroupErrc::kIllegalGeneration;
  if (is_known && group->members().at(member.id).is_new) return GroupErrc::kUnknownMember;
  if (error != GroupErrc::kNone) return error;
  bool is_unassigned = group->phase() == metadata::GroupPhase::kCompletingRebalance;
  return is_unassigned ? GroupErrc::kRebalanceInProgress : GroupErrc::kNone;
}

void Group::fail_waiting(GroupErrc error) {
  for (auto& [id, member] : members_) {
    answer(member, JoinAnswer::of(error, member.is_new ? "" : id));
    answer(member, SyncAnswer::of(error));
  }
}

}  // namespace varve::broker
