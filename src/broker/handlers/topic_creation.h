// Making topics: what CreateTopics and Metadata's auto-creation share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/handlers/services.h"
#include "broker/settings/topic_configs.h"
#include "protocol/messages/error_code.h"

namespace varve::broker {

struct NewTopic {
  std::string name;
  uint32_t partitions = 0;
  TopicConfigs configs;
};

struct TopicProblem {
  protocol::ErrorCode code;
  std::string message;
};

// What clients are told where KAFSCALE_ALLOW_ADMIN_APIS is false.
inline constexpr std::string_view kAdminApisOff = "KAFSCALE_ALLOW_ADMIN_APIS is false on this broker";

// Why a partition cannot be assigned to these replicas: they must be brokers that live, `count` of them as for the
// topic's other partitions, and at least one; nullopt if it can.
std::optional<TopicProblem> replicas_problem(const metadata::MetadataImage& image, PartitionIndex partition,
                                             const std::vector<BrokerId>& replicas, size_t count);

// To the log: what the topic asks for by its configs and does not get yet.
void warn_of_configs_without_effect(const Services& services, const std::string& topic,
                                    const TopicConfigs& configs);

// Checks the topics of one request against the image and one another. Lives for the request.
class NewTopicChecks {
 public:
  NewTopicChecks(const Limits& limits, std::shared_ptr<const metadata::MetadataImage> image)
      : limits_(limits), image_(std::move(image)) {}

  // Why the topic cannot be made: name, collision, existence, numbers, configs. kTopicAlreadyExists only says that the
  // image has it. If there is none, the configs are put into the form in which they are kept.
  std::optional<TopicProblem> problem_of(NewTopic& topic);
  // From now on the topic counts as there in limits and collisions.
  void will_make(const NewTopic& topic);

 private:
  // A topic, made or about to be, that metrics could not tell from `name`; "" if there is none.
  std::string colliding_with(const std::string& name);

  const Limits& limits_;
  const std::shared_ptr<const metadata::MetadataImage> image_;
  size_t made_ = 0;
  size_t scans_ = 0;
  bool is_indexed_ = false;
  // By the name with '.' for '_'. The image's topics join when a request has more than a few to check.
  std::unordered_map<std::string, std::string> by_unified_name_;
};

// Proposes them and waits until this broker has applied the answers, or the deadline. They have no problems by
// NewTopicChecks. Ids, or why not, in their order.
runtime::Task<std::vector<Result<Uuid, TopicProblem>>> create_topics(Services& services,
                                                                     std::vector<NewTopic> topics,
                                                                     MonotonicTime deadline);

}  // namespace varve::broker
