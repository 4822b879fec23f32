// GroupMember: a machine with one member of a consumer group, which leaves, crashes, oversleeps and comes back.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/group_consumer.h"
#include "sim/checkers/group_causes.h"
#include "sim/checkers/group_history.h"
#include "sim/workload/kafka_client.h"

namespace varve::sim {

struct GroupOptions {
  std::string name;
  std::vector<std::string> topics;
  size_t members = 2;
  bool are_static = false;
  client::Assignor assignor = client::Assignor::kRange;
  Duration session_timeout = 6s;
  Duration rebalance_timeout = 6s;
  Duration heartbeat_interval = 1s;
  Duration mean_life{12s};          // of a member, until something befalls it; zero: nothing does
  uint32_t commit_per_mille = 400;  // of the polls
};

// Life: made after world and network, destroyed before them. start() once; it reads, commits what it has read, and has
// its troubles until the context is over, then goes on reading until stop().
class GroupMember {
 public:
  GroupMember(WorkloadContext& context, GroupHistory& history, GroupCauses& causes, SimNetwork& network,
              GroupOptions options, size_t number);
  ~GroupMember();

  void start() { boot(); }
  void stop();

  const std::string& host() const { return node_.host(); }
  // nullptr: it is not up, or between two lives.
  const client::GroupConsumer* consumer() const;
  // Nothing befalls it any more, and it is in its group.
  bool is_in_group() const;
  std::string describe() const;

 private:
  struct Program;

  void boot();
  void make();
  void end_life();
  void schedule_trouble();
  void meet_trouble(uint64_t life);
  void pause(uint64_t life);
  runtime::Task<> run(Program* program);
  // Whether to go on.
  runtime::Task<bool> read_and_commit(Program* program);
  runtime::Task<> commit(Program* program);
  void check_order(Program& program, const std::vector<client::ConsumedRecord>& records);

  WorkloadContext& context_;
  GroupHistory& history_;
  GroupCauses& causes_;
  const GroupOptions options_;
  const size_t number_;
  Random random_;
  Node node_;
  std::unique_ptr<Program> program_;
  uint64_t lives_ = 0;
};

}  // namespace varve::sim
