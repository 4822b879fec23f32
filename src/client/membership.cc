#include "client/membership.h"

#include "protocol/messages/heartbeat.h"
#include "protocol/messages/leave_group.h"

namespace varve::client {

using protocol::ErrorCode;
using runtime::Task;
using runtime::Wake;

namespace {

// What Kafka's clients add to the rebalance timeout before they give up on an answer.
constexpr Duration kJoinAllowance = 5s;
// Versions that bring the instance id.
constexpr int16_t kFirstStaticJoin = 5;
constexpr int16_t kFirstStaticSync = 3;
constexpr int16_t kFirstStaticHeartbeat = 3;

int32_t in_ms(Duration span) { return static_cast<int32_t>(span / 1ms); }

}  // namespace

Membership::Membership(Cluster& cluster, MembershipOptions options, MembershipDelegate& delegate)
    : cluster_(cluster),
      options_(std::move(options)),
      delegate_(delegate),
      lane_(cluster.new_lane()),
      identity_{.member_id = "", .instance_id = options_.instance_id, .generation = -1} {}

template <class Request>
Task<ClientResult<typename Request::Response>> Membership::ask(Request request, GroupIdentity who,
                                                               AskOptions options) {
  options.lane = lane_;
  MembershipAnswer answer{.api = Request::kApiKey, .who = std::move(who), .sent_at = cluster_.now()};
  delegate_.asks(answer.api, answer.who);
  auto response = co_await cluster_.ask_coordinator(options_.group, std::move(request), options);
  if (response) {
    answer.error = response->error_code;
  } else if (response.error().cause == ClientErrc::kRefused) {
    answer.error = response.error().kafka;
  }
  delegate_.answered(answer);
  co_return response;
}

Task<ClientResult<Membership::Joined>> Membership::join() {
  if (!has_heartbeats_) {
    has_heartbeats_ = true;
    scope_.spawn(cluster_.executor(), "group heartbeats", heartbeat_loop());
  }
  for (size_t tries = 0;;) {
    if (problem_) co_return std::unexpected(*problem_);
    state_ = State::kJoining;
    is_rebalancing_ = false;
    Joined joined;
    Next next = co_await join_once(joined);
    if (next == Next::kDone) {
      state_ = State::kStable;
      co_return joined;
    }
    if (next == Next::kFailed) co_return std::unexpected(*problem_);
    if (next == Next::kAgain) continue;
    Wake wake = co_await runtime::sleep_for(cluster_.backoff(tries++));
    if (wake == Wake::kStopped) co_return failed(ClientErrc::kStopped, "asked to stop while joining");
  }
}

Task<Membership::Next> Membership::join_once(Joined& joined) {
  protocol::JoinGroupRequest request;
  request.group_id = options_.group;
  request.session_timeout_ms = in_ms(options_.session_timeout);
  request.rebalance_timeout_ms = in_ms(options_.rebalance_timeout);
  request.member_id = identity_.member_id;
  request.group_instance_id = options_.instance_id;
  request.protocol_type = options_.protocol_type;
  for (MembershipDelegate::Protocol& protocol : delegate_.protocols()) {
    auto& row = request.protocols.emplace_back();
    row.name = std::move(protocol.name);
    row.metadata = std::move(protocol.metadata);
  }
  AskOptions options;
  options.timeout = std::max(cluster_.options().request_timeout, options_.rebalance_timeout + kJoinAllowance);
  if (options_.instance_id) options.versions.low = kFirstStaticJoin;
  auto response = co_await ask(std::move(request), identity_, options);
  if (!response) co_return after_error(response.error());
  if (response->error_code == ErrorCode::kMemberIdRequired) {
    identity_.member_id = response->member_id;
    co_return Next::kAgain;
  }
  if (response->error_code != ErrorCode::kNone) {
    co_return after_error(refused(response->error_code, "JoinGroup").error());
  }
  identity_.member_id = response->member_id;
  identity_.generation = response->generation_id;
  co_return co_await sync(*response, joined);
}

Task<ClientResult<std::map<std::string, Slice>>> Membership::lead(
    const protocol::JoinGroupResponse& response) {
  std::vector<MembershipDelegate::Member> members;
  for (const auto& row : response.members)
    members.push_back({row.member_id, row.group_instance_id, row.metadata});
  co_return co_await delegate_.assign(response.generation_id, response.protocol_name.value_or(""),
                                      std::move(members));
}

Task<Membership::Next> Membership::sync(const protocol::JoinGroupResponse& response, Joined& joined) {
  protocol::SyncGroupRequest request;
  request.group_id = options_.group;
  request.generation_id = identity_.generation;
  request.member_id = identity_.member_id;
  request.group_instance_id = options_.instance_id;
  request.protocol_type = options_.protocol_type;
  request.protocol_name = response.protocol_name;
  bool is_leader = response.leader == identity_.member_id;
  // A static leader that comes back is told to leave the assignment as it is (KIP-814).
  if (is_leader && !response.skip_assignment) {
    auto shares = co_await lead(response);
    if (!shares) co_return after_error(shares.error());
    for (auto& [member, share] : *shares) {
      auto& row = request.assignments.emplace_back();
      row.member_id = member;
      row.assignment = std::move(share);
    }
  }
  AskOptions options;
  options.timeout = std::max(cluster_.options().request_timeout, options_.rebalance_timeout + kJoinAllowance);
  if (options_.instance_id) options.versions.low = kFirstStaticSync;
  auto answer = co_await ask(std::move(request), identity_, options);
  if (!answer) co_return after_error(answer.error());
  if (answer->error_code != ErrorCode::kNone) {
    co_return after_error(refused(answer->error_code, "SyncGroup").error());
  }
  joined = {.generation = identity_.generation,
            .protocol = response.protocol_name.value_or(""),
            .assignment = std::move(answer->assignment),
            .is_leader = is_leader};
  co_return Next::kDone;
}

// What follows from an error of JoinGroup or SyncGroup.
Membership::Next Membership::after_error(const ClientError& error) {
  if (error.leaves_doubt()) cluster_.forget_coordinator(options_.group);
  if (error.cause == ClientErrc::kRefused) {
    switch (error.kafka) {
      case ErrorCode::kNotCoordinator:
      case ErrorCode::kCoordinatorNotAvailable:
        cluster_.forget_coordinator(options_.group);
        return Next::kAgainSoon;
      case ErrorCode::kRebalanceInProgress:
        return Next::kAgain;
      case ErrorCode::kUnknownMemberId:
      case ErrorCode::kIllegalGeneration:
        forget_membership(error.kafka);
        return Next::kAgain;
      default:
        break;
    }
  }
  if (error.is_retriable()) return Next::kAgainSoon;
  fail_for_good(error);
  return Next::kFailed;
}

void Membership::heard(ErrorCode code, const GroupIdentity& who) {
  if (state_ != State::kStable || who != identity_) return;  // of a membership that is past
  switch (code) {
    case ErrorCode::kRebalanceInProgress:
      is_rebalancing_ = true;
      break;
    case ErrorCode::kUnknownMemberId:
    case ErrorCode::kIllegalGeneration:
      state_ = State::kOut;
      forget_membership(code);
      break;
    case ErrorCode::kFencedInstanceId:
    case ErrorCode::kGroupAuthorizationFailed:
      fail_for_good(refused(code, "the group's coordinator").error());
      break;
    default:
      return;
  }
  delegate_.woken();
}

// A generation that is past leaves the member known to the broker; it joins the next one under the same id.
void Membership::forget_membership(ErrorCode why) {
  if (why == ErrorCode::kUnknownMemberId) identity_.member_id.clear();
  identity_.generation = -1;
  delegate_.lost();
}

void Membership::fail_for_good(ClientError error) {
  if (problem_) return;
  problem_ = std::move(error);
  state_ = State::kOut;
  delegate_.lost();
}

Task<> Membership::heartbeat_loop() {
  while (!problem_) {
    if (co_await runtime::sleep_for(options_.heartbeat_interval) == Wake::kStopped) co_return;
    if (state_ != State::kStable) continue;
    if (calls_ == 0 && cluster_.now() - touched_at_ > options_.rebalance_timeout) {
      // As Kafka's consumer whose application has not come back for max.poll.interval.ms.
      GroupIdentity who = identity_;
      state_ = State::kOut;
      forget_membership(ErrorCode::kUnknownMemberId);
      delegate_.woken();
      co_await say_goodbye(who);
    } else {
      co_await heartbeat();
    }
  }
}

Task<> Membership::heartbeat() {
  GroupIdentity who = identity_;
  protocol::HeartbeatRequest request;
  request.group_id = options_.group;
  request.generation_id = who.generation;
  request.member_id = who.member_id;
  request.group_instance_id = options_.instance_id;
  AskOptions options;
  if (options_.instance_id) options.versions.low = kFirstStaticHeartbeat;
  // A rebalance that begins while it is under way queues behind it on the same connection.
  options.timeout = std::min(cluster_.options().request_timeout, options_.session_timeout);
  auto response = co_await ask(std::move(request), identity_, options);
  ErrorCode code = response ? response->error_code : response.error().kafka;
  bool is_elsewhere = code == ErrorCode::kNotCoordinator || code == ErrorCode::kCoordinatorNotAvailable;
  bool is_lost = !response && response.error().leaves_doubt();
  if (is_elsewhere || is_lost) cluster_.forget_coordinator(options_.group);
  heard(code, who);
}

Task<> Membership::leave() {
  GroupIdentity who = identity_;
  state_ = State::kOut;
  identity_.member_id.clear();
  co_await say_goodbye(std::move(who));
}

// Whether it arrives or not, the session ends.
Task<> Membership::say_goodbye(GroupIdentity who) {
  if (who.member_id.empty() || who.instance_id) co_return;
  protocol::LeaveGroupRequest request;
  request.group_id = options_.group;
  request.member_id = who.member_id;
  request.members.emplace_back().member_id = who.member_id;
  co_await ask(std::move(request), std::move(who), {});
}

Task<> Membership::close() {
  state_ = State::kOut;
  co_await scope_.close();
  cluster_.close_lane(lane_);
}

}  // namespace varve::client
