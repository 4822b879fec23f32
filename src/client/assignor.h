// How the leader of a group shares out the partitions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/consumer_protocol.h"

namespace varve::client {

enum class Assignor : uint8_t {
  kRange,  // of each topic a run of partitions to each member; everything is given up at a rebalance
  kCooperativeSticky,  // as few moves as balance allows; what moves is given up first and given out next (KIP-429)
};

// As it is named in JoinGroup, equal to Kafka's so that groups may be mixed.
std::string_view assignor_name(Assignor assignor);
std::optional<Assignor> assignor_of_name(std::string_view name);

struct GroupMemberInfo {
  std::string id;
  std::optional<std::string> instance_id;
  Subscription subscription;
};
using Assignment = std::map<std::string, std::set<TopicPartition>>;  // by member id, every member

// partitions: number of partitions of each topic; topics that are not there have none. Equal input, equal output.
Assignment assign(Assignor assignor, std::vector<GroupMemberInfo> members,
                  const std::map<std::string, uint32_t>& partitions);

}  // namespace varve::client
