// Names of partitions, and what is known of a topic.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace varve::client {

struct TopicPartition {
  std::string topic;
  PartitionIndex partition;

  auto operator<=>(const TopicPartition&) const = default;
  std::string to_string() const { return fmt::format("{}-{}", topic, partition); }
};

inline constexpr BrokerId kNoBroker{-1};

// One answer of a broker.
struct TopicInfo {
  Uuid id;                        // zero from brokers before Metadata 10
  std::vector<BrokerId> leaders;  // by partition; kNoBroker: none now
  MonotonicTime asked_at;
};

}  // namespace varve::client
