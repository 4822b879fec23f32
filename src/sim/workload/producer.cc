#include "sim/workload/producer.h"

#include <algorithm>

#include "sim/workload/cluster_options.h"
#include "sim/workload/record_maker.h"

namespace varve::sim {

using client::ClientErrc;
using client::ClientResult;
using client::Cluster;
using client::Delivery;
using client::ProducedBatch;
using client::ProduceTry;
using protocol::ApiKey;
using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr size_t kOpenTimesMax = 12;
constexpr int16_t kFirstMetadataWithIds = 10;

// Answers that say for sure that the batch was not stored by this request; of varve, whose word is stronger than that of
// other brokers.
bool says_not_stored(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnknownTopicOrPartition:
    case ErrorCode::kUnknownTopicId:
    case ErrorCode::kNotLeaderOrFollower:
    case ErrorCode::kNotEnoughReplicas:
    case ErrorCode::kKafkaStorageError:
    case ErrorCode::kOutOfOrderSequenceNumber:
    case ErrorCode::kInvalidProducerEpoch:
      return true;
    default:
      return false;
  }
}

}  // namespace

Producer::Producer(WorkloadContext& context, Process& process, ProducerOptions options)
    : client_(context, process, fmt::format("producer {}", options.number)),
      options_(std::move(options)),
      cluster_(process, client_.executor(), cluster_options()),
      producer_(cluster_, options_.client, this) {
  look_elsewhere(BrokerId(-1));
}

client::ClusterOptions Producer::cluster_options() {
  client::ClusterOptions options =
      sim::cluster_options(client_.context(), name(), options_.client.request_timeout, client_.random());
  options.connect_timeout = KafkaClient::kConnectTimeout;
  // Partitions may have been added.
  options.metadata_age_max = 5s;
  options.backoff_min = 20ms;
  options.backoff_max = 200ms;
  options.choose_version = [this](ApiKey key, client::VersionRange range) {
    return choose_version(key, range);
  };
  options.heard_of_topic = [this](const std::string& topic, MonotonicTime asked_at, const auto& answer) {
    heard_of_topic(topic, asked_at, answer);
  };
  return options;
}

int16_t Producer::choose_version(ApiKey key, client::VersionRange range) {
  if (key == ApiKey::kProduce) return std::clamp(options_.version, range.low, range.high);
  if (key == ApiKey::kMetadata) range.low = std::max(range.low, kFirstMetadataWithIds);
  return static_cast<int16_t>(client_.random().between(range.low, range.high));
}

void Producer::heard_of_topic(const std::string& topic, MonotonicTime asked_at,
                              const ClientResult<client::TopicInfo>& answer) {
  TopicBook& topics = client_.context().topics;
  if (answer) {
    partitions_[topic] = static_cast<uint32_t>(answer->leaders.size());
    topics.told_of(topic, answer->id, partitions_[topic]);
  } else if (answer.error().is(ErrorCode::kUnknownTopicOrPartition)) {
    topics.called_absent(topic, asked_at, "a broker to " + name());
  }
}

void Producer::start() {
  producer_.start();
  client_.scope().spawn(client_.executor(), "generate", generate());
}

std::string Producer::describe() const {
  size_t open = 0;
  for (const auto& [at, records] : open_) open += records;
  return fmt::format("{}: {} records open, {} batches under way or sent", name(), open, sends_.size());
}

Task<> Producer::generate() {
  while (!client_.context().is_over && times_ < options_.times_max) {
    co_await runtime::sleep_for(Duration(client_.random().between(0, 2 * options_.mean_gap.count())));
    if (client_.context().is_over) break;
    // Now and then several at once, so that requests and objects hold more than one.
    size_t count = client_.random().chance(1, 4) ? 1 + client_.random().below(6) : 1;
    for (size_t i = 0; i < count; ++i) write();
  }
  is_generating_ = false;
}

void Producer::write() {
  const std::string& topic = options_.topics[client_.random().below(options_.topics.size())];
  auto known = partitions_.find(topic);
  uint32_t partitions = known == partitions_.end() ? 1 : known->second;
  PartitionIndex partition(static_cast<int32_t>(client_.random().below(partitions)));
  size_t& open = open_[{topic, partition}];
  if (open >= kOpenTimesMax * options_.records_max) return;
  ++times_;
  auto records = client_.random().between(1, options_.records_max);
  for (int64_t i = 0; i < records; ++i) {
    uint64_t number = client_.context().history.next_number();
    auto value_bytes = static_cast<size_t>(client_.random().between(8, options_.value_bytes_max));
    producer_.send(topic, partition, make_sim_record(number, value_bytes, client_.wall_now()));
    ++open;
  }
}

bool Producer::is_there(BrokerId broker) {
  return broker.value() >= 0 && static_cast<size_t>(broker.value()) < client_.context().hosts.size();
}

BrokerId Producer::route(const client::TopicPartition&, BrokerId leader) {
  // A stray writer registers a broker that nobody runs, and the cluster names it as any other.
  return options_.switch_per_mille == 0 && is_there(leader) ? leader : broker_;
}

void Producer::unreachable(BrokerId broker) { look_elsewhere(broker); }

void Producer::look_elsewhere(BrokerId than) {
  auto brokers = static_cast<int32_t>(client_.context().hosts.size());
  do {
    broker_ = BrokerId(static_cast<int32_t>(client_.random().below(static_cast<uint64_t>(brokers))));
  } while (brokers > 1 && broker_ == than);
}

