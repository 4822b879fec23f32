#include <algorithm>

#include "broker/handlers/handlers.h"
#include "protocol/api_table.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// KIP-511: letters, digits, '-' and '.', the first and the last a letter or digit.
bool is_software_name(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; });
}

}  // namespace

HandlerTask<protocol::ApiVersionsResponse> handle_api_versions(Services& services,
                                                               const RequestContext& context,
                                                               protocol::ApiVersionsRequest request) {
  protocol::ApiVersionsResponse response = protocol::api_versions_response();
  if (context.version >= 3 && (!is_software_name(request.client_software_name) ||
                               !is_software_name(request.client_software_version))) {
    response.error_code = ErrorCode::kInvalidRequest;
  }
  // A client that reached another cluster or node than it meant has to start over (KIP-1242).
  bool is_other_cluster =
      request.cluster_id && *request.cluster_id != services.metadata.image()->log_id.to_string();
  bool is_other_node = request.node_id >= 0 && request.node_id != services.settings.broker_id.value();
  if (context.version >= 5 && (is_other_cluster || is_other_node)) {
    response.error_code = ErrorCode::kRebootstrapRequired;
  }
  co_return response;
}

}  // namespace varve::broker
