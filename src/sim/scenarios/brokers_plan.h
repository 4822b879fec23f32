// BrokersPlan: everything that one run of the scenario `brokers` draws from its seed.
#pragma once

#include <vector>

#include "base/limits.h"
#include "sim/fault_plan.h"
#include "sim/workload/admin.h"
#include "sim/workload/consumer.h"
#include "sim/workload/producer.h"

namespace varve::sim {

struct BrokersPlan {
  FaultPlan faults;
  Limits limits;
  Duration commit_interval = 50ms;
  Duration fence_interval = 5min;
  bool early_acks = false;
  Duration busy_time = 60s;  // while the workload begins new things, and faults happen
  std::vector<AdminTopic> topics;
  std::vector<ProducerOptions> producers;
  std::vector<ConsumerOptions> consumers;

  // Swarm testing: each choice is drawn for itself, so that combinations differ.
  static BrokersPlan draw(Random& random);
};

}  // namespace varve::sim
