#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {

using protocol::ErrorCode;
using protocol::HeartbeatResponse;

HandlerTask<HeartbeatResponse> handle_heartbeat(Services& services, const RequestContext& context,
                                                protocol::HeartbeatRequest request) {
  HeartbeatResponse response;
  if (!is_allowed(services, context, Operation::kRead, ResourceType::kGroup, request.group_id)) {
    response.error_code = ErrorCode::kGroupAuthorizationFailed;
    co_return response;
  }
  HeartbeatRequest heartbeat;
  heartbeat.group = std::move(request.group_id);
  heartbeat.member = {std::move(request.member_id), std::move(request.group_instance_id)};
  heartbeat.generation = request.generation_id;
  response.error_code = error_of(co_await services.groups.heartbeat(std::move(heartbeat), context.deadline));
  co_return response;
}

}  // namespace varve::broker
