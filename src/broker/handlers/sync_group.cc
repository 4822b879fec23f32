#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::SyncGroupRequest;
using protocol::SyncGroupResponse;

constexpr int16_t kFirstVersionWithProtocol = 5;

SyncRequest sync_of(SyncGroupRequest& request) {
  SyncRequest sync;
  sync.group = std::move(request.group_id);
  sync.member = {std::move(request.member_id), std::move(request.group_instance_id)};
  sync.generation = request.generation_id;
  sync.protocol_type = std::move(request.protocol_type);
  sync.protocol = std::move(request.protocol_name);
  for (auto& row : request.assignments) {
    sync.assignments.emplace_back(std::move(row.member_id), as_text(row.assignment.view()));
  }
  return sync;
}

}  // namespace

HandlerTask<SyncGroupResponse> handle_sync_group(Services& services, const RequestContext& context,
                                                 SyncGroupRequest request) {
  SyncGroupResponse response;
  bool lacks_protocol =
      context.version >= kFirstVersionWithProtocol && (!request.protocol_type || !request.protocol_name);
  if (lacks_protocol) {
    response.error_code = ErrorCode::kInconsistentGroupProtocol;
  } else if (!is_allowed(services, context, Operation::kRead, ResourceType::kGroup, request.group_id)) {
    response.error_code = ErrorCode::kGroupAuthorizationFailed;
  } else {
    SyncRequest sync = sync_of(request);
    // The leader may take long, and its request needs room meanwhile.
    request = {};
    sync.memory = std::move(context.memory);
    SyncAnswer answer = co_await services.groups.sync(std::move(sync), context.deadline);
    response.error_code = error_of(answer.error);
    response.protocol_type = std::move(answer.protocol_type);
    response.protocol_name = std::move(answer.protocol);
    response.assignment = Slice::copy_of(as_bytes(answer.assignment));
  }
  co_return response;
}

}  // namespace varve::broker
