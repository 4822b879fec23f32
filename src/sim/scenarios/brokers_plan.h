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
  uint64_t snapshot_after_bytes = 64 * kMiB;
  Duration snapshot_after_time = 60s;
  bool has_stray_writer = false;
  bool early_acks = false;
  Duration busy_time = 40s;  // while the workload begins new things, and faults happen
  size_t disturbances = 5;
  Duration foreign_gap = 3s;
  std::vector<AdminTopic> topics;
  std::vector<ProducerOptions> producers;
  std::vector<ConsumerOptions> consumers;

  // Swarm testing: each choice is drawn for itself, so that combinations differ.
  static BrokersPlan draw(Random& random);
  // Whether dead objects go soon enough to wait for it.
  bool collects() const { return fence_interval < 1min; }
  // The same workload without any fault.
  void calm();
};

}  // namespace varve::sim
