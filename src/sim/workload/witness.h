// Witness: asks other brokers whether they know what one broker has just acknowledged (invariant 5).
#pragma once

#include "sim/workload/kafka_client.h"

namespace varve::sim {

// Life: of one run, on one client node. Asks for the ends of all partitions that surely exist, one after another, of a
// broker chosen at random: a latest offset below an acknowledged end is a finding, and a topic called absent.
class Witness {
 public:
  Witness(WorkloadContext& context, Process& process, Duration mean_gap);

  void start();

 private:
  runtime::Task<> run();
  runtime::Task<> ask(std::string host, PartitionKey key, std::string topic);

  KafkaClient client_;
  const Duration mean_gap_;
};

}  // namespace varve::sim
