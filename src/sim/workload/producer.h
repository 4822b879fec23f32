// Producer: sends batches as a Kafka producer does, idempotent or plain, and notes in the history what it was told.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/produce.h"
#include "sim/workload/batch_maker.h"
#include "sim/workload/kafka_client.h"

namespace varve::sim {

struct ProducerOptions {
  int number = 0;
  bool is_idempotent = true;
  int16_t acks = -1;  // idempotent: -1
  size_t requests_in_flight_max = 5;
  bool retries = true;  // of a plain producer; what it sends again may be stored twice
  Duration mean_gap = 200ms;
  // Of the requests, per mille, that go to another broker than the one before.
  uint32_t switch_per_mille = 20;
  Duration delivery_timeout = Duration::max();
  Duration request_timeout = 20s;  // of the client; a reply that is later ends the connection
  Duration broker_timeout = 10s;   // in the request
  Codec codec = Codec::kNone;
  uint32_t records_max = 4;
  uint32_t value_bytes_max = 200;
  uint32_t batches_max = 1'000;
  std::vector<std::string> topics;
  int16_t version = 13;  // of Produce; below 13 topics are named, which suits only those that nobody deletes
};

// How Kafka's producer numbers, orders and repeats (KIP-98, KIP-360): nothing goes that is five batches or more ahead
// of one that is not resolved; what is sent again goes alone and in order; a broken sequence makes it go on under the
// next epoch.
// Life: of one run, on one client node. start() once; is_finished() once the context is over and nothing is open.
class Producer {
 public:
  Producer(WorkloadContext& context, Process& process, ProducerOptions options);

  void start();
  bool is_finished() const;
  const std::string& name() const { return client_.name(); }
  std::string describe() const;

 private:
  struct Batch {
    Send* send;
    BatchShape shape;
    MonotonicTime made_at;
    bool is_in_flight = false;
    bool was_sent = false;
    uint64_t ordinal = 0;     // among the batches numbered for its partition
    bool went_first = false;  // when it was sent last, all before it was resolved
  };
  using BatchPtr = std::shared_ptr<Batch>;
  struct Queue {
    std::string topic;
    PartitionIndex partition;
    std::deque<BatchPtr> open;  // not resolved, in order
    ProducerId producer_id = kNoProducerId;
    ProducerEpoch epoch = kNoProducerEpoch;
    int64_t next_sequence = 0;
    uint64_t numbered = 0;      // batches
    bool must_restart = false;  // its sequence is broken
    Uuid life;                  // of the topic, that batches were sent to
    bool has_landed = false;    // in this life, some batch
    // What was acknowledged in a former life may leave a gap between what was not.
    bool may_have_gap = false;
    MonotonicTime not_before;
  };
  struct Flight {
    std::string host;
    MonotonicTime sent_at;
    std::vector<std::pair<Queue*, BatchPtr>> batches;
    std::map<Uuid, std::string> names;
    std::map<std::string, Uuid> ids;
  };
  using Response = protocol::ProduceResponse;
  using Row = Response::PartitionProduceResponse;

  runtime::Task<> generate();
  void make_batch();
  runtime::Task<> send_loop();
  // Whether a request was sent.
  runtime::Task<bool> send_one();
  runtime::Task<bool> get_identity();
  runtime::Task<> await_reply(std::shared_ptr<KafkaConnection> connection, KafkaConnection::Posted posted,
                              Flight flight);
  runtime::Task<> look_up(std::string topic);

  // What may be sent now, and the request for it.
  Flight collect();
  Batch* next_of(Queue& queue, Uuid life);
  protocol::ProduceRequest request_for(const Flight& flight) const;

  void settle(Flight& flight, const std::optional<Response>& response);
  void settle_one(const Flight& flight, Queue& queue, Batch& batch, const Row* row);
  void acknowledged(const Flight& flight, Queue& queue, Batch& batch, const Row& row);
  void refused(const Flight& flight, Queue& queue, Batch& batch, const Row& row);
  void try_again(Queue& queue, Batch& batch);
  void remove(Queue& queue, const Batch& batch);
  void expire(Queue& queue);
  void restart(Queue& queue);
  void number(Queue& queue, Batch& batch);
  bool by_id() const { return options_.version >= 13; }
  void wake();

  KafkaClient client_;
  const ProducerOptions options_;
  std::map<std::pair<std::string, PartitionIndex>, Queue> queues_;
  std::map<std::string, KnownTopic> topics_;
  std::string host_;
  ProducerId producer_id_ = kNoProducerId;
  ProducerEpoch epoch_ = kNoProducerEpoch;
  uint32_t batches_made_ = 0;
  bool is_generating_ = true;
  size_t requests_in_flight_ = 0;
  uint64_t places_ = 0;
  std::optional<runtime::Completion<runtime::Done>> waiter_;
};

}  // namespace varve::sim
