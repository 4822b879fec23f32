// From one generation to the next.
#include <algorithm>
#include <limits>

#include "broker/group/group.h"

namespace varve::broker {

// Of the protocols that every member supports, the one that most members like best; of equals the first by name.
std::string Group::select_protocol() const {
  std::map<std::string_view, size_t> votes;
  for (const auto& [id, member] : members_) {
    auto liked = std::ranges::find_if(member.details.protocols, [&](const metadata::GroupProtocol& protocol) {
      return supporters_.find(protocol.name)->second == members_.size();
    });
    if (liked != member.details.protocols.end()) ++votes[liked->name];
  }
  auto best = std::ranges::max_element(votes, {}, [](const auto& one) { return one.second; });
  return best == votes.end() ? std::string() : std::string(best->first);
}

void Group::rebalance_or_complete(MonotonicTime now) {
  if (can_rebalance()) {
    prepare_rebalance(now);
  } else {
    complete_if_all_joined(now);
  }
}

void Group::prepare_rebalance(MonotonicTime now) {
  if (phase_ == Phase::kCompletingRebalance) {
    // Offsets may be committed again, which apply has to know.
    ++revision_;
    fail_syncs(GroupErrc::kRebalanceInProgress, now);
  }
  missing_syncs_.clear();
  sync_ends_ = MonotonicTime::never();
  is_initial_ = phase_ == Phase::kEmpty;
  phase_ = Phase::kPreparingRebalance;
  if (is_initial_) {
    // Members of an application tend to start together: fewer rebalances if the first waits for the others.
    has_newcomer_ = false;
    delay_ = config_.initial_rebalance_delay;
    delay_left_ = std::max(rebalance_timeout() - delay_, Duration{});
    set_due(join_ends_, now + delay_);
  } else if (has_all_joined()) {
    complete_join(now);
  } else {
    set_due(join_ends_, now + rebalance_timeout());
  }
}

void Group::complete_if_all_joined(MonotonicTime now) {
  if (phase_ == Phase::kPreparingRebalance && !is_initial_ && has_all_joined()) complete_join(now);
}

void Group::initial_delay_ended(MonotonicTime now) {
  if (!has_newcomer_ || delay_left_ == Duration{}) return complete_join(now);
  has_newcomer_ = false;
  Duration next = std::min(config_.initial_rebalance_delay, delay_left_);
  delay_left_ = std::max(delay_left_ - delay_, Duration{});
  delay_ = next;
  set_due(join_ends_, now + delay_);
}

void Group::complete_join(MonotonicTime now) {
  join_ends_ = MonotonicTime::never();
  // A static member that has not come back is one of the next generation, too; until it does not sync in time, or its
  // session ends.
  std::vector<std::string> late;
  for (const auto& [id, member] : members_) {
    if (!member.join && !member.is_static()) late.push_back(id);
  }
  for (const std::string& id : late) remove(id);
  if (!members_.empty() && !elect_joined_leader()) {
    // Only static members are left, and none of them is here: their sessions decide.
    set_due(join_ends_, now + std::max(rebalance_timeout(), Duration(1s)));
    return;
  }
  begin_generation(now);
}

// False: nobody has joined.
bool Group::elect_joined_leader() {
  auto leader = members_.find(leader_);
  if (leader != members_.end() && leader->second.join) return true;
  auto joined = std::ranges::find_if(members_, [](const auto& one) { return one.second.join.has_value(); });
  if (joined == members_.end()) return false;
  leader_ = joined->first;
  return true;
}

void Group::begin_generation(MonotonicTime now) {
  ++revision_;
  generation_ = generation_ == std::numeric_limits<int32_t>::max() ? 1 : generation_ + 1;
  is_initial_ = false;
  missing_syncs_.clear();
  if (members_.empty()) {
    protocol_.reset();
    phase_ = Phase::kEmpty;
    return;
  }
  protocol_ = select_protocol();
  phase_ = Phase::kCompletingRebalance;
  for (auto& [id, member] : members_) {
    answer(member, generation_for(member, id == leader_));
    expect_heartbeat(member, now);
    member.is_new = false;
    missing_syncs_.insert(id);
  }
  set_due(sync_ends_, now + rebalance_timeout());
}

void Group::sync(SyncRequest request, SyncReply reply, MonotonicTime now) {
  auto differs = [](const std::optional<std::string>& asked, const std::string& own) {
    return asked && *asked != own;
  };
  GroupErrc error = check(request.member, request.generation);
  if (error == GroupErrc::kNone && (differs(request.protocol_type, protocol_type_) ||
                                    (protocol_ && differs(request.protocol, *protocol_)))) {
    error = GroupErrc::kInconsistentProtocol;
  }
  if (error == GroupErrc::kNone && phase_ == Phase::kPreparingRebalance) {
    error = GroupErrc::kRebalanceInProgress;
  }
  if (error != GroupErrc::kNone) {
    answers_.emplace_back(std::pair(std::move(reply), SyncAnswer::of(error)));
    return;
  }
  Member& member = members_.at(request.member.id);
  missing_syncs_.erase(member.id);
  if (missing_syncs_.empty()) sync_ends_ = MonotonicTime::never();
  wait_in_sync(member, std::move(reply));
  if (phase_ == Phase::kStable) {
    // It lives, though Apache Kafka lets its session go on as it was.
    expect_heartbeat(member, now);
    answer(member, {.protocol_type = protocol_type_, .protocol = protocol_, .assignment = member.assignment});
  } else if (member.id == leader_) {
    accept_assignments(std::move(request), now);
  }
}

void Group::accept_assignments(SyncRequest request, MonotonicTime now) {
  std::map<std::string, std::string> assigned;
  GroupErrc error = GroupErrc::kNone;
  size_t bytes_before = 0;
  size_t bytes_after = 0;
  for (const auto& [id, member] : members_) bytes_before += member.assignment.size();
  for (auto& [id, bytes] : request.assignments) {
    bytes_after += bytes.size();
    if (bytes.size() > config_.member_bytes_max) error = GroupErrc::kUnknownServerError;
    assigned[std::move(id)] = std::move(bytes);
  }
  bool has_room = bytes_after <= bytes_before || bytes_after - bytes_before <= request.bytes_room;
  if (error == GroupErrc::kNone && !has_room) error = GroupErrc::kCoordinatorNotAvailable;
  if (error != GroupErrc::kNone) {
    fail_syncs(error, now);
    return prepare_rebalance(now);
  }
  ++revision_;
  phase_ = Phase::kStable;
  for (auto& [id, member] : members_) {
    bytes_ -= member.assignment.size();
    auto found = assigned.find(id);
    // Whom the leader left out has nothing to do.
    member.assignment = found == assigned.end() ? "" : std::move(found->second);
    bytes_ += member.assignment.size();
    if (!member.sync) continue;
    answer(member, {.protocol_type = protocol_type_, .protocol = protocol_, .assignment = member.assignment});
    expect_heartbeat(member, now);
  }
}

void Group::fail_syncs(GroupErrc error, MonotonicTime now) {
  for (auto& [id, member] : members_) {
    bytes_ -= member.assignment.size();
    member.assignment.clear();
    if (!member.sync) continue;
    answer(member, SyncAnswer::of(error));
    expect_heartbeat(member, now);
  }
}

void Group::advance(MonotonicTime now) {
  if (now < next_due_) return;
  expire_pending(now);
  expire_members(now);
  if (join_ends_ <= now) {
    join_ends_ = MonotonicTime::never();
    if (is_initial_) {
      initial_delay_ended(now);
    } else {
      complete_join(now);
    }
  }
  if (sync_ends_ <= now) {
    sync_ends_ = MonotonicTime::never();
    expire_missing_syncs(now);
  }
  find_next_due();
}

void Group::find_next_due() {
  next_due_ = std::min(join_ends_, sync_ends_);
  for (const auto& [id, member] : members_) next_due_ = std::min(next_due_, member.session_ends);
  for (const auto& [id, pending] : pending_) next_due_ = std::min(next_due_, pending.ends);
}

void Group::expire_pending(MonotonicTime now) {
  std::vector<std::string> due;
  for (const auto& [id, pending] : pending_) {
    if (pending.ends <= now) due.push_back(id);
  }
  for (const std::string& id : due) take_pending(id);
  if (!due.empty() && phase_ == Phase::kPreparingRebalance && has_all_joined()) complete_join(now);
}

void Group::expire_members(MonotonicTime now) {
  std::vector<std::string> due;
  for (const auto& [id, member] : members_) {
    if (member.session_ends <= now) due.push_back(id);
  }
  for (const std::string& id : due) {
    Member* member = find_member(id);
    if (member == nullptr || member->session_ends > now) continue;
    member->session_ends = MonotonicTime::never();
    // Who waits for the group shows life by that; the next deadline comes with the answer.
    if (!member->is_new && (member->join || member->sync)) continue;
    // Who is still there joins again at this answer.
    answer(*member, JoinAnswer::of(GroupErrc::kUnknownMember));
    answer(*member, SyncAnswer::of(GroupErrc::kUnknownMember));
    remove(id);
    if (phase_ == Phase::kStable || phase_ == Phase::kCompletingRebalance) {
      prepare_rebalance(now);
    } else if (phase_ == Phase::kPreparingRebalance && has_all_joined()) {
      complete_join(now);
    }
  }
}

void Group::expire_missing_syncs(MonotonicTime now) {
  if (missing_syncs_.empty()) return;
  for (const std::string& id : std::set<std::string>(missing_syncs_)) remove(id);
  prepare_rebalance(now);
}

void Group::restart_deadlines(MonotonicTime now) {
  for (auto& [id, pending] : pending_) pending.ends = now + pending.session;
  for (auto& [id, member] : members_) {
    if (member.session_ends == MonotonicTime::never()) continue;
    if (member.is_new) {
      member.session_ends = now + config_.new_member_join_timeout;
    } else {
      expect_heartbeat(member, now);
    }
  }
  if (join_ends_ != MonotonicTime::never()) join_ends_ = now + (is_initial_ ? delay_ : rebalance_timeout());
  if (sync_ends_ != MonotonicTime::never()) sync_ends_ = now + rebalance_timeout();
  find_next_due();
}

}  // namespace varve::broker
