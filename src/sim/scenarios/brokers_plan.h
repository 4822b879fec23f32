// BrokersPlan: everything that one run of the scenario `brokers` draws from its seed.
#pragma once

#include "base/limits.h"
#include "sim/fault_plan.h"
#include "sim/workload/workload_plan.h"

namespace varve::sim {

struct BrokersPlan {
  FaultPlan faults;
  Limits limits;
  Duration commit_interval = 50ms;
  Duration fence_interval = 5min;
  uint64_t snapshot_after_bytes = 64 * kMiB;
  Duration snapshot_after_time = 60s;
  bool has_stray_writer = false;
  bool rolls_back = false;   // in the end somebody puts an older copy of the log back
  Duration busy_time = 40s;  // while the workload begins new things, and faults happen
  size_t disturbances = 5;
  Duration foreign_gap = 3s;
  WorkloadPlan workload;

  // Swarm testing: each choice is drawn for itself, so that combinations differ.
  static BrokersPlan draw(Random& random);
  // Whether dead objects go soon enough to wait for it.
  bool collects() const { return fence_interval < 1min; }
};

}  // namespace varve::sim
