// WorkloadPlan: the topics and clients of one run.
#pragma once

#include <optional>
#include <vector>

#include "sim/workload/admin.h"
#include "sim/workload/consumer.h"
#include "sim/workload/groups.h"
#include "sim/workload/producer.h"
#include "sim/workload/simple_group.h"
#include "sim/workload/topic_tender.h"

namespace varve::sim {

struct WorkloadPlan {
  bool has_early_acks = false;  // as the brokers are set
  std::vector<AdminTopic> topics;
  std::optional<TenderOptions> tender;
  std::vector<ProducerOptions> producers;
  std::vector<ConsumerOptions> consumers;
  std::vector<GroupOptions> groups;
  std::optional<SimpleGroupOptions> simple_group;

  // Swarm testing: each choice is drawn for itself, so that combinations differ. At least three producers, of which the
  // first keeps changing its broker in mid-sequence and the third is plain, and two consumers.
  static WorkloadPlan draw(Random& random);
};

}  // namespace varve::sim
