#include "sim/workload/witness.h"

#include "protocol/messages/list_offsets.h"

namespace varve::sim {

using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr int64_t kLatest = -1;

}  // namespace

Witness::Witness(WorkloadContext& context, Process& process, Duration mean_gap)
    : client_(context, process, "witness"), mean_gap_(mean_gap) {}

void Witness::start() { client_.scope().spawn(client_.executor(), "witness", run()); }

Task<> Witness::run() {
  for (;;) {
    co_await runtime::sleep_for(Duration(client_.random().between(0, 2 * mean_gap_.count())));
    std::vector<const TopicLife*> topics;
    for (const auto& [id, life] : client_.context().topics.lives()) {
      if (life.is_certain()) topics.push_back(&life);
    }
    if (topics.empty()) continue;
    const TopicLife& topic = *topics[client_.random().below(topics.size())];
    PartitionKey key{topic.id,
                     PartitionIndex(static_cast<int32_t>(client_.random().below(topic.partitions)))};
    std::string name = topic.name;
    co_await ask(client_.any_host(), key, name);
  }
}

Task<> Witness::ask(std::string host, PartitionKey key, std::string topic) {
  auto connection = co_await client_.connect(host);
  if (connection == nullptr) co_return;
  MonotonicTime asked_at = client_.now();
  Offset floor = client_.context().history.acked_end(key);
  protocol::ListOffsetsRequest request;
  request.replica_id = BrokerId(-1);
  request.topics.emplace_back().name = topic;
  auto& partition = request.topics[0].partitions.emplace_back();
  partition.partition_index = key.partition;
  partition.timestamp = kLatest;
  int16_t version = client_.draw_version<protocol::ListOffsetsRequest>(1);
  auto response = co_await KafkaConnection::ask(connection, std::move(request), version,
                                                asked_at + KafkaClient::kRequestTimeout);
  if (!response || response->topics.empty() || response->topics[0].partitions.empty()) co_return;
  const auto& row = response->topics[0].partitions[0];
  std::string broker = who(host, client_);
  if (row.error_code == ErrorCode::kUnknownTopicOrPartition) {
    client_.context().topics.called_absent(key.topic, asked_at, broker);
  }
  // By name it may be a later life of the topic.
  const TopicLife* life = client_.context().topics.find(key.topic);
  if (row.error_code != ErrorCode::kNone || !life->is_certain()) co_return;
  client_.context().findings.require(
      row.offset >= floor, "{} says that {} ends at {}, but {} was acknowledged before it was asked", broker,
      key.to_string(), row.offset, floor);
}

}  // namespace varve::sim
