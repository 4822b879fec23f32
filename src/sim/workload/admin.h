// Admin: makes topics, deletes some and makes them again.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/kafka_client.h"

namespace varve::sim {

struct AdminTopic {
  std::string name;
  uint32_t partitions = 1;
  bool stamps_append_time = false;
  // Mean time until it is deleted, and made again; zero: it stays.
  Duration mean_life{0};
};

// Life: of one run, on one client node. The one that creates and deletes these topics.
class Admin {
 public:
  Admin(WorkloadContext& context, Process& process, std::vector<AdminTopic> topics);

  void start();
  // No topic is half made or half deleted.
  bool is_finished() const { return busy_ == 0; }

 private:
  runtime::Task<> keep(AdminTopic topic);
  // Returns when it surely exists.
  runtime::Task<Uuid> create(AdminTopic topic);
  runtime::Task<> destroy(Uuid id);
  // What was just made is at once found through another broker.
  runtime::Task<> look_elsewhere(std::string maker, std::string topic);

  KafkaClient client_;
  std::vector<AdminTopic> topics_;
  size_t busy_ = 0;
};

}  // namespace varve::sim
