#include <algorithm>
#include <cctype>
#include <set>

#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {
namespace {

using protocol::ListGroupsRequest;
using protocol::ListGroupsResponse;

constexpr std::string_view kClassic = "classic";

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string trimmed(std::string text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// A filter that names nothing lets everything through. Names that Kafka does not know match no group.
class Filter {
 public:
  explicit Filter(const ListGroupsRequest& request) {
    for (const std::string& state : request.states_filter) states_.insert(trimmed(lower_case(state)));
    wants_classic_ = request.types_filter.empty() ||
                     std::ranges::any_of(request.types_filter, [](const std::string& type) {
                       return lower_case(type) == kClassic;
                     });
  }
  bool matches(const ListedGroup& group) const {
    return wants_classic_ && (states_.empty() || states_.contains(lower_case(name_of(group.phase))));
  }

 private:
  std::set<std::string> states_;
  bool wants_classic_ = true;
};

}  // namespace

// Each broker lists its own: clients ask them all.
HandlerTask<ListGroupsResponse> handle_list_groups(Services& services, const RequestContext& context,
                                                   ListGroupsRequest request) {
  ListGroupsResponse response;
  bool may_see_all = is_allowed_on_cluster(services, context, Operation::kDescribe);
  auto listed = co_await services.groups.list(context.deadline);
  if (!listed) {
    response.error_code = error_of(listed.error());
    co_return response;
  }
  Filter filter(request);
  for (ListedGroup& group : *listed) {
    if (!filter.matches(group)) continue;
    bool may_see =
        may_see_all || is_allowed(services, context, Operation::kDescribe, ResourceType::kGroup, group.id);
    if (!may_see) continue;
    auto& row = response.groups.emplace_back();
    row.group_id = std::move(group.id);
    row.protocol_type = std::move(group.protocol_type);
    row.group_state = name_of(group.phase);
    row.group_type = kClassic;
  }
  co_return response;
}

}  // namespace varve::broker
