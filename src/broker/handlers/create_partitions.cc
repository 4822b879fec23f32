#include <fmt/format.h>

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

using protocol::CreatePartitionsRequest;
using protocol::CreatePartitionsResponse;
using protocol::ErrorCode;
using Asked = CreatePartitionsRequest::CreatePartitionsTopic;
using ResultRow = CreatePartitionsResponse::CreatePartitionsTopicResult;

ResultRow row_of(const Asked& asked, std::optional<TopicProblem> problem = std::nullopt) {
  ResultRow row;
  row.name = asked.name;
  if (!problem) return row;
  row.error_code = problem->code;
  if (!problem->message.empty()) row.error_message = std::move(problem->message);
  return row;
}

// Each partition to be added must have brokers that live, as many as the others.
std::optional<TopicProblem> assignment_problem(const metadata::MetadataImage& image, const Asked& asked,
                                               size_t present) {
  if (!asked.assignments) return std::nullopt;
  size_t added = static_cast<size_t>(asked.count) - present;
  if (asked.assignments->size() != added) {
    return TopicProblem{
        ErrorCode::kInvalidReplicaAssignment,
        fmt::format("{} partitions are to be added, and {} assigned", added, asked.assignments->size())};
  }
  size_t replicas = asked.assignments->front().broker_ids.size();
  for (const auto& assignment : *asked.assignments) {
    auto problem = replicas_problem(image, PartitionIndex(static_cast<int32_t>(present++)),
                                    assignment.broker_ids, replicas);
    if (problem) return problem;
  }
  return std::nullopt;
}

std::optional<TopicProblem> count_problem(const Limits& limits, const metadata::TopicView& topic,
                                          const Asked& asked) {
  size_t present = topic.partitions.size();
  if (asked.count < 0 || static_cast<size_t>(asked.count) <= present) {
    return TopicProblem{ErrorCode::kInvalidPartitions,
                        fmt::format("topic '{}' has {} partitions, and {} would not be more", topic.name,
                                    present, asked.count)};
  }
  if (static_cast<size_t>(asked.count) > limits.partitions_per_topic_max) {
    return TopicProblem{
        ErrorCode::kPolicyViolation,
        fmt::format("{} partitions; at most {} are allowed", asked.count, limits.partitions_per_topic_max)};
  }
  return std::nullopt;
}

// Where Kafka's code says all, it has no message, and neither has this.
std::optional<TopicProblem> problem_of(const Services& services, const RequestContext& context,
                                       const SyncedImage& synced, const Asked& asked) {
  if (!is_allowed(services, context, Operation::kAlter, ResourceType::kTopic, asked.name)) {
    return TopicProblem{ErrorCode::kTopicAuthorizationFailed, ""};
  }
  // How many partitions there are is only known after a sync.
  if (!synced.is_certain) return TopicProblem{kCannotTellAdmin, ""};
  const metadata::TopicView* topic = synced.image->find_topic(asked.name);
  if (topic == nullptr) return TopicProblem{ErrorCode::kUnknownTopicOrPartition, ""};
  if (auto problem = count_problem(services.settings.limits, *topic, asked)) return problem;
  return assignment_problem(*synced.image, asked, topic->partitions.size());
}

std::optional<TopicProblem> problem_of(const ProposedOutcome& outcome) {
  if (!outcome) return TopicProblem{error_of(outcome.error().code), outcome.error().message};
  switch (outcome->verdict) {
    case metadata::CommandVerdict::kDone:
      return std::nullopt;
    case metadata::CommandVerdict::kUnknownTopic:
      return TopicProblem{ErrorCode::kUnknownTopicOrPartition, "the topic was deleted meanwhile"};
    case metadata::CommandVerdict::kOverLimit:
      return TopicProblem{ErrorCode::kPolicyViolation, "the cluster has no room for so many partitions"};
    default:
      return TopicProblem{ErrorCode::kInvalidPartitions,
                          "somebody else has given the topic as many partitions meanwhile"};
  }
}

// What is asked of the log, and whose row answers it.
struct Proposals {
  std::vector<metadata::Command> commands;
  std::vector<const Asked*> askers;
  std::vector<size_t> places;
};

}  // namespace

HandlerTask<CreatePartitionsResponse> handle_create_partitions(Services& services,
                                                               const RequestContext& context,
                                                               CreatePartitionsRequest request) {
  CreatePartitionsResponse response;
  std::map<std::string_view, size_t> uses;
  for (const Asked& asked : request.topics) ++uses[asked.name];
  std::set<std::string_view> told;
  MonotonicTime deadline = deadline_of(context, request.timeout_ms);
  SyncedImage synced{services.metadata.image(), false};
  bool is_admin_allowed = services.settings.allow_admin_apis;
  if (is_admin_allowed) synced = co_await synced_image(services, deadline);
  Proposals proposals;
  for (const Asked& asked : request.topics) {
    bool is_repeated = uses[asked.name] > 1;
    // Told once, as in Kafka.
    if (is_repeated && !told.insert(asked.name).second) continue;
    std::optional<TopicProblem> problem;
    if (!is_admin_allowed) {
      problem = TopicProblem{ErrorCode::kClusterAuthorizationFailed, std::string(kAdminApisOff)};
    } else if (is_repeated) {
      problem = TopicProblem{ErrorCode::kInvalidRequest, "the request names this topic more than once"};
    } else {
      problem = problem_of(services, context, synced, asked);
    }
    if (!problem && !request.validate_only) {
      proposals.commands.emplace_back(metadata::AddPartitions{
          .topic = synced.image->find_topic(asked.name)->id, .total = static_cast<uint32_t>(asked.count)});
      proposals.askers.push_back(&asked);
      proposals.places.push_back(response.results.size());
    }
    response.results.push_back(row_of(asked, std::move(problem)));
  }
  if (proposals.commands.empty()) co_return response;
  auto outcomes =
      co_await propose_all(services.runtime, services.metadata, std::move(proposals.commands), deadline);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Asked& asked = *proposals.askers[i];
    auto problem = problem_of(outcomes[i]);
    if (!problem) {
      services.logger.info("topic widened", {{"topic", asked.name}, {"partitions", asked.count}});
    }
    response.results[proposals.places[i]] = row_of(asked, std::move(problem));
  }
  co_return response;
}

}  // namespace varve::broker
