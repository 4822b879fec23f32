// Making topics: what CreateTopics and Metadata's auto-creation share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "broker/handlers/services.h"
#include "protocol/messages/error_code.h"

namespace varve::broker {

struct NewTopic {
  std::string name;
  uint32_t partitions = 0;
  std::map<std::string, std::string> configs;
};

struct TopicProblem {
  protocol::ErrorCode code;
  std::string message;
};

// Checks the topics of one request against the image and one another. Lives for the request.
class NewTopicChecks {
 public:
  NewTopicChecks(const Limits& limits, std::shared_ptr<const metadata::MetadataImage> image)
      : limits_(limits), image_(std::move(image)) {}

  // Why the topic cannot be made: name, collision, existence, numbers, configs. kTopicAlreadyExists only says that the
  // image has it.
  std::optional<TopicProblem> problem_of(const NewTopic& topic);
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
