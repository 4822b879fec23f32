// What io executors know of the cluster without asking the core: published after apply, immutable.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "metadata/state/state.h"

namespace varve::metadata {

struct ImageBroker {
  BrokerId id;
  Incarnation incarnation;
  std::vector<Endpoint> endpoints;
  std::string rack;
};

// Topics, partitions, configs and live brokers at one log position. Shared by any number of threads.
struct MetadataImage {
  LogPosition position;
  Uuid log_id;
  LogGeneration generation{1};
  std::map<BrokerId, ImageBroker> brokers;
  std::map<std::string, std::shared_ptr<const TopicView>, std::less<>> topics_by_name;
  std::unordered_map<Uuid, std::shared_ptr<const TopicView>> topics_by_id;

  const TopicView* find_topic(std::string_view name) const;
  const TopicView* find_topic(const Uuid& id) const;
  // The live broker that rendezvous hashing gives for a partition, among those of `rack` if any live there;
  // nullopt if no broker is live.
  std::optional<BrokerId> owner(PartitionHandle partition, std::string_view rack) const;
};

}  // namespace varve::metadata
