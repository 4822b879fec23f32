#include <algorithm>

#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::LeaveGroupResponse;

constexpr int16_t kFirstVersionOfMany = 3;

}  // namespace

HandlerTask<LeaveGroupResponse> handle_leave_group(Services& services, const RequestContext& context,
                                                   protocol::LeaveGroupRequest request) {
  LeaveGroupResponse response;
  if (!is_allowed(services, context, Operation::kRead, ResourceType::kGroup, request.group_id)) {
    response.error_code = ErrorCode::kGroupAuthorizationFailed;
    co_return response;
  }
  if (context.version < kFirstVersionOfMany) {
    request.members.clear();
    request.members.emplace_back().member_id = std::move(request.member_id);
  }
  LeaveRequest leave;
  leave.group = std::move(request.group_id);
  for (const auto& member : request.members) {
    services.logger.debug(
        "leave of a group",
        {{"group", leave.group}, {"member", member.member_id}, {"reason", member.reason.value_or("")}});
    leave.members.push_back({member.member_id, member.group_instance_id});
  }
  LeaveAnswer answer = co_await services.groups.leave(std::move(leave), context.deadline);
  response.error_code = error_of(answer.error);
  for (size_t i = 0; i < answer.members.size(); ++i) {
    auto& row = response.members.emplace_back();
    row.member_id = std::move(request.members[i].member_id);
    row.group_instance_id = std::move(request.members[i].group_instance_id);
    row.error_code = error_of(answer.members[i]);
  }
  if (context.version >= kFirstVersionOfMany) co_return response;
  // One code stands for all.
  auto failed = std::ranges::find_if(response.members,
                                     [](const auto& row) { return row.error_code != ErrorCode::kNone; });
  bool has_own = response.error_code != ErrorCode::kNone;
  if (!has_own && failed != response.members.end()) response.error_code = failed->error_code;
  response.members.clear();
  co_return response;
}

}  // namespace varve::broker
