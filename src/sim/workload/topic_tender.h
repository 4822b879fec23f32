// TopicTender: changes topics while others use them: more partitions, other configs, fewer records.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "sim/workload/kafka_client.h"

namespace varve::sim {

struct TenderOptions {
  std::string topic;  // that nobody deletes
  Duration mean_gap{};
  uint32_t partitions_max = 0;
};

// Life: of one run, on one client node. The only one that changes the topic. What it was acknowledged is looked up at
// another broker at once, and goes into the book of topics and the history for the checks at the end.
class TopicTender {
 public:
  TopicTender(WorkloadContext& context, Process& process, TenderOptions options);

  void start();
  bool is_finished() const { return is_finished_; }

 private:
  runtime::Task<> run();
  runtime::Task<> widen();
  runtime::Task<> delete_records();
  runtime::Task<> alter();
  // Another broker than `host` tells a value that may be in force.
  runtime::Task<> look_at_config(std::string host);
  // What a change that may not have come through, or may yet, can be answered with; anything else is a finding.
  bool is_open(protocol::ErrorCode code, const std::string& what, const std::string& host);

  KafkaClient client_;
  const TenderOptions options_;
  bool is_finished_ = false;
  // Of the config that it changes: acknowledged last, and those of unknown fate, which may still come through.
  std::optional<std::string> acked_value_;
  std::set<std::string> open_values_;
};

}  // namespace varve::sim
