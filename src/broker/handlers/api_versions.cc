#include <algorithm>

#include "broker/handlers/handlers.h"
#include "protocol/api_table.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;

constexpr int32_t kNoNode = -1;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// KIP-511: letters, digits, '-' and '.', the first and the last a letter or digit.
bool is_software_name(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; });
}

ErrorCode error_of(const Services& services, int16_t version, const protocol::ApiVersionsRequest& request) {
  if (version >= 3 && (!is_software_name(request.client_software_name) ||
                       !is_software_name(request.client_software_version))) {
    return ErrorCode::kInvalidRequest;
  }
  if (version < 5) return ErrorCode::kNone;
  // A client that reached another cluster or node than it meant has to start over (KIP-1242). It names both or none.
  bool has_node = request.node_id != kNoNode;
  if (request.cluster_id.has_value() != has_node) return ErrorCode::kInvalidRequest;
  if (!has_node) return ErrorCode::kNone;
  bool is_here = *request.cluster_id == services.metadata.image()->log_id.to_string() &&
                 request.node_id == services.settings.broker_id.value();
  return is_here ? ErrorCode::kNone : ErrorCode::kRebootstrapRequired;
}

}  // namespace

HandlerTask<protocol::ApiVersionsResponse> handle_api_versions(Services& services,
                                                               const RequestContext& context,
                                                               protocol::ApiVersionsRequest request) {
  ErrorCode error = error_of(services, context.version, request);
  if (error == ErrorCode::kNone) co_return protocol::api_versions_response();
  // As Kafka, without the list.
  co_return protocol::ApiVersionsResponse{.error_code = error};
}

}  // namespace varve::broker
