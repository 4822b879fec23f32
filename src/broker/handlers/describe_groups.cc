#include <fmt/format.h>

#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/mentions.h"

namespace varve::broker {
namespace {

using protocol::DescribeGroupsResponse;
using protocol::ErrorCode;
using Row = DescribeGroupsResponse::DescribedGroup;

// Before it an unknown group is described as one that has died.
constexpr int16_t kFirstVersionWithNotFound = 6;

void fill(Row& row, DescribedGroup& group) {
  row.group_state = name_of(group.phase);
  row.protocol_type = std::move(group.protocol_type);
  row.protocol_data = group.protocol;
  for (DescribedMember& member : group.members) {
    auto& described = row.members.emplace_back();
    described.member_id = std::move(member.id);
    described.group_instance_id = std::move(member.details.instance_id);
    described.client_id = std::move(member.details.client_id);
    described.client_host = std::move(member.details.client_host);
    described.member_assignment = Slice::copy_of(as_bytes(member.assignment));
    if (group.phase != metadata::GroupPhase::kStable) continue;
    for (const auto& protocol : member.details.protocols) {
      if (protocol.name != group.protocol) continue;
      described.member_metadata = Slice::copy_of(as_bytes(protocol.metadata));
      break;
    }
  }
}

Row row_of(std::string id, DescribedGroup& group, int16_t version) {
  Row row;
  row.group_id = std::move(id);
  if (group.error == GroupErrc::kGroupIdNotFound) {
    row.group_state = "Dead";
    if (version >= kFirstVersionWithNotFound) {
      row.error_code = error_of(group.error);
      row.error_message = fmt::format("Group {} not found.", row.group_id);
    }
  } else if (group.error != GroupErrc::kNone) {
    row.error_code = error_of(group.error);
  } else {
    fill(row, group);
  }
  return row;
}

}  // namespace

HandlerTask<DescribeGroupsResponse> handle_describe_groups(Services& services, const RequestContext& context,
                                                           protocol::DescribeGroupsRequest request) {
  DescribeGroupsResponse response;
  std::vector<std::string> groups;
  Mentions<std::string> mentions;
  for (std::string& id : request.groups) {
    bool is_denied = !is_allowed(services, context, Operation::kDescribe, ResourceType::kGroup, id);
    if (!is_denied && !mentions.is_too_often(id)) {
      groups.push_back(std::move(id));
      continue;
    }
    Row& row = response.groups.emplace_back();
    row.group_id = std::move(id);
    row.error_code = is_denied ? ErrorCode::kGroupAuthorizationFailed : ErrorCode::kInvalidRequest;
  }
  std::vector<DescribedGroup> described = co_await services.groups.describe(groups, context.deadline);
  for (size_t i = 0; i < groups.size(); ++i) {
    Row& row = response.groups.emplace_back(row_of(groups[i], described[i], context.version));
    if (request.include_authorized_operations && row.error_code == ErrorCode::kNone) {
      row.authorized_operations =
          authorized_operations(services, context, ResourceType::kGroup, row.group_id);
    }
  }
  co_return response;
}

}  // namespace varve::broker