void Producer::sending(const ProducedBatch& batch, const Cluster::ConnectionPtr& connection) {
  auto [newest, is_new] = newest_.try_emplace(batch.producer_id, batch.epoch);
  if (newest->second < batch.epoch) client_.context().world.happened("client.epoch_bumped");
  newest->second = std::max(newest->second, batch.epoch);
  Send& send = send_of(batch);
  send.bytes = batch.bytes;
  send.producer_id = batch.producer_id;
  send.epoch = batch.epoch;
  send.first_sequence = batch.first_sequence;
  // By name the broker may find any life of the topic; only lives that last are named.
  client_.context().history.sending(send, batch.topic, number_of(connection), ++places_);
  if (client_.random().chance(options_.switch_per_mille, 1000)) look_elsewhere(broker_);
}

Send& Producer::send_of(const ProducedBatch& batch) {
  Send*& send = sends_[batch.number];
  if (send != nullptr) return *send;
  History& history = client_.context().history;
  auto view = protocol::records::BatchView::first_of(batch.bytes.view());
  CHECK(view);
  send = &history.make_send(*history.number_of(*view), options_.number, batch.at.topic, batch.at.partition);
  send->is_once = options_.client.is_idempotent || !options_.client.sends_again;
  send->records = batch.records;
  return *send;
}

uint64_t Producer::number_of(const Cluster::ConnectionPtr& connection) {
  auto [known, is_new] = connections_.try_emplace(connection, 0);
  if (is_new) known->second = ++client_.context().connections;
  return known->second;
}

void Producer::answered(const ProducedBatch& batch, const ProduceTry& outcome) {
  WorkloadContext& context = client_.context();
  Send& send = send_of(batch);
  context.world.trace(
      "batch {}: {} from {}", send.number,
      outcome.error ? fmt::format("error {}, offset {}", static_cast<int16_t>(*outcome.error), outcome.offset)
                    : std::string("no answer"),
      who(outcome.broker));
  context.findings.require(outcome.rows == 0 || outcome.rows == outcome.batches,
                           "{} answers {} partitions of a Produce for {}", who(outcome.broker), outcome.rows,
                           outcome.batches);
  if (!outcome.error) {
    send.may_be_stored = true;
    look_elsewhere(outcome.broker);
  } else if (*outcome.error == ErrorCode::kNone) {
    acknowledged(batch, send, outcome);
  } else {
    context.world.happened(fmt::format("client.produce_error_{}", static_cast<int16_t>(*outcome.error)));
    refused(batch, send, outcome);
  }
}

void Producer::acknowledged(const ProducedBatch& batch, Send& send, const ProduceTry& outcome) {
  WorkloadContext& context = client_.context();
  PartitionKey at{batch.topic, batch.at.partition};
  // Without an offset it is a promise of the broker alone, who may not have heard of a deletion.
  bool is_stored = outcome.offset.value() >= 0;
  if (is_stored) context.topics.called_present(at.topic, outcome.sent_at, who(outcome.broker));
  bool may_be_early = context.has_early_acks && !options_.client.is_idempotent;
  context.findings.require(is_stored || may_be_early, "{} acknowledges batch {} without an offset",
                           who(outcome.broker), send.number);
  context.history.acked(send, at, outcome.offset, who(outcome.broker));
}

void Producer::refused(const ProducedBatch& batch, Send& send, const ProduceTry& outcome) {
  WorkloadContext& context = client_.context();
  std::string broker = who(outcome.broker);
  if (!says_not_stored(*outcome.error)) send.may_be_stored = true;
  switch (*outcome.error) {
    case ErrorCode::kUnknownTopicOrPartition:
    case ErrorCode::kUnknownTopicId:
      if (by_id()) return context.topics.called_absent(batch.topic, outcome.sent_at, broker);
      return context.topics.called_absent(batch.at.topic, outcome.sent_at, broker);
    case ErrorCode::kNotLeaderOrFollower:
    case ErrorCode::kKafkaStorageError:
      return look_elsewhere(outcome.broker);
    case ErrorCode::kNotEnoughReplicas:
    case ErrorCode::kRequestTimedOut:
      return;
    case ErrorCode::kOutOfOrderSequenceNumber:
      // One that was sent behind others may have been judged before them, by another broker.
      return context.findings.require(
          !batch.went_first,
          "{} calls batch {} ({}/{}/{}) of {} out of order, and nothing before it is missing", broker,
          send.number, batch.producer_id, batch.epoch, batch.first_sequence, batch.at.to_string());
    case ErrorCode::kInvalidProducerEpoch:
      return context.findings.require(batch.epoch < newest_.at(batch.producer_id),
                                      "{} calls epoch {} of producer id {} old, which is the newest", broker,
                                      batch.epoch, batch.producer_id);
    default:
      context.findings.add(fmt::format("{} answers a batch with error {}: {}", broker,
                                       static_cast<int16_t>(*outcome.error), outcome.message));
  }
}

void Producer::resolved(const ProducedBatch& batch, const ClientResult<Delivery>& result) {
  open_.at(batch.at) -= batch.records;
  bool is_late = client_.now() - batch.made_at >= options_.client.delivery_timeout;
  if (!result && is_late) client_.context().world.happened("client.delivery_timeout");
  auto found = sends_.find(batch.number);
  if (found == sends_.end()) return;  // never sent
  Send& send = *found->second;
  sends_.erase(found);
  if (send.promise != Promise::kOpen) return;
  if (options_.client.acks == 0) send.may_be_stored = true;
  client_.context().history.gave_up(send);
}

std::string Producer::who(BrokerId broker) {
  CHECK(is_there(broker), "a batch went to broker {}, where route() sends none", broker);
  return fmt::format("{} to {}", client_.context().hosts[static_cast<size_t>(broker.value())], name());
}

}  // namespace varve::sim
