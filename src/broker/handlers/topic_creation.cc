#include "broker/handlers/topic_creation.h"

#include <fmt/format.h>

#include "broker/handlers/errors.h"
#include "broker/handlers/proposing.h"
#include "broker/handlers/topic_rules.h"

namespace varve::broker {

using protocol::ErrorCode;

std::optional<TopicProblem> new_topic_problem(const Services& services, const metadata::MetadataImage& image,
                                              const NewTopic& topic) {
  if (auto problem = topic_name_problem(topic.name)) {
    return TopicProblem{ErrorCode::kInvalidTopicException, std::move(*problem)};
  }
  if (const metadata::TopicView* other = colliding_topic(image, topic.name)) {
    return TopicProblem{ErrorCode::kInvalidTopicException,
                        fmt::format("'{}' cannot be told from the topic '{}' where '.' and '_' are one",
                                    topic.name, other->name)};
  }
  if (image.find_topic(topic.name) != nullptr) {
    return TopicProblem{ErrorCode::kTopicAlreadyExists, fmt::format("topic '{}' exists", topic.name)};
  }
  const Limits& limits = services.settings.limits;
  if (topic.partitions > limits.partitions_per_topic_max) {
    return TopicProblem{ErrorCode::kInvalidPartitions,
                        fmt::format("{} partitions; at most {} are allowed", topic.partitions,
                                    limits.partitions_per_topic_max)};
  }
  if (image.topics_by_name.size() >= limits.topics_max) {
    return TopicProblem{
        ErrorCode::kPolicyViolation,
        fmt::format("the cluster has {} topics, which is the limit", image.topics_by_name.size())};
  }
  for (const auto& [name, value] : topic.configs) {
    if (auto problem = topic_config_problem(name, value)) {
      return TopicProblem{ErrorCode::kInvalidConfig, std::move(*problem)};
    }
  }
  return std::nullopt;
}

runtime::Task<Result<Uuid, TopicProblem>> create_topic(Services& services, NewTopic topic,
                                                       MonotonicTime deadline) {
  using Created = Result<Uuid, TopicProblem>;
  metadata::CreateTopic command;
  command.id = Random(services.runtime.random_seed()).uuid();
  command.name = topic.name;
  command.partitions = topic.partitions;
  command.configs = std::move(topic.configs);
  Uuid id = command.id;
  auto result = co_await propose_until(services.runtime, services.metadata, std::move(command), deadline);
  if (!result) {
    co_return Created(std::unexpected(TopicProblem{error_of(result.error().code), result.error().message}));
  }
  switch (result->verdict) {
    case metadata::CommandVerdict::kDone:
      co_return Created(id);
    case metadata::CommandVerdict::kTopicExists:
      co_return Created(std::unexpected(
          TopicProblem{ErrorCode::kTopicAlreadyExists, fmt::format("topic '{}' exists", topic.name)}));
    case metadata::CommandVerdict::kOverLimit:
      co_return Created(std::unexpected(
          TopicProblem{ErrorCode::kPolicyViolation, "the cluster has no room for so many partitions"}));
    default:
      co_return Created(std::unexpected(
          TopicProblem{ErrorCode::kUnknownServerError, "the metadata log refused the topic"}));
  }
}

}  // namespace varve::broker
