// SimpleGroup: somebody who commits offsets under a group's name without being a member of it, and deletes the group.
#pragma once

#include <string>
#include <vector>

#include "client/group_offsets.h"
#include "sim/checkers/group_history.h"
#include "sim/workload/kafka_client.h"

namespace varve::sim {

struct SimpleGroupOptions {
  std::string name;
  std::vector<std::string> topics;
  Duration mean_gap = 500ms;  // between two changes
};

// Life: of one run, on one client node. start() once; is_finished() once the context is over and no change is under way.
// Goes on looking for what is committed.
class SimpleGroup {
 public:
  SimpleGroup(WorkloadContext& context, Process& process, GroupHistory& history, SimpleGroupOptions options);

  void start();
  bool is_finished() const { return is_finished_; }

 private:
  runtime::Task<> change_loop();
  runtime::Task<> commit();
  runtime::Task<> destroy();
  runtime::Task<> look_loop();
  std::set<client::TopicPartition> some_partitions();

  KafkaClient client_;
  GroupHistory& history_;
  const SimpleGroupOptions options_;
  client::Cluster cluster_;
  client::GroupOffsets offsets_;
  bool is_finished_ = false;
};

}  // namespace varve::sim
