// Who comes into a group, and under which id.
#include <algorithm>

#include "broker/group/group.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;

size_t bytes_brought(const JoinRequest& request) {
  return request.client_id.size() + request.client_host.size() + request.instance.value_or("").size() +
         bytes_of(request.protocols);
}

uint32_t milliseconds(int32_t value) { return static_cast<uint32_t>(std::max(value, 0)); }

void take_terms(metadata::MemberDetails& details, JoinRequest& request) {
  details.session_timeout_ms = milliseconds(request.session_timeout_ms);
  details.rebalance_timeout_ms = milliseconds(request.rebalance_timeout_ms);
  details.protocols = std::move(request.protocols);
}

}  // namespace

void Group::join(JoinRequest request, JoinReply reply, MonotonicTime now) {
  auto refuse = [&](GroupErrc error, std::string member) {
    answers_.emplace_back(std::pair(std::move(reply), JoinAnswer::of(error, std::move(member))));
  };
  if (!accepts(request.member)) {
    remove(request.member);
    refuse(GroupErrc::kGroupMaxSizeReached, "");
  } else if (bytes_brought(request) > config_.member_bytes_max) {
    refuse(GroupErrc::kUnknownServerError, std::move(request.member));
  } else if (!supports_protocols(request)) {
    refuse(GroupErrc::kInconsistentProtocol, std::move(request.member));
  } else if (!fits_into_entry(request)) {
    take_pending(request.member);
    refuse(GroupErrc::kGroupMaxSizeReached, "");
  } else if (!fits_into_memory(request)) {
    refuse(GroupErrc::kCoordinatorNotAvailable, std::move(request.member));
  } else if (request.member.empty()) {
    join_new(std::move(request), std::move(reply), now);
  } else {
    join_known(std::move(request), std::move(reply), now);
  }
}

// While members come back, those who wait already count: the last of too many are turned away.
bool Group::accepts(const std::string& member) const {
  auto known = members_.find(member);
  switch (phase_) {
    case Phase::kEmpty:
      return true;
    case Phase::kPreparingRebalance:
      return (known != members_.end() && known->second.join) || joined_ < config_.members_max;
    case Phase::kCompletingRebalance:
    case Phase::kStable:
      return known != members_.end() || members_.size() < config_.members_max;
  }
  return false;
}

bool Group::supports_protocols(const JoinRequest& request) const {
  if (phase_ == Phase::kEmpty) return !request.protocol_type.empty() && !request.protocols.empty();
  if (request.protocol_type != protocol_type_) return false;
  return std::ranges::any_of(request.protocols, [&](const metadata::GroupProtocol& protocol) {
    auto supporters = supporters_.find(protocol.name);
    return members_.empty() || (supporters != supporters_.end() && supporters->second == members_.size());
  });
}

// Whom the request is of, or whose place it takes; nullptr: it is of somebody new.
const Member* Group::find_known(const JoinRequest& request) const {
  std::string id = request.member;
  auto of_instance = request.instance ? static_ids_.find(*request.instance) : static_ids_.end();
  if (id.empty() && of_instance != static_ids_.end()) id = of_instance->second;
  auto known = members_.find(id);
  return known == members_.end() ? nullptr : &known->second;
}

// Whether every entry about the group can name its members with this one among them, whichever leads, and whichever of
// its protocols is chosen.
bool Group::fits_into_entry(const JoinRequest& request) const {
  const std::string& id = request.member.empty() ? request.fresh_id : request.member;
  size_t bytes = id_.size() + request.protocol_type.size() + id_bytes_ + id.size() + kEntryBytesPerId;
  if (const Member* known = find_known(request)) bytes -= known->id.size() + kEntryBytesPerId;
  size_t longest_name = 0;
  for (const auto& protocol : request.protocols) longest_name = std::max(longest_name, protocol.name.size());
  return bytes + std::max(longest_id_, id.size()) + longest_name <= config_.names_bytes_max;
}

// Who brings no more than it brought before always may.
bool Group::fits_into_memory(const JoinRequest& request) const {
  size_t before = 0;
  size_t after = bytes_brought(request);
  if (const Member* known = find_known(request)) {
    before = bytes_of(known->details);
  } else {
    after += kBytesEach + request.fresh_id.size();
  }
  return after <= before || after - before <= request.bytes_room;
}

void Group::join_new(JoinRequest request, JoinReply reply, MonotonicTime now) {
  std::string id = request.fresh_id;
  if (request.instance) {
    auto known = static_ids_.find(*request.instance);
    if (known != static_ids_.end()) {
      std::string old_id = known->second;
      replace_static(old_id, std::move(request), std::move(reply), now);
    } else {
      add_member(std::move(request), std::move(id), std::move(reply), now);
    }
  } else if (request.needs_known_id) {
    give_id(request, std::move(reply), now);
  } else {
    add_member(std::move(request), std::move(id), std::move(reply), now);
  }
}

// The client is to come back with the id, so that a join that it gave up leaves no member behind (KIP-394).
void Group::give_id(const JoinRequest& request, JoinReply reply, MonotonicTime now) {
  GroupErrc error = GroupErrc::kMemberIdRequired;
  if (pending_.size() >= config_.pending_max) {
    error = GroupErrc::kCoordinatorNotAvailable;
  } else {
    PendingId& pending = pending_[request.fresh_id];
    bytes_ += kBytesEach + request.fresh_id.size();
    pending.session = std::chrono::milliseconds(milliseconds(request.session_timeout_ms));
    set_due(pending.ends, now + pending.session);
  }
  std::string id = error == GroupErrc::kMemberIdRequired ? request.fresh_id : "";
  answers_.emplace_back(std::pair(std::move(reply), JoinAnswer::of(error, std::move(id))));
}

