#include <algorithm>
#include <vector>

#include "base/hash.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::FindCoordinatorResponse;
using ResultRow = FindCoordinatorResponse::Coordinator;

constexpr int8_t kGroup = 0;
constexpr int8_t kTransaction = 1;
constexpr int16_t kFirstVersionOfMany = 4;

// The live broker that rendezvous hashing gives for the key, which is the same one for all who ask, and for groups the one
// that the state takes entries from. A client that came through a listener which that broker does not have cannot reach it.
ResultRow row_of(const metadata::MetadataImage& image, const std::string& listener, int8_t type,
                 std::string key) {
  std::vector<BrokerId> live;
  for (const auto& [id, broker] : image.brokers) live.push_back(id);
  ResultRow row;
  row.node_id = BrokerId(-1);
  row.port = -1;
  auto owner = rendezvous_owner(hash64(key, static_cast<uint64_t>(type)), live);
  row.key = std::move(key);
  const metadata::Endpoint* endpoint =
      owner == live.end() ? nullptr : endpoint_of(image.brokers.at(*owner), listener);
  if (endpoint == nullptr) {
    row.error_code = ErrorCode::kCoordinatorNotAvailable;
    return row;
  }
  row.node_id = *owner;
  row.host = endpoint->host;
  row.port = endpoint->port;
  return row;
}

ErrorCode access_error(const Services& services, const RequestContext& context, int8_t type,
                       std::string_view key) {
  bool is_group = type == kGroup;
  bool may_describe = is_allowed(services, context, Operation::kDescribe,
                                 is_group ? ResourceType::kGroup : ResourceType::kTransactionalId, key);
  if (may_describe) return ErrorCode::kNone;
  return is_group ? ErrorCode::kGroupAuthorizationFailed : ErrorCode::kTransactionalIdAuthorizationFailed;
}

ResultRow error_row(std::string key, ErrorCode code, std::string message) {
  ResultRow row;
  row.key = std::move(key);
  row.node_id = BrokerId(-1);
  row.port = -1;
  row.error_code = code;
  row.error_message = std::move(message);
  return row;
}

}  // namespace

HandlerTask<FindCoordinatorResponse> handle_find_coordinator(Services& services,
                                                             const RequestContext& context,
                                                             protocol::FindCoordinatorRequest request) {
  if (context.version < kFirstVersionOfMany) request.coordinator_keys = {std::move(request.key)};
  bool is_known_type = request.key_type == kGroup || request.key_type == kTransaction;
  SyncedImage synced{services.metadata.image(), true};
  if (is_known_type) synced = co_await synced_image(services, context.deadline);

  FindCoordinatorResponse response;
  for (std::string& key : request.coordinator_keys) {
    ResultRow row;
    if (!is_known_type) {
      row =
          error_row(std::move(key), ErrorCode::kInvalidRequest, "coordinators are of groups or transactions");
    } else if (ErrorCode denied = access_error(services, context, request.key_type, key);
               denied != ErrorCode::kNone) {
      row = error_row(std::move(key), denied, "the client may not describe it");
    } else if (!synced.is_certain) {
      row = error_row(std::move(key), ErrorCode::kCoordinatorNotAvailable,
                      "this broker has lost touch with the metadata log");
    } else {
      row = row_of(*synced.image, context.listener, request.key_type, std::move(key));
    }
    response.coordinators.push_back(std::move(row));
  }
  if (context.version >= kFirstVersionOfMany) co_return response;
  ResultRow only = std::move(response.coordinators.front());
  response.coordinators.clear();
  response.error_code = only.error_code;
  response.error_message = std::move(only.error_message);
  response.node_id = only.node_id;
  response.host = std::move(only.host);
  response.port = only.port;
  co_return response;
}

}  // namespace varve::broker
