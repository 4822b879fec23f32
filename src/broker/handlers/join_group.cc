#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::JoinGroupRequest;
using protocol::JoinGroupResponse;

constexpr int16_t kFirstVersionWithRebalanceTimeout = 1;
constexpr int16_t kFirstVersionThatNeedsAnId = 4;     // KIP-394
constexpr int16_t kFirstVersionWithoutAProtocol = 7;  // before it "" says that there is none
constexpr int16_t kFirstVersionThatSkips = 9;         // KIP-814

std::string to_string(const Slice& bytes) { return std::string(as_text(bytes.view())); }

JoinRequest join_of(const RequestContext& context, JoinGroupRequest& request) {
  JoinRequest join;
  join.group = std::move(request.group_id);
  join.member = std::move(request.member_id);
  join.instance = std::move(request.group_instance_id);
  join.client_id = context.client_id;
  join.client_host = "/" + context.peer.host;
  join.session_timeout_ms = request.session_timeout_ms;
  join.rebalance_timeout_ms = context.version >= kFirstVersionWithRebalanceTimeout
                                  ? request.rebalance_timeout_ms
                                  : request.session_timeout_ms;
  join.protocol_type = std::move(request.protocol_type);
  for (auto& protocol : request.protocols) {
    join.protocols.push_back({std::move(protocol.name), to_string(protocol.metadata)});
  }
  join.needs_known_id = context.version >= kFirstVersionThatNeedsAnId;
  join.can_skip_assignment = context.version >= kFirstVersionThatSkips;
  return join;
}

}  // namespace

HandlerTask<JoinGroupResponse> handle_join_group(Services& services, const RequestContext& context,
                                                 JoinGroupRequest request) {
  JoinAnswer answer;
  JoinGroupResponse response;
  if (is_allowed(services, context, Operation::kRead, ResourceType::kGroup, request.group_id)) {
    services.logger.debug("join of a group", {{"group", request.group_id},
                                              {"member", request.member_id},
                                              {"reason", request.reason.value_or("")}});
    JoinRequest join = join_of(context, request);
    // The others may take minutes to join, and their requests need room meanwhile.
    request = {};
    join.memory = std::move(context.memory);
    answer = co_await services.groups.join(std::move(join), context.deadline);
    response.error_code = error_of(answer.error);
  } else {
    response.error_code = ErrorCode::kGroupAuthorizationFailed;
  }
  response.generation_id = answer.generation;
  response.protocol_type = std::move(answer.protocol_type);
  response.protocol_name = std::move(answer.protocol);
  if (context.version < kFirstVersionWithoutAProtocol && !response.protocol_name) response.protocol_name = "";
  response.leader = std::move(answer.leader);
  response.skip_assignment = answer.skip_assignment;
  response.member_id = std::move(answer.member);
  for (JoinedMember& member : answer.members) {
    auto& row = response.members.emplace_back();
    row.member_id = std::move(member.id);
    row.group_instance_id = std::move(member.instance);
    row.metadata = Slice::copy_of(as_bytes(member.metadata));
  }
  co_return response;
}

}  // namespace varve::broker
