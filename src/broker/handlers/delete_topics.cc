#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/proposing.h"
#include "broker/handlers/topic_creation.h"
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

// The topic that is asked for, by id or by name; nullptr if the image has none.
const metadata::TopicView* find(const metadata::MetadataImage& image, const Asked& asked) {
  if (!asked.topic_id.is_zero()) return image.find_topic(asked.topic_id);
  return image.find_topic(asked.name.value_or(""));
}

// Why the client may not, if so. A name that it may not describe is not told to be there or not.
std::optional<ResultRow> denied_row(const Services& services, const RequestContext& context,
                                    const Asked& asked, const metadata::TopicView* topic) {
  bool by_id = !asked.topic_id.is_zero();
  if (by_id && topic == nullptr) return std::nullopt;
  if (is_allowed_on_cluster(services, context, Operation::kDelete)) return std::nullopt;
  const std::string& name = by_id ? topic->name : *asked.name;
  bool may_describe = is_allowed(services, context, Operation::kDescribe, ResourceType::kTopic, name);
  if (may_describe && !by_id && topic == nullptr) return std::nullopt;
  if (may_describe && is_allowed(services, context, Operation::kDelete, ResourceType::kTopic, name)) {
    return std::nullopt;
  }
  ResultRow row = row_of(asked, ErrorCode::kTopicAuthorizationFailed, "the client may not delete it");
  if (by_id && may_describe) row.name = name;
  return row;
}

ResultRow absent_row(const Asked& asked, bool is_certain) {
  if (!is_certain) return row_of(asked, kCannotTellAdmin, "this broker has lost touch with the metadata log");
  bool by_id = !asked.topic_id.is_zero();
  return row_of(asked, by_id ? ErrorCode::kUnknownTopicId : ErrorCode::kUnknownTopicOrPartition,
                "there is no such topic");
}

// Each topic with how often the request names it, be it by name or by id.
struct Uses {
  Uses(const metadata::MetadataImage& image, const DeleteTopicsRequest& request) {
    for (const Asked& asked : request.topics) {
      const metadata::TopicView* topic = asked.name ? image.find_topic(*asked.name) : nullptr;
      if (asked.name) ++names[*asked.name];
      if (topic != nullptr) ++ids[topic->id];
      if (topic != nullptr) named.insert(topic->id);
      if (!asked.topic_id.is_zero()) ++ids[asked.topic_id];
      if (!asked.topic_id.is_zero()) identified.insert(asked.topic_id);
    }
  }
  // `id`: of the topic that `asked` names; zero: there is none.
  bool is_repeated(const Asked& asked, const Uuid& id) const {
    return (asked.name && names.at(*asked.name) > 1) || (!id.is_zero() && ids.at(id) > 1);
  }
  // Whether a row has been written for what this line repeats; it is told once, as in Kafka.
  bool was_told(const Asked& asked, const Uuid& id) {
    return id.is_zero() ? !told_names.insert(*asked.name).second : !told_ids.insert(id).second;
  }

  ResultRow repeated_row(const Asked& asked, const metadata::TopicView* topic) const {
    ResultRow row = row_of(asked, ErrorCode::kInvalidRequest, "the request names this topic more than once");
    // Named in both ways it is told in both.
    if (topic != nullptr && named.contains(topic->id) && identified.contains(topic->id)) {
      row.name = topic->name;
      row.topic_id = topic->id;
    }
    return row;
  }

  std::map<std::string, size_t> names;
  std::map<Uuid, size_t> ids;
  std::set<Uuid> named;
  std::set<Uuid> identified;
  std::set<std::string> told_names;
  std::set<Uuid> told_ids;
};

// What is wrong with one line of the request, if anything.
std::optional<ResultRow> refused_row(const Asked& asked) {
  if (asked.name && !asked.topic_id.is_zero()) {
    return row_of(asked, ErrorCode::kInvalidRequest, "both a name and an id");
  }
  if (!asked.name && asked.topic_id.is_zero()) {
    return row_of(asked, ErrorCode::kInvalidRequest, "neither a name nor an id");
  }
  return std::nullopt;
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
  MonotonicTime deadline = deadline_of(context, request.timeout_ms);
  SyncedImage synced{services.metadata.image(), false};
  bool is_allowed = services.settings.allow_admin_apis;
  if (is_allowed) synced = co_await synced_image(services, deadline);

  DeleteTopicsResponse response;
  Uses uses(*synced.image, request);
  std::vector<metadata::Command> commands;
  std::vector<size_t> places;
  std::vector<const Asked*> askers;
  for (const Asked& asked : request.topics) {
    const metadata::TopicView* topic = find(*synced.image, asked);
    Uuid id = topic != nullptr ? topic->id : asked.topic_id;
    if (!is_allowed) {
      response.responses.push_back(
          row_of(asked, ErrorCode::kClusterAuthorizationFailed, std::string(kAdminApisOff)));
    } else if (auto refused = refused_row(asked)) {
      response.responses.push_back(std::move(*refused));
    } else if (uses.is_repeated(asked, id)) {
      if (uses.was_told(asked, id)) continue;
      response.responses.push_back(uses.repeated_row(asked, topic));
    } else if (request.timeout_ms <= 0) {
      // Without any time nothing is looked at nor done, as in Kafka.
      response.responses.push_back(row_of(asked, ErrorCode::kRequestTimedOut, ""));
    } else if (auto denied = denied_row(services, context, asked, topic)) {
      response.responses.push_back(std::move(*denied));
    } else if (topic == nullptr) {
      response.responses.push_back(absent_row(asked, synced.is_certain));
    } else {
      ResultRow row = row_of(asked, ErrorCode::kNone, "");
      row.name = topic->name;
      row.topic_id = topic->id;
      commands.emplace_back(metadata::DeleteTopic{.id = topic->id});
      places.push_back(response.responses.size());
      askers.push_back(&asked);
      response.responses.push_back(std::move(row));
    }
  }
  if (commands.empty()) co_return response;
  auto outcomes = co_await propose_all(services.runtime, services.metadata, std::move(commands), deadline);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    ResultRow& row = response.responses[places[i]];
    if (!outcomes[i]) {
      row = row_of(*askers[i], error_of(outcomes[i].error().code), outcomes[i].error().message);
    } else if (outcomes[i]->verdict == metadata::CommandVerdict::kUnknownTopic) {
      row = absent_row(*askers[i], true);
    } else {
      services.logger.info("topic deleted", {{"topic", *row.name}});
    }
  }
  co_return response;
}

}  // namespace varve::broker
