// FullReader: reads every partition from one broker, from its start to its end, when the faults are over.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/workload/kafka_client.h"

namespace varve::sim {

// What a broker holds of a partition.
struct PartitionExtent {
  Offset log_start;
  Offset end;
};

// Life: of one run, on one client node; one broker each.
class FullReader {
 public:
  FullReader(WorkloadContext& context, Process& process, std::string host);

  // Reads all topics that surely exist. Only once nothing changes any more.
  void start();
  bool is_finished() const { return is_finished_; }
  const std::string& host() const { return host_; }
  // Once finished.
  const std::map<PartitionKey, PartitionExtent>& extents() const { return extents_; }

 private:
  runtime::Task<> run();
  // Until it succeeds.
  runtime::Task<PartitionExtent> find_extent(PartitionKey key, std::string topic);
  runtime::Task<> read(PartitionKey key);

  KafkaClient client_;
  const std::string host_;
  std::map<PartitionKey, PartitionExtent> extents_;
  bool is_finished_ = false;
};

}  // namespace varve::sim
