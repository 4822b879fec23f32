#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "broker/handlers/authorization.h"
#include "broker/handlers/config_resources.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_creation.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using protocol::CreateTopicsRequest;
using protocol::CreateTopicsResponse;
using protocol::ErrorCode;
using Asked = CreateTopicsRequest::CreatableTopic;
using ResultRow = CreateTopicsResponse::CreatableTopicResult;

struct Shape {
  uint32_t partitions = 0;
  int16_t replication_factor = 0;
};

// Records are as durable as the object store whatever the replication factor says, but a client that asks for more
// replicas than there are brokers is told so, as in Kafka.
Result<Shape, TopicProblem> assigned_shape(const metadata::MetadataImage& image, const Asked& asked) {
  auto refuse = [](ErrorCode code, std::string message) {
    return std::unexpected(TopicProblem{code, std::move(message)});
  };
  if (asked.num_partitions != -1 || asked.replication_factor != -1) {
    return refuse(ErrorCode::kInvalidRequest,
                  "with an assignment of replicas, the numbers of partitions and replicas must be -1");
  }
  std::set<PartitionIndex> indexes;
  size_t replicas = asked.assignments.front().broker_ids.size();
  for (const auto& assignment : asked.assignments) {
    if (!indexes.insert(assignment.partition_index).second) {
      return refuse(ErrorCode::kInvalidReplicaAssignment,
                    fmt::format("partition {} is assigned twice", assignment.partition_index));
    }
    auto problem = replicas_problem(image, assignment.partition_index, assignment.broker_ids, replicas);
    if (problem) return std::unexpected(std::move(*problem));
  }
  if (indexes.begin()->value() != 0 ||
      indexes.rbegin()->value() != static_cast<int32_t>(indexes.size()) - 1) {
    return refuse(ErrorCode::kInvalidReplicaAssignment, "partitions must be numbered from 0 without gaps");
  }
  return Shape{static_cast<uint32_t>(indexes.size()), static_cast<int16_t>(replicas)};
}

Result<Shape, TopicProblem> shape_of(const Services& services, const metadata::MetadataImage& image,
                                     const Asked& asked) {
  auto refuse = [](ErrorCode code, std::string message) {
    return std::unexpected(TopicProblem{code, std::move(message)});
  };
  if (!asked.assignments.empty()) return assigned_shape(image, asked);
  if (asked.replication_factor == 0 || asked.replication_factor < -1) {
    return refuse(ErrorCode::kInvalidReplicationFactor, "the replication factor must be above 0, or -1");
  }
  if (asked.num_partitions == 0 || asked.num_partitions < -1) {
    return refuse(ErrorCode::kInvalidPartitions, "the number of partitions must be above 0, or -1");
  }
  Shape shape;
  shape.partitions = static_cast<uint32_t>(
      asked.num_partitions == -1 ? services.settings.auto_create_partitions : asked.num_partitions);
  shape.replication_factor = asked.replication_factor == -1 ? int16_t{1} : asked.replication_factor;
  if (static_cast<size_t>(shape.replication_factor) > image.brokers.size()) {
    return refuse(ErrorCode::kInvalidReplicationFactor,
                  fmt::format("replication factor {}, but {} brokers are live", shape.replication_factor,
                              image.brokers.size()));
  }
  return shape;
}

void fill_configs(const Services& services, const NewTopic& topic, ResultRow& row) {
  for (DescribedConfig& config : topic_configs_of(topic.configs, services.settings.limits)) {
    auto& entry = row.configs->emplace_back();
    entry.config_source = static_cast<int8_t>(config.source());
    entry.name = std::move(config.name);
    entry.value = std::move(config.value);
  }
}

// For who may create the topic, but not look at configs.
void hide_configs(ResultRow& row) {
  row.topic_config_error_code = static_cast<int16_t>(ErrorCode::kTopicAuthorizationFailed);
  row.num_partitions = -1;
  row.replication_factor = -1;
  row.configs = std::nullopt;
}

ResultRow refused_row(const Asked& asked, TopicProblem problem) {
  ResultRow row;
  row.name = asked.name;
  row.error_code = problem.code;
  row.error_message = std::move(problem.message);
  return row;
}

// With those of its configs that have a value.
NewTopic new_topic_of(const Asked& asked, uint32_t partitions) {
  NewTopic topic;
  topic.name = asked.name;
  topic.partitions = partitions;
  for (const auto& config : asked.configs) {
    if (config.value) topic.configs[config.name] = *config.value;
  }
  return topic;
}

