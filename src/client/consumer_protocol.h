// What the members of a consumer group tell one another through the broker: their subscriptions and the leader's
// assignments. The broker never looks inside. Origin: Kafka's ConsumerProtocolSubscription and -Assignment, versions
// 0 to 3 (KIP-429: owned partitions, KIP-792: generation, KIP-881: rack).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "client/topic_partition.h"

namespace varve::client {

struct Subscription {
  std::vector<std::string> topics;
  std::set<TopicPartition> owned;  // from version 1
  int32_t generation = -1;         // of `owned`; from version 2

  bool operator==(const Subscription&) const = default;
};

// Written in version 3; versions above it are read as version 3, as Kafka's clients do. nullopt: malformed.
Slice encode_subscription(const Subscription& subscription);
std::optional<Subscription> decode_subscription(const Slice& bytes);

Slice encode_assignment(const std::set<TopicPartition>& partitions);
std::optional<std::set<TopicPartition>> decode_assignment(const Slice& bytes);

}  // namespace varve::client
