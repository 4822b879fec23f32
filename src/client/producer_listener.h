// What becomes of a producer's batches, for owners that have to know more than the result of each record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/cluster.h"

namespace varve::client {

// Where a record is; of a batch: where its first one is.
struct Delivery {
  Uuid topic;
  PartitionIndex partition;
  Offset offset{-1};  // -1: stored, but nobody said where (acks=0, or a retry of what was stored long ago)
  WallTime append_time{-1};  // -1: the topic keeps the records' own
};

// A batch as it was sent last.
struct ProducedBatch {
  uint64_t number = 0;  // unlike that of the producer's other batches
  TopicPartition at;
  Uuid topic;   // the life of it
  Slice bytes;  // empty: never sent
  MonotonicTime made_at;
  uint32_t records = 0;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch epoch = kNoProducerEpoch;
  Sequence first_sequence = kNoSequence;
  bool went_first = false;     // all before it of its partition were resolved
  bool may_be_stored = false;  // by some try that got no clear answer
};

// One try to have a batch stored.
struct ProduceTry {
  BrokerId broker;
  MonotonicTime sent_at;
  size_t batches = 0;                          // in the request
  size_t rows = 0;                             // of the answer; 0: none came
  std::optional<protocol::ErrorCode> error{};  // nullopt: no answer about this batch
  Offset offset{-1};
  std::string message{};
};

// Called from inside of the producer's tasks; calls nothing of the producer but send().
class ProducerListener {
 public:
  virtual ~ProducerListener() = default;

  // The broker that gets what is to be sent next, where each of them takes everything. Asked anew before each request.
  virtual BrokerId route(const TopicPartition& /*at*/, BrokerId leader) { return leader; }
  // No connection to it could be made.
  virtual void unreachable(BrokerId /*broker*/) {}
  // It is in the next request on the connection.
  virtual void sending(const ProducedBatch& /*batch*/, const Cluster::ConnectionPtr& /*connection*/) {}
  // With acks=0 nothing is.
  virtual void answered(const ProducedBatch& /*batch*/, const ProduceTry& /*outcome*/) {}
  // Before its records have their results. An error means stored, or stored later, only if it may_be_stored.
  virtual void resolved(const ProducedBatch& /*batch*/, const ClientResult<Delivery>& /*result*/) {}
};

}  // namespace varve::client
