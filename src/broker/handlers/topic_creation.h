// Making a topic: what CreateTopics and Metadata's auto-creation share.
#pragma once

#include <map>
#include <optional>
#include <string>

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

// Why the topic cannot be made as the image stands: name, collision, configs, limits. kTopicAlreadyExists only says
// that the image has it.
std::optional<TopicProblem> new_topic_problem(const Services& services, const metadata::MetadataImage& image,
                                              const NewTopic& topic);

// Proposes it and waits until this broker has applied the answer, or the deadline. `topic` has no
// new_topic_problem().
runtime::Task<Result<Uuid, TopicProblem>> create_topic(Services& services, NewTopic topic,
                                                       MonotonicTime deadline);

}  // namespace varve::broker