void Group::join_known(JoinRequest request, JoinReply reply, MonotonicTime now) {
  std::string id = request.member;
  auto answer_now = [&](JoinAnswer answer) {
    answers_.emplace_back(std::pair(std::move(reply), std::move(answer)));
  };
  if (pending_.contains(id)) {
    // Ids are handed out to dynamic members only.
    if (request.instance) return answer_now(JoinAnswer::of(GroupErrc::kUnknownServerError, id));
    return add_member(std::move(request), std::move(id), std::move(reply), now);
  }
  GroupErrc error = check_name({id, request.instance});
  if (error != GroupErrc::kNone) return answer_now(JoinAnswer::of(error, id));
  Member& member = members_.at(id);
  bool is_leader = id == leader_;
  bool is_changed = member.details.protocols != request.protocols;
  if (phase_ == Phase::kCompletingRebalance && !is_changed) {
    // It may not have got the first answer.
    answer_now(generation_for(member, is_leader));
  } else if (phase_ == Phase::kStable && !is_changed && !is_leader) {
    answer_now(generation_for(member, false));
  } else {
    // A leader who joins a stable group wants a rebalance: something that only it sees has changed.
    update_and_rebalance(member, std::move(request), std::move(reply), now);
  }
}

void Group::add_member(JoinRequest request, std::string id, JoinReply reply, MonotonicTime now) {
  if (phase_ == Phase::kPreparingRebalance && is_initial_) has_newcomer_ = true;
  if (members_.empty()) protocol_type_ = request.protocol_type;
  take_pending(id);
  Member& member = members_[id];
  member.id = std::move(id);
  member.is_new = true;
  member.details.instance_id = request.instance;
  member.details.client_id = std::move(request.client_id);
  member.details.client_host = std::move(request.client_host);
  take_terms(member.details, request);
  count_in(member);
  if (member.is_static()) static_ids_[*member.details.instance_id] = member.id;
  if (leader_.empty()) leader_ = member.id;
  wait_in_join(member, std::move(reply));
  set_due(member.session_ends, now + config_.new_member_join_timeout);
  rebalance_or_complete(now);
}

void Group::update_and_rebalance(Member& member, JoinRequest request, JoinReply reply, MonotonicTime now) {
  count_out(member);
  take_terms(member.details, request);
  count_in(member);
  wait_in_join(member, std::move(reply));
  rebalance_or_complete(now);
}

// A static member has started again, without its id: the new one takes the place of the old one, which is fenced.
void Group::replace_static(const std::string& old_id, JoinRequest request, JoinReply reply,
                           MonotonicTime now) {
  std::string leader_before = leader_;
  auto node = members_.extract(old_id);
  Member& member = node.mapped();
  count_out(member);
  answer(member, JoinAnswer::of(GroupErrc::kFencedInstance, old_id));
  answer(member, SyncAnswer::of(GroupErrc::kFencedInstance));
  member.id = request.fresh_id;
  member.is_new = false;
  node.key() = member.id;
  static_ids_[*member.details.instance_id] = member.id;
  if (leader_ == old_id) leader_ = member.id;
  if (missing_syncs_.erase(old_id) > 0) missing_syncs_.insert(member.id);
  members_.insert(std::move(node));
  ++revision_;
  expect_heartbeat(member, now);
  take_terms(member.details, request);
  count_in(member);
  wait_in_join(member, std::move(reply));
  switch (phase_) {
    case Phase::kStable:
      if (protocol_ == select_protocol()) {
        answer_replaced(member, leader_before, request.can_skip_assignment);
      } else {
        prepare_rebalance(now);
      }
      break;
    case Phase::kCompletingRebalance:
      // The leader may have got the old id already, and would give the new one nothing.
      prepare_rebalance(now);
      break;
    case Phase::kPreparingRebalance:
    case Phase::kEmpty:
      complete_if_all_joined(now);
      break;
  }
}

// The group stays as it is. A leader that is told so from version 9 on does not assign anew; older ones get the former
// leader's id, so that they do not take themselves for it.
void Group::answer_replaced(Member& member, const std::string& leader_before, bool can_skip_assignment) {
  bool is_leader = member.id == leader_;
  JoinAnswer answered = generation_for(member, can_skip_assignment && is_leader);
  if (can_skip_assignment) {
    answered.skip_assignment = is_leader;
  } else {
    answered.leader = leader_before;
  }
  answer(member, std::move(answered));
}

JoinAnswer Group::generation_for(const Member& member, bool with_members) const {
  JoinAnswer answer;
  answer.member = member.id;
  answer.generation = generation_;
  answer.protocol_type = protocol_type_;
  answer.protocol = protocol_;
  answer.leader = leader_;
  if (with_members) answer.members = joined_members();
  return answer;
}

std::vector<JoinedMember> Group::joined_members() const {
  std::vector<JoinedMember> joined;
  joined.reserve(members_.size());
  for (const auto& [id, member] : members_) {
    auto used = std::ranges::find_if(member.details.protocols,
                                     [&](const auto& one) { return protocol_ && one.name == *protocol_; });
    joined.push_back(
        {id, member.details.instance_id, used == member.details.protocols.end() ? "" : used->metadata});
  }
  return joined;
}

}  // namespace varve::broker
