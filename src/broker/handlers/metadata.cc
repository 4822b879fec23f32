#include <algorithm>
#include <map>
#include <set>

#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_creation.h"
#include "broker/handlers/topic_lookup.h"
#include "broker/handlers/topic_rules.h"

namespace varve::broker {
namespace {

using metadata::MetadataImage;
using metadata::TopicView;
using protocol::ErrorCode;
using protocol::MetadataRequest;
using protocol::MetadataResponse;
using Wanted = MetadataRequest::MetadataRequestTopic;
using TopicRow = MetadataResponse::MetadataResponseTopic;

constexpr int16_t kFirstVersionById = 12;

bool is_by_id(const Wanted& wanted) { return !wanted.topic_id.is_zero(); }

const TopicView* find(const MetadataImage& image, const Wanted& wanted) {
  if (is_by_id(wanted)) return image.find_topic(wanted.topic_id);
  return wanted.name ? image.find_topic(*wanted.name) : nullptr;
}

// Version 0 asks for all topics with an empty list, later ones with null.
bool asks_for_all(const MetadataRequest& request, int16_t version) {
  return !request.topics || (version == 0 && request.topics->empty());
}

TopicRow topic_row(const MetadataImage& image, const TopicView& topic, std::string_view rack) {
  TopicRow row;
  row.name = topic.name;
  row.topic_id = topic.id;
  row.is_internal = is_internal_topic(topic.name);
  row.partitions.reserve(topic.partitions.size());
  for (size_t i = 0; i < topic.partitions.size(); ++i) {
    auto& partition = row.partitions.emplace_back();
    partition.partition_index = PartitionIndex(static_cast<int32_t>(i));
    fill_leader(image, topic.partitions[i], rack, partition);
  }
  return row;
}

TopicRow error_row(const Wanted& wanted, ErrorCode code) {
  TopicRow row;
  row.error_code = code;
  // Who asks by an id is told no name that he gave with it.
  row.name = is_by_id(wanted) ? std::nullopt : wanted.name;
  row.topic_id = wanted.topic_id;
  if (wanted.name) row.is_internal = is_internal_topic(*wanted.name);
  return row;
}

// The error of a topic that is not in the image.
ErrorCode absence_error(const Wanted& wanted, bool is_certain) {
  if (!is_by_id(wanted) && topic_name_problem(wanted.name.value_or("")))
    return ErrorCode::kInvalidTopicException;
  if (!is_certain) return kCannotTellTopic;
  return is_by_id(wanted) ? ErrorCode::kUnknownTopicId : ErrorCode::kUnknownTopicOrPartition;
}

bool may_describe(const Services& services, const RequestContext& context, std::string_view topic) {
  return is_allowed(services, context, Operation::kDescribe, ResourceType::kTopic, topic);
}

// The row of a topic that the client may not describe: it says nothing of whether the topic is there, except of one
// that the client knows by its id.
TopicRow denied_row(const Wanted& wanted, const TopicView* topic) {
  TopicRow row;
  row.error_code = ErrorCode::kTopicAuthorizationFailed;
  if (is_by_id(wanted)) {
    row.name = std::nullopt;
    row.topic_id = topic->id;
  } else {
    row.name = wanted.name;
  }
  return row;
}

// Makes the topics that are asked for by name and are not there; the errors of those that could not be.
runtime::Task<std::map<std::string, ErrorCode>> create_missing(Services& services,
                                                               const RequestContext& context,
                                                               const MetadataRequest& request,
                                                               std::shared_ptr<const MetadataImage> image) {
  std::map<std::string, ErrorCode> errors;
  NewTopicChecks checks(services.settings.limits, image);
  std::vector<NewTopic> topics;
  std::set<std::string_view> seen;
  bool may_create_all = is_allowed_on_cluster(services, context, Operation::kCreate);
  for (const Wanted& wanted : *request.topics) {
    if (is_by_id(wanted) || !wanted.name || find(*image, wanted) != nullptr) continue;
    if (!may_describe(services, context, *wanted.name)) continue;
    if (!may_create_all &&
        !is_allowed(services, context, Operation::kCreate, ResourceType::kTopic, *wanted.name)) {
      errors[*wanted.name] = ErrorCode::kTopicAuthorizationFailed;
      continue;
    }
    if (is_internal_topic(*wanted.name) || !seen.insert(*wanted.name).second) continue;
    NewTopic topic;
    topic.name = *wanted.name;
    topic.partitions = static_cast<uint32_t>(services.settings.auto_create_partitions);
    if (auto problem = checks.problem_of(topic)) {
      errors[*wanted.name] = problem->code;
      continue;
    }
    checks.will_make(topic);
    topics.push_back(std::move(topic));
  }
  if (topics.empty()) co_return errors;
  std::vector<std::string> names;
  for (const NewTopic& topic : topics) names.push_back(topic.name);
  auto created = co_await create_topics(services, std::move(topics), context.deadline);
  for (size_t i = 0; i < names.size(); ++i) {
    if (created[i] || created[i].error().code == ErrorCode::kTopicAlreadyExists) continue;
    // The client asks again after this code, and the topic is there by then or made by that request.
    bool is_open = created[i].error().code == ErrorCode::kRequestTimedOut ||
                   created[i].error().code == ErrorCode::kNotController;
    errors[names[i]] = is_open ? kCannotTellTopic : created[i].error().code;
  }
  co_return errors;
}

MetadataResponse invalid_request_response(const MetadataRequest& request) {
  MetadataResponse response;
  response.cluster_id = std::nullopt;
  response.controller_id = BrokerId(-1);
  for (const Wanted& wanted : *request.topics) {
    TopicRow row = error_row(wanted, ErrorCode::kInvalidRequest);
    row.name = wanted.name.value_or("");
    response.topics.push_back(std::move(row));
  }
  return response;
}

void fill_brokers(const MetadataImage& image, const std::string& listener, MetadataResponse& response) {
  for (const auto& [id, broker] : image.brokers) {
    const metadata::Endpoint* endpoint = endpoint_of(broker, listener);
    if (endpoint == nullptr) continue;
    auto& row = response.brokers.emplace_back();
    row.node_id = id;
    row.host = endpoint->host;
    row.port = endpoint->port;
    if (!broker.rack.empty()) row.rack = broker.rack;
  }
  response.cluster_id = image.log_id.to_string();
  response.controller_id = controller_of(image);
}

}  // namespace

HandlerTask<MetadataResponse> handle_metadata(Services& services, const RequestContext& context,
                                              MetadataRequest request) {
  bool all = asks_for_all(request, context.version);
  // Versions 10 and 11 have the field already, and Kafka takes nothing by it.
  if (!all && context.version < kFirstVersionById &&
      std::ranges::any_of(
          *request.topics, [](const Wanted& wanted) { return is_by_id(wanted) || !wanted.name; })) {
    co_return invalid_request_response(request);
  }
  SyncedImage synced{services.metadata.image(), false};
  // A list of everything says of whatever it leaves out that it is not there.
  if (all || !std::ranges::all_of(*request.topics, [&](const Wanted& wanted) {
        return find(*synced.image, wanted) != nullptr;
      })) {
    synced = co_await synced_image(services, context.deadline);
  }
  std::map<std::string, ErrorCode> errors;
  bool may_create = request.allow_auto_topic_creation || context.version < 4;
  if (!all && may_create && services.settings.auto_create_topics && synced.is_certain) {
    errors = co_await create_missing(services, context, request, synced.image);
    synced.image = services.metadata.image();
  }

  MetadataResponse response;
  const MetadataImage& image = *synced.image;
  fill_brokers(image, context.listener, response);
  if (request.include_cluster_authorized_operations && context.version >= 8) {
    response.cluster_authorized_operations = cluster_operations(services, context);
  }
  std::string rack = rack_of(context, image);
  auto described = [&](const TopicView& topic) {
    TopicRow row = topic_row(image, topic, rack);
    if (request.include_topic_authorized_operations) {
      row.topic_authorized_operations =
          authorized_operations(services, context, ResourceType::kTopic, topic.name);
    }
    return row;
  };
  if (all) {
    for (const auto& [name, topic] : image.topics_by_name) {
      if (may_describe(services, context, name)) response.topics.push_back(described(*topic));
    }
    co_return response;
  }
  std::set<std::pair<std::string, Uuid>> told;
  for (const Wanted& wanted : *request.topics) {
    const TopicView* topic = find(image, wanted);
    // A topic that is asked for twice is told once.
    if (!told.emplace(topic != nullptr ? topic->name : wanted.name.value_or(""),
                      topic != nullptr ? topic->id : wanted.topic_id)
             .second)
      continue;
    auto error = wanted.name ? errors.find(*wanted.name) : errors.end();
    bool is_known_name = topic != nullptr || !is_by_id(wanted);
    if (is_known_name &&
        !may_describe(services, context, topic != nullptr ? topic->name : wanted.name.value_or(""))) {
      response.topics.push_back(denied_row(wanted, topic));
    } else if (topic != nullptr) {
      response.topics.push_back(described(*topic));
    } else if (error != errors.end()) {
      response.topics.push_back(error_row(wanted, error->second));
    } else {
      response.topics.push_back(error_row(wanted, absence_error(wanted, synced.is_certain)));
    }
  }
  co_return response;
}

}  // namespace varve::broker