std::optional<TopicProblem> missing_value(const Asked& asked) {
  auto missing = std::ranges::find_if(asked.configs, [](const auto& config) { return !config.value; });
  if (missing == asked.configs.end()) return std::nullopt;
  return TopicProblem{ErrorCode::kInvalidConfig, fmt::format("{} has no value", missing->name)};
}

// What is known before the log is asked: why not, or the topic and the row of its success. Without any time nothing
// is looked at nor done, as in Kafka.
struct Checked {
  ResultRow row;
  std::optional<NewTopic> topic;
};

Checked check(const Services& services, const RequestContext& context, const Asked& asked,
              const SyncedImage& synced, bool has_time, NewTopicChecks& checks) {
  auto refuse = [&asked](TopicProblem problem) {
    return Checked{refused_row(asked, std::move(problem)), std::nullopt};
  };
  if (!is_allowed_on_cluster(services, context, Operation::kCreate) &&
      !is_allowed(services, context, Operation::kCreate, ResourceType::kTopic, asked.name)) {
    return refuse({ErrorCode::kTopicAuthorizationFailed, "the client may not create it"});
  }
  if (!has_time) {
    Checked late{refused_row(asked, {ErrorCode::kRequestTimedOut, ""}), std::nullopt};
    late.row.error_message = std::nullopt;
    return late;
  }
  // Topics that exist and brokers that live are refusals too, and need a state that is not too old.
  if (!synced.is_certain)
    return refuse({kCannotTellAdmin, "this broker has lost touch with the metadata log"});
  auto shape = shape_of(services, *synced.image, asked);
  NewTopic topic = new_topic_of(asked, shape ? shape->partitions : 1);
  // Kafka looks at the name, at topics that exist and at the configs before it looks at the numbers.
  auto problem = checks.problem_of(topic);
  if (!problem) problem = missing_value(asked);
  if (problem) return refuse(std::move(*problem));
  if (!shape) return refuse(std::move(shape.error()));
  checks.will_make(topic);
  Checked checked;
  checked.row.name = asked.name;
  checked.row.error_message = std::nullopt;
  checked.row.num_partitions = static_cast<int32_t>(shape->partitions);
  checked.row.replication_factor = shape->replication_factor;
  if (is_allowed(services, context, Operation::kDescribeConfigs, ResourceType::kTopic, asked.name)) {
    fill_configs(services, topic, checked.row);
  } else {
    hide_configs(checked.row);
  }
  checked.topic = std::move(topic);
  return checked;
}

}  // namespace

HandlerTask<CreateTopicsResponse> handle_create_topics(Services& services, const RequestContext& context,
                                                       CreateTopicsRequest request) {
  CreateTopicsResponse response;
  std::map<std::string_view, size_t> uses;
  for (const Asked& asked : request.topics) ++uses[asked.name];
  std::set<std::string_view> told;
  bool is_allowed = services.settings.allow_admin_apis;
  MonotonicTime deadline = deadline_of(context, request.timeout_ms);
  SyncedImage synced{services.metadata.image(), false};
  if (is_allowed) synced = co_await synced_image(services, deadline);
  NewTopicChecks checks(services.settings.limits, synced.image);
  std::vector<NewTopic> topics;
  std::vector<size_t> places;
  std::vector<const Asked*> askers;
  for (const Asked& asked : request.topics) {
    if (!is_allowed) {
      response.topics.push_back(
          refused_row(asked, {ErrorCode::kClusterAuthorizationFailed, std::string(kAdminApisOff)}));
    } else if (uses[asked.name] > 1) {
      // Told once, as in Kafka.
      if (!told.insert(asked.name).second) continue;
      response.topics.push_back(
          refused_row(asked, {ErrorCode::kInvalidRequest, "the request names this topic more than once"}));
    } else {
      Checked checked = check(services, context, asked, synced, request.timeout_ms > 0, checks);
      if (checked.topic) {
        topics.push_back(std::move(*checked.topic));
        places.push_back(response.topics.size());
        askers.push_back(&asked);
      }
      response.topics.push_back(std::move(checked.row));
    }
  }
  if (request.validate_only || topics.empty()) co_return response;
  auto created = co_await create_topics(services, std::move(topics), deadline);
  for (size_t i = 0; i < created.size(); ++i) {
    ResultRow& row = response.topics[places[i]];
    if (created[i]) {
      row.topic_id = *created[i];
    } else {
      row = refused_row(*askers[i], std::move(created[i].error()));
    }
  }
  co_return response;
}

}  // namespace varve::broker
