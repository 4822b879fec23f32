#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_creation.h"
#include "broker/handlers/topic_lookup.h"
#include "broker/handlers/topic_rules.h"

namespace varve::broker {
namespace {

using protocol::CreateTopicsRequest;
using protocol::CreateTopicsResponse;
using protocol::ErrorCode;
using Asked = CreateTopicsRequest::CreatableTopic;
using ResultRow = CreateTopicsResponse::CreatableTopicResult;

// Where a config's value in the answer comes from (Kafka's ConfigSource).
constexpr int8_t kSetOnTopic = 1;
constexpr int8_t kSetOnBroker = 4;
constexpr int8_t kDefault = 5;

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
    std::set<BrokerId> brokers(assignment.broker_ids.begin(), assignment.broker_ids.end());
    bool all_live = std::ranges::all_of(brokers, [&](BrokerId id) { return image.brokers.contains(id); });
    if (brokers.empty() || brokers.size() != assignment.broker_ids.size() || brokers.size() != replicas ||
        !all_live) {
      return refuse(
          ErrorCode::kInvalidReplicaAssignment,
          fmt::format("replicas of partition {}: none, one twice, one that is not live, or not as many as of "
                      "the first partition",
                      assignment.partition_index));
    }
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
  for (const TopicConfigRow& config : topic_config_table()) {
    auto& entry = row.configs->emplace_back();
    entry.name = config.name;
    entry.value = topic_config_value(topic.configs, config, services.settings.limits);
    bool is_set = topic.configs.contains(std::string(config.name));
    bool is_default = *entry.value == config.default_text;
    entry.config_source = is_set ? kSetOnTopic : is_default ? kDefault : kSetOnBroker;
  }
}

ResultRow refused_row(const Asked& asked, TopicProblem problem) {
  ResultRow row;
  row.name = asked.name;
  row.error_code = problem.code;
  row.error_message = std::move(problem.message);
  return row;
}

Result<NewTopic, TopicProblem> new_topic_of(const Asked& asked, uint32_t partitions) {
  NewTopic topic;
  topic.name = asked.name;
  topic.partitions = partitions;
  for (const auto& config : asked.configs) {
    if (!config.value) {
      return std::unexpected(
          TopicProblem{ErrorCode::kInvalidConfig, fmt::format("{} has no value", config.name)});
    }
    topic.configs[config.name] = *config.value;
  }
  return topic;
}

runtime::Task<ResultRow> create_one(Services& services, const Asked& asked, bool validate_only,
                                    SyncedImage synced, MonotonicTime deadline) {
  const metadata::MetadataImage& image = *synced.image;
  auto refuse = [&asked](TopicProblem problem) { return refused_row(asked, std::move(problem)); };
  auto shape = shape_of(services, image, asked);
  auto topic = new_topic_of(asked, shape ? shape->partitions : 1);
  if (!topic) co_return refuse(std::move(topic.error()));
  // Kafka looks at the name, at topics that exist and at the configs before it looks at the numbers.
  auto problem = new_topic_problem(services, image, *topic);
  if (problem) co_return refuse(std::move(*problem));
  if (!shape) co_return refuse(std::move(shape.error()));
  if (!synced.is_certain)
    co_return refuse({kCannotTellAdmin, "this broker has lost touch with the metadata log"});
  ResultRow row;
  row.name = asked.name;
  row.error_message = std::nullopt;
  row.num_partitions = static_cast<int32_t>(shape->partitions);
  row.replication_factor = shape->replication_factor;
  fill_configs(services, *topic, row);
  if (validate_only) co_return row;
  auto created = co_await create_topic(services, std::move(*topic), deadline);
  if (!created) co_return refuse(std::move(created.error()));
  row.topic_id = *created;
  services.logger.info("topic created", {{"topic", asked.name}, {"partitions", shape->partitions}});
  co_return row;
}

}  // namespace

HandlerTask<CreateTopicsResponse> handle_create_topics(Services& services, const RequestContext& context,
                                                       CreateTopicsRequest request) {
  CreateTopicsResponse response;
  std::map<std::string_view, size_t> uses;
  for (const Asked& asked : request.topics) ++uses[asked.name];
  bool is_allowed = services.settings.allow_admin_apis;
  MonotonicTime deadline = services.sync_deadline();
  if (request.timeout_ms > 0) {
    deadline = std::min(deadline, context.received + std::chrono::milliseconds(request.timeout_ms));
  }
  SyncedImage synced{services.metadata.image(), false};
  if (is_allowed) synced = co_await synced_image(services, deadline);
  for (const Asked& asked : request.topics) {
    if (!is_allowed) {
      response.topics.push_back(refused_row(asked, {ErrorCode::kClusterAuthorizationFailed,
                                                    "KAFSCALE_ALLOW_ADMIN_APIS is false on this broker"}));
    } else if (uses[asked.name] > 1) {
      response.topics.push_back(
          refused_row(asked, {ErrorCode::kInvalidRequest, "the request names this topic more than once"}));
    } else {
      response.topics.push_back(
          co_await create_one(services, asked, request.validate_only, synced, deadline));
      synced.image = services.metadata.image();
    }
  }
  co_return response;
}

}  // namespace varve::broker
