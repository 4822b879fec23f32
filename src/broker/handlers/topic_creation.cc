#include "broker/handlers/topic_creation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "broker/handlers/errors.h"
#include "broker/handlers/proposing.h"
#include "broker/handlers/topic_rules.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;

// From so many on an index of all names is cheaper than looking through them.
constexpr size_t kScansMax = 4;

Result<Uuid, TopicProblem> created(const NewTopic& topic, const Uuid& id, const ProposedOutcome& outcome) {
  auto refuse = [](ErrorCode code, std::string message) {
    return std::unexpected(TopicProblem{code, std::move(message)});
  };
  if (!outcome) return refuse(error_of(outcome.error().code), outcome.error().message);
  switch (outcome->verdict) {
    case metadata::CommandVerdict::kDone:
      return id;
    case metadata::CommandVerdict::kTopicExists:
      return refuse(ErrorCode::kTopicAlreadyExists, fmt::format("topic '{}' exists", topic.name));
    case metadata::CommandVerdict::kOverLimit:
      return refuse(ErrorCode::kPolicyViolation, "the cluster has no room for so many partitions");
    default:
      return refuse(ErrorCode::kUnknownServerError, "the metadata log refused the topic");
  }
}

}  // namespace

std::optional<TopicProblem> replicas_problem(const metadata::MetadataImage& image, PartitionIndex partition,
                                             const std::vector<BrokerId>& replicas, size_t count) {
  std::set<BrokerId> brokers(replicas.begin(), replicas.end());
  bool all_live = std::ranges::all_of(brokers, [&](BrokerId id) { return image.brokers.contains(id); });
  if (!brokers.empty() && brokers.size() == replicas.size() && brokers.size() == count && all_live) {
    return std::nullopt;
  }
  return TopicProblem{
      ErrorCode::kInvalidReplicaAssignment,
      fmt::format("replicas of partition {}: none, one twice, one that is not live, or not as many "
                  "as of the other partitions",
                  partition)};
}

void warn_of_configs_without_effect(const Services& services, const std::string& topic,
                                    const TopicConfigs& configs) {
  std::vector<std::string> without_effect = topic_configs_without_effect(configs);
  if (without_effect.empty()) return;
  services.logger.warn("topic has settings without effect so far (docs/configuration.md)",
                       {{"topic", topic}, {"settings", fmt::format("{}", fmt::join(without_effect, " "))}});
}

std::optional<TopicProblem> NewTopicChecks::problem_of(NewTopic& topic) {
  if (auto problem = topic_name_problem(topic.name)) {
    return TopicProblem{ErrorCode::kInvalidTopicException, std::move(*problem)};
  }
  std::string other = colliding_with(topic.name);
  if (!other.empty()) {
    return TopicProblem{
        ErrorCode::kInvalidTopicException,
        fmt::format("'{}' cannot be told from the topic '{}' where '.' and '_' are one", topic.name, other)};
  }
  if (image_->find_topic(topic.name) != nullptr) {
    return TopicProblem{ErrorCode::kTopicAlreadyExists, fmt::format("topic '{}' exists", topic.name)};
  }
  if (topic.partitions > limits_.partitions_per_topic_max) {
    return TopicProblem{ErrorCode::kPolicyViolation,
                        fmt::format("{} partitions; at most {} are allowed", topic.partitions,
                                    limits_.partitions_per_topic_max)};
  }
  if (image_->topics_by_name.size() + made_ >= limits_.topics_max) {
    return TopicProblem{ErrorCode::kPolicyViolation,
                        fmt::format("the cluster may have {} topics", limits_.topics_max)};
  }
  auto configs = read_topic_configs(topic.configs);
  if (!configs) return TopicProblem{ErrorCode::kInvalidConfig, std::move(configs.error())};
  topic.configs = std::move(*configs);
  return std::nullopt;
}

void NewTopicChecks::will_make(const NewTopic& topic) {
  ++made_;
  if (has_collision_characters(topic.name)) by_unified_name_.emplace(unified_name(topic.name), topic.name);
}

std::string NewTopicChecks::colliding_with(const std::string& name) {
  if (!has_collision_characters(name)) return {};
  std::string unified = unified_name(name);
  if (!is_indexed_ && ++scans_ > kScansMax) {
    is_indexed_ = true;
    for (const auto& [existing, topic] : image_->topics_by_name) {
      if (has_collision_characters(existing)) by_unified_name_.emplace(unified_name(existing), existing);
    }
  }
  auto found = by_unified_name_.find(unified);
  if (found != by_unified_name_.end() && found->second != name) return found->second;
  if (is_indexed_) return {};
  for (const auto& [existing, topic] : image_->topics_by_name) {
    if (existing.size() == name.size() && existing != name && unified_name(existing) == unified)
      return existing;
  }
  return {};
}

runtime::Task<std::vector<Result<Uuid, TopicProblem>>> create_topics(Services& services,
                                                                     std::vector<NewTopic> topics,
                                                                     MonotonicTime deadline) {
  Random random(services.runtime.random_seed());
  std::vector<metadata::Command> commands;
  std::vector<Uuid> ids;
  for (const NewTopic& topic : topics) {
    metadata::CreateTopic command;
    command.id = random.uuid();
    command.name = topic.name;
    command.partitions = topic.partitions;
    command.configs = topic.configs;
    ids.push_back(command.id);
    commands.emplace_back(std::move(command));
  }
  auto outcomes = co_await propose_all(services.runtime, services.metadata, std::move(commands), deadline);
  std::vector<Result<Uuid, TopicProblem>> results;
  for (size_t i = 0; i < topics.size(); ++i) {
    results.push_back(created(topics[i], ids[i], outcomes[i]));
    if (!results.back()) continue;
    services.logger.info("topic created", {{"topic", topics[i].name}, {"partitions", topics[i].partitions}});
    warn_of_configs_without_effect(services, topics[i].name, topics[i].configs);
  }
  co_return results;
}

}  // namespace varve::broker
