// Producer: writes records, each once and in order if it is idempotent.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/producer_listener.h"
#include "protocol/messages/produce.h"
#include "protocol/records/builder.h"

namespace varve::client {

struct ProducerOptions {
  bool is_idempotent = true;  // then acks must be -1
  int16_t acks = -1;          // 0: nobody answers, 1 or -1 (all)
  Codec codec = Codec::kNone;
  Duration linger = 5ms;  // how long a batch that is not full waits for more
  size_t batch_bytes_max = 16 * kKiB;
  size_t request_bytes_max = 1 * kMiB;
  size_t buffer_bytes_max = 32 * kMiB;  // of records not yet delivered
  size_t requests_in_flight_max = 5;    // to each broker; 1 to 5 if idempotent
  Duration delivery_timeout = 120s;     // from send() to the result
  Duration ack_timeout = 30s;           // of the broker, in the request
  Duration request_timeout = 30s;       // of the answer
  // Only if it is not idempotent; then what is sent again may be stored twice.
  bool sends_again = true;
};

struct NewRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::optional<WallTime> timestamp;  // nullopt: now
};

// How it numbers, orders and repeats is KIP-98 and KIP-360: what is sent again keeps its sequence and goes alone and in
// order; nothing goes that is five batches ahead of one that is not resolved; a broken sequence makes the partition go
// on under the next epoch, and what may have been stored by then fails with kTimeout rather than be sent twice.
// A record above batch_bytes_max gets a batch of its own.
// Life: start(); send(); flush() or not; close() and await it, then destroy; or destroyed where its tasks cannot run any
// more. Beside its cluster, same executor.
class Producer {
 public:
  using Result = ClientResult<Delivery>;

  // listener: may be null; outlives the producer.
  Producer(Cluster& cluster, ProducerOptions options, ProducerListener* listener = nullptr);
  void start();

  // Set once the record is delivered or given up; await it, or not. kOverLimit at once when the buffer is full or the
  // record larger than a request may be.
  runtime::Completion<Result> send(const std::string& topic, PartitionIndex partition,
                                   const NewRecord& record);
  // Until nothing is open.
  runtime::Task<> flush();
  // What is open fails with kStopped.
  runtime::Task<> close();

  size_t buffered_bytes() const { return buffered_bytes_; }

 private:
  struct Batch : ProducedBatch {
    explicit Batch(const protocol::records::BatchOptions& options) : builder(options) {}
    protocol::records::BatchBuilder builder;  // until it is built
    size_t buffered_bytes = 0;
    std::vector<runtime::Completion<Result>> waiting;  // by record
    bool is_in_flight = false;
    bool was_sent = false;  // as it is numbered now
    uint64_t ordinal = 0;   // among those numbered for its partition
    size_t tries = 0;
  };
  using BatchPtr = std::shared_ptr<Batch>;
  struct Queue {
    TopicPartition at;
    std::deque<BatchPtr> open;  // not resolved, in order
    Uuid topic;                 // that batches were sent to
    bool has_landed = false;    // some batch, in this life of the topic and this epoch
    ProducerId producer_id = kNoProducerId;
    ProducerEpoch epoch = kNoProducerEpoch;
    int64_t next_sequence = 0;
    uint64_t numbered = 0;
    bool must_restart = false;  // its sequence is broken
    MonotonicTime not_before;
  };
  struct Flight {
    BrokerId broker;
    MonotonicTime sent_at;
    std::vector<std::pair<Queue*, BatchPtr>> batches;
  };
  struct Broker {
    size_t in_flight = 0;
    bool is_connecting = false;
    size_t failures = 0;  // in a row
    MonotonicTime not_before;
  };
  using Row = protocol::ProduceResponse::PartitionProduceResponse;

  runtime::Task<> send_loop();
  runtime::Task<bool> get_identity();
  // Where what there is to send goes.
  runtime::Task<std::map<BrokerId, std::vector<Queue*>>> group_by_broker();
  runtime::Task<> connect(BrokerId broker);
  void send_to(BrokerId broker, const std::vector<Queue*>& queues);
  Flight collect(BrokerId broker, const std::vector<Queue*>& queues);
  runtime::Task<> await_reply(Cluster::ConnectionPtr connection, Connection::Posted posted, int16_t version,
                              Flight flight);

  // What may be sent now; nullptr: nothing.
  BatchPtr next_of(Queue& queue) const;
  bool is_due(const Queue& queue, const BatchPtr& batch) const;
  void number(Queue& queue, Batch& batch);
  // Of the topic's present life on.
  void enter(Queue& queue, Uuid topic);
  protocol::ProduceRequest request_for(const Flight& flight) const;

  void settle(const Flight& flight, const ClientResult<protocol::ProduceResponse>& response);
  void settle_one(Queue& queue, const BatchPtr& batch, const Row* row);
  void refused_by(Queue& queue, const BatchPtr& batch, const Row& row);
  // Unless it may not.
  void try_again(Queue& queue, const BatchPtr& batch, const ClientError& why);
  void resolve(Queue& queue, const BatchPtr& batch, const Result& result);
  void fail_all(Queue& queue, const ClientError& error);
  void expire(Queue& queue);
  void restart(Queue& queue);
  bool has_open() const;
  // When something becomes due that nobody wakes us for; what did until `since` has been dealt with.
  MonotonicTime next_time(MonotonicTime since) const;
  void wake();

  Cluster& cluster_;
  const ProducerOptions options_;
  ProducerListener no_listener_;
  ProducerListener& listener_;
  uint64_t batches_ = 0;
  std::map<TopicPartition, Queue> queues_;
  std::map<BrokerId, Broker> brokers_;
  size_t buffered_bytes_ = 0;
  ProducerId producer_id_ = kNoProducerId;
  ProducerEpoch epoch_ = kNoProducerEpoch;
  bool is_closed_ = false;
  size_t flushing_ = 0;
  std::optional<runtime::Completion<runtime::Done>> waiter_;
  std::vector<runtime::Completion<runtime::Done>> flush_waiters_;
  runtime::TaskScope scope_;  // last: its frames use all of the above
};

}  // namespace varve::client
