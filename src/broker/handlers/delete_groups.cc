#include <set>

#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {

using protocol::DeleteGroupsResponse;
using protocol::ErrorCode;

HandlerTask<DeleteGroupsResponse> handle_delete_groups(Services& services, const RequestContext& context,
                                                       protocol::DeleteGroupsRequest request) {
  DeleteGroupsResponse response;
  std::vector<std::string> groups;
  std::vector<std::string> denied;
  std::set<std::string> seen;
  for (std::string& id : request.groups_names) {
    if (!seen.insert(id).second) continue;
    bool may_delete = is_allowed(services, context, Operation::kDelete, ResourceType::kGroup, id);
    (may_delete ? groups : denied).push_back(std::move(id));
  }
  std::vector<GroupErrc> errors;
  if (!groups.empty()) errors = co_await services.groups.remove(groups, context.deadline);
  for (size_t i = 0; i < groups.size(); ++i) {
    auto& row = response.results.emplace_back();
    row.group_id = std::move(groups[i]);
    row.error_code = error_of(errors[i]);
    if (row.error_code == ErrorCode::kNone) services.logger.info("group deleted", {{"group", row.group_id}});
  }
  for (std::string& id : denied) {
    auto& row = response.results.emplace_back();
    row.group_id = std::move(id);
    row.error_code = ErrorCode::kGroupAuthorizationFailed;
  }
  co_return response;
}

}  // namespace varve::broker
