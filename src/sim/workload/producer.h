// Producer: writes through client::Producer, idempotent or plain, and notes in the history what it was told.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/producer.h"
#include "sim/workload/kafka_client.h"

namespace varve::sim {

struct ProducerOptions {
  int number = 0;
  client::ProducerOptions client;
  Duration mean_gap = 200ms;
  // Of the batches, per mille, after which another broker gets the next ones; 0: whoever leads the partition.
  uint32_t switch_per_mille = 20;
  uint32_t records_max = 4;  // at a time, of one partition
  uint32_t value_bytes_max = 200;
  uint32_t times_max = 1'000;
  std::vector<std::string> topics;
  int16_t version = 13;  // of Produce; below 13 topics are named, which suits only those that nobody deletes
};

// How batches are made, numbered, ordered and repeated is the client's; this chooses what is written and, for producers
// that change their broker in mid-sequence, where it goes, and holds each answer against what is known.
// Life: of one run, on one client node. start() once; is_finished() once the context is over and nothing is open.
class Producer : private client::ProducerListener {
 public:
  Producer(WorkloadContext& context, Process& process, ProducerOptions options);

  void start();
  bool is_finished() const { return !is_generating_ && producer_.buffered_bytes() == 0; }
  const std::string& name() const { return client_.name(); }
  std::string describe() const;

 private:
  BrokerId route(const client::TopicPartition& at, BrokerId leader) override;
  void unreachable(BrokerId broker) override;
  void sending(const client::ProducedBatch& batch, const client::Cluster::ConnectionPtr& connection) override;
  void answered(const client::ProducedBatch& batch, const client::ProduceTry& outcome) override;
  void resolved(const client::ProducedBatch& batch,
                const client::ClientResult<client::Delivery>& result) override;

  client::ClusterOptions cluster_options();
  int16_t choose_version(protocol::ApiKey key, client::VersionRange range);
  void heard_of_topic(const std::string& name, MonotonicTime asked_at,
                      const client::ClientResult<client::TopicInfo>& answer);
  runtime::Task<> generate();
  void write();
  void acknowledged(const client::ProducedBatch& batch, Send& send, const client::ProduceTry& outcome);
  void refused(const client::ProducedBatch& batch, Send& send, const client::ProduceTry& outcome);
  // The first time that it is sent it gets its place in the history.
  Send& send_of(const client::ProducedBatch& batch);
  uint64_t number_of(const client::Cluster::ConnectionPtr& connection);
  // Whether somebody runs that broker.
  bool is_there(BrokerId broker);
  void look_elsewhere(BrokerId than);
  std::string who(BrokerId broker);
  bool by_id() const { return options_.version >= 13; }

  KafkaClient client_;
  const ProducerOptions options_;
  client::Cluster cluster_;
  client::Producer producer_;
  std::map<std::string, uint32_t> partitions_;     // of each topic, as last heard
  std::map<client::TopicPartition, size_t> open_;  // records
  std::map<uint64_t, Send*> sends_;                // of batches that are open, by the client's number
  std::map<ProducerId, ProducerEpoch> newest_;     // that anything was sent under
  std::map<client::Cluster::ConnectionPtr, uint64_t> connections_;
  BrokerId broker_;  // of those that do not follow the leader
  uint32_t times_ = 0;
  bool is_generating_ = true;
  uint64_t places_ = 0;
};

}  // namespace varve::sim
