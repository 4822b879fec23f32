// Consumer: reads topics as a Kafka consumer without a group does, from any broker, and reports what it was served.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/fetch.h"
#include "sim/workload/kafka_client.h"

namespace varve::sim {

struct ConsumerOptions {
  int number = 0;
  std::vector<std::string> topics;
  bool uses_sessions = false;
  // Of the fetches, per mille, that go to another broker than the one before.
  uint32_t switch_per_mille = 30;
  Duration max_wait = 500ms;
  int32_t min_bytes = 1;
  int32_t max_bytes = 64 * 1024;
  int32_t partition_max_bytes = 16 * 1024;
  int16_t version = 18;  // of Fetch; below 13 topics are named, which suits only those that nobody deletes
};

// Life: of one run, on one client node. start() once; it reads until the world ends.
class Consumer {
 public:
  Consumer(WorkloadContext& context, Process& process, ConsumerOptions options);

  void start();
  // The next offset of every partition known.
  const std::map<PartitionKey, Offset>& positions() const { return positions_; }
  const std::string& name() const { return client_.name(); }

 private:
  using Row = protocol::FetchResponse::PartitionData;
  struct Session {
    int32_t id = 0;
    int32_t epoch = 0;
    std::map<PartitionKey, Offset> known;  // to the broker
  };
  struct Asked {
    std::string host;
    uint64_t connection = 0;
    MonotonicTime at;
    std::map<PartitionKey, Offset> offsets;
    // What was acknowledged before this was asked.
    std::map<PartitionKey, Offset> acked_ends;
  };

  runtime::Task<> run();
  runtime::Task<> look_up();
  runtime::Task<> fetch();
  runtime::Task<> reset(std::string host, PartitionKey key);

  protocol::FetchRequest request_for(Asked& asked);
  void add_partition(protocol::FetchRequest& request, const PartitionKey& key, Offset offset) const;
  void handle(const Asked& asked, const protocol::FetchResponse& response,
              std::vector<PartitionKey>& out_of_range);
  void handle_row(const Asked& asked, const PartitionKey& key, const Row& row,
                  std::vector<PartitionKey>& out_of_range);
  void read_records(const Asked& asked, const PartitionKey& key, const Row& row);
  void check_marks(const Asked& asked, const PartitionKey& key, const Row& row);
  void forget(const PartitionKey& key);
  bool by_id() const { return options_.version >= 13; }

  KafkaClient client_;
  const ConsumerOptions options_;
  std::string host_;
  std::map<PartitionKey, Offset> positions_;
  std::map<Uuid, std::string> names_;
  std::map<std::string, Uuid> ids_;
  std::optional<Session> session_;
  // High watermark and log start that one connection showed last: they only rise.
  struct Marks {
    uint64_t connection = 0;
    Offset high_watermark;
    Offset log_start;
  };
  std::map<PartitionKey, Marks> marks_;
};

}  // namespace varve::sim
