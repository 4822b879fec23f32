// Groups: the consumer groups of one run, those who watch them, and what is asked of them in the end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/workload/group_member.h"

namespace varve::sim {

// Life: made after world and network, destroyed before them. start() once the context's topics are being made; once the
// context is over is_settled(), then check_owner_change(), and once everything was read has_read_all().
class Groups {
 public:
  Groups(WorkloadContext& context, Process& witness, SimNetwork& network,
         const std::vector<GroupOptions>& groups, std::function<const metadata::State&()> tail);

  void start();
  void stop();

  // Every member is in its group, and nobody else, in one generation, and every partition of what there is has an owner.
  bool is_settled() const;
  // Who has not read and committed everything up to these ends: a line each.
  using Ends = std::map<std::string, std::map<PartitionIndex, Offset>>;
  std::string behind(const Ends& ends) const;
  // Who is not: a line each.
  std::string describe() const;

  GroupHistory& history() { return history_; }
  GroupWatch& watch() { return causes_; }
  // The generations of all groups now.
  using Generations = std::map<std::string, int32_t>;
  Generations generations() const;
  // Whether each group has committed something since.
  bool has_committed_since(MonotonicTime when) const;
  // A group's owner is changed without a rebalance: its generation is the same as before.
  void check_same(const Generations& before) const;

 private:
  struct Group {
    GroupOptions options;
    std::vector<std::unique_ptr<GroupMember>> members;
  };

  void start_when_possible(Group* group);
  runtime::Task<> ask_often();
  runtime::Task<> ask(std::string host, const GroupOptions* group);
  bool is_settled(const Group& group) const;
  std::set<client::TopicPartition> lasting_partitions(const GroupOptions& options) const;
  std::set<client::TopicPartition> partitions_of(const std::string& topic) const;

  WorkloadContext& context_;
  const std::function<const metadata::State&()> tail_;
  GroupHistory history_;
  GroupCauses causes_;
  std::vector<Group> groups_;
  KafkaClient witness_;
};

// A name like this one, of a group that only these brokers ever own: all that serve.
std::string served_group(std::string name, std::vector<BrokerId> brokers);
// One to three groups, of both assignors, with static or dynamic members. widens: somebody adds partitions to "lasting".
std::vector<GroupOptions> draw_groups(Random& random, const std::vector<BrokerId>& brokers, bool widens);

}  // namespace varve::sim
