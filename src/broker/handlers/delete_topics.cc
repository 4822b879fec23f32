#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/proposing.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using protocol::DeleteTopicsRequest;
using protocol::DeleteTopicsResponse;
using protocol::ErrorCode;
using Asked = DeleteTopicsRequest::DeleteTopicState;
using ResultRow = DeleteTopicsResponse::DeletableTopicResult;

ResultRow row_of(const Asked& asked, ErrorCode code, std::string message) {
  ResultRow row;
  row.name = asked.name;
  row.topic_id = asked.topic_id;
  row.error_code = code;
  if (!message.empty()) row.error_message = std::move(message);
  return row;
}

runtime::Task<ResultRow> delete_one(Services& services, Asked asked, SyncedImage synced,
                                    MonotonicTime deadline) {
  bool by_id = !asked.topic_id.is_zero();
  const metadata::TopicView* topic =
      by_id ? synced.image->find_topic(asked.topic_id) : synced.image->find_topic(asked.name.value_or(""));
  if (topic == nullptr) {
    if (!synced.is_certain) {
      co_return row_of(asked, kCannotTellAdmin, "this broker has lost touch with the metadata log");
    }
    co_return row_of(asked, by_id ? ErrorCode::kUnknownTopicId : ErrorCode::kUnknownTopicOrPartition,
                     "there is no such topic");
  }
  asked.name = topic->name;
  asked.topic_id = topic->id;
  auto result = co_await propose_until(services.runtime, services.metadata,
                                       metadata::DeleteTopic{.id = asked.topic_id}, deadline);
  if (!result) co_return row_of(asked, error_of(result.error().code), result.error().message);
  if (result->verdict == metadata::CommandVerdict::kUnknownTopic) {
    co_return row_of(asked, by_id ? ErrorCode::kUnknownTopicId : ErrorCode::kUnknownTopicOrPartition,
                     "there is no such topic");
  }
  services.logger.info("topic deleted", {{"topic", *asked.name}});
  co_return row_of(asked, ErrorCode::kNone, "");
}

}  // namespace

HandlerTask<DeleteTopicsResponse> handle_delete_topics(Services& services, const RequestContext& context,
                                                       DeleteTopicsRequest request) {
  // Versions below 6 list names.
  for (std::string& name : request.topic_names) {
    Asked asked;
    asked.name = std::move(name);
    request.topics.push_back(std::move(asked));
  }
  MonotonicTime deadline = services.sync_deadline();
  if (request.timeout_ms > 0) {
    deadline = std::min(deadline, context.received + std::chrono::milliseconds(request.timeout_ms));
  }
  SyncedImage synced{services.metadata.image(), false};
  bool is_allowed = services.settings.allow_admin_apis;
  if (is_allowed) synced = co_await synced_image(services, deadline);

  // The same topic twice, be it once by name and once by id, is refused both times.
  std::map<std::string, size_t> names;
  std::map<Uuid, size_t> ids;
  for (const Asked& asked : request.topics) {
    const metadata::TopicView* topic = asked.name ? synced.image->find_topic(*asked.name) : nullptr;
    if (asked.name) ++names[*asked.name];
    if (topic != nullptr) ++ids[topic->id];
    if (!asked.topic_id.is_zero()) ++ids[asked.topic_id];
  }
  DeleteTopicsResponse response;
  for (const Asked& asked : request.topics) {
    const metadata::TopicView* topic = asked.name ? synced.image->find_topic(*asked.name) : nullptr;
    Uuid id = topic != nullptr ? topic->id : asked.topic_id;
    if (!is_allowed) {
      response.responses.push_back(row_of(asked, ErrorCode::kClusterAuthorizationFailed,
                                          "KAFSCALE_ALLOW_ADMIN_APIS is false on this broker"));
    } else if (asked.name && !asked.topic_id.is_zero()) {
      response.responses.push_back(row_of(asked, ErrorCode::kInvalidRequest, "both a name and an id"));
    } else if (!asked.name && asked.topic_id.is_zero()) {
      response.responses.push_back(row_of(asked, ErrorCode::kInvalidRequest, "neither a name nor an id"));
    } else if ((asked.name && names[*asked.name] > 1) || (!id.is_zero() && ids[id] > 1)) {
      response.responses.push_back(
          row_of(asked, ErrorCode::kInvalidRequest, "the request names this topic more than once"));
    } else {
      response.responses.push_back(co_await delete_one(services, asked, synced, deadline));
    }
  }
  co_return response;
}

}  // namespace varve::broker
