// The second half of Producer: what a reply, or its absence, means for each batch.
#include <algorithm>

#include "sim/workload/producer.h"

namespace varve::sim {

using protocol::ErrorCode;

namespace {

// Answers that say for sure that the batch was not stored by this request.
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

void Producer::settle(Flight& flight, const std::optional<Response>& response) {
  std::map<std::pair<std::string, PartitionIndex>, const Row*> rows;
  if (response) {
    for (const auto& topic : response->responses) {
      auto name = by_id() ? flight.names.find(topic.topic_id) : flight.names.end();
      const std::string& topic_name = name == flight.names.end() ? topic.name : name->second;
      for (const Row& row : topic.partition_responses) rows[{topic_name, row.index}] = &row;
    }
    client_.context().findings.require(rows.size() == flight.batches.size(),
                                       "{} answers {} partitions of a Produce for {}", flight.host,
                                       rows.size(), flight.batches.size());
  }
  if (!response) host_ = client_.other_host(host_);
  for (auto& [queue, batch] : flight.batches) {
    batch->is_in_flight = false;
    auto row = rows.find({queue->topic, queue->partition});
    settle_one(flight, *queue, *batch, row == rows.end() ? nullptr : row->second);
  }
}

void Producer::settle_one(const Flight& flight, Queue& queue, Batch& batch, const Row* row) {
  client_.context().world.trace(
      "batch {}: {} from {}", batch.send->number,
      row == nullptr
          ? std::string("no answer")
          : fmt::format("error {}, offset {}", static_cast<int16_t>(row->error_code), row->base_offset),
      flight.host);
  if (row == nullptr) {
    batch.send->may_be_stored = true;
    try_again(queue, batch);
  } else if (row->error_code == ErrorCode::kNone) {
    acknowledged(flight, queue, batch, *row);
  } else {
    client_.context().world.happened(
        fmt::format("client.produce_error_{}", static_cast<int16_t>(row->error_code)));
    refused(flight, queue, batch, *row);
  }
}

void Producer::acknowledged(const Flight& flight, Queue& queue, Batch& batch, const Row& row) {
  PartitionKey at{flight.ids.at(queue.topic), queue.partition};
  std::string broker = who(flight.host, client_);
  // Without an offset it is a promise of the broker alone, who may not have heard of a deletion.
  bool is_stored = row.base_offset.value() >= 0;
  if (is_stored) client_.context().topics.called_present(at.topic, flight.sent_at, broker);
  bool may_be_early = client_.context().has_early_acks && !options_.is_idempotent;
  client_.context().findings.require(is_stored || may_be_early, "{} acknowledges batch {} without an offset",
                                     broker, batch.send->number);
  client_.context().history.acked(*batch.send, at, row.base_offset, broker);
  queue.has_landed = queue.has_landed || queue.life == at.topic;
  remove(queue, batch);
}

void Producer::refused(const Flight& flight, Queue& queue, Batch& batch, const Row& row) {
  std::string broker = who(flight.host, client_);
  WorkloadContext& context = client_.context();
  if (!says_not_stored(row.error_code)) batch.send->may_be_stored = true;
  switch (row.error_code) {
    case ErrorCode::kUnknownTopicOrPartition:
    case ErrorCode::kUnknownTopicId:
      if (by_id()) {
        context.topics.called_absent(flight.ids.at(queue.topic), flight.sent_at, broker);
      } else {
        context.topics.called_absent(queue.topic, flight.sent_at, broker);
      }
      topics_.erase(queue.topic);
      return try_again(queue, batch);
    case ErrorCode::kNotLeaderOrFollower:
    case ErrorCode::kKafkaStorageError:
      host_ = client_.other_host(host_);
      return try_again(queue, batch);
    case ErrorCode::kNotEnoughReplicas:
    case ErrorCode::kRequestTimedOut:
    case ErrorCode::kCoordinatorNotAvailable:
    case ErrorCode::kLeaderNotAvailable:
      return try_again(queue, batch);
    case ErrorCode::kOutOfOrderSequenceNumber: {
      bool is_first = queue.open.front().get() == &batch;
      if (!is_first || queue.must_restart) return try_again(queue, batch);
      // As Kafka's producer: what is before it is acknowledged by now, so the sequence seems broken. It may be that it
      // was not when the batch was judged, by another broker than its predecessor.
      context.findings.require(
          queue.may_have_gap || !batch.went_first,
          "{} calls batch {} ({}/{}/{}) of {}/{} out of order, and nothing before it is missing", broker,
          batch.send->number, batch.send->producer_id, batch.send->epoch, batch.send->first_sequence,
          queue.topic, queue.partition);
      queue.must_restart = true;
      return;
    }
    case ErrorCode::kInvalidProducerEpoch: {
      bool is_old = batch.send->epoch < epoch_;
      context.findings.require(is_old, "{} calls epoch {} of producer id {} old, which is the newest", broker,
                               batch.send->epoch, batch.send->producer_id);
      queue.must_restart = true;
      return;
    }
    default:
      context.findings.add(fmt::format("{} answers a batch with error {}: {}", broker,
                                       static_cast<int16_t>(row.error_code), row.error_message.value_or("")));
      context.history.gave_up(*batch.send);
      return remove(queue, batch);
  }
}

void Producer::try_again(Queue& queue, Batch& batch) {
  queue.not_before = client_.now() + Duration(client_.random().between(20'000'000, 200'000'000));
  if (options_.is_idempotent || options_.retries) return;
  client_.context().history.gave_up(*batch.send);
  remove(queue, batch);
}

void Producer::remove(Queue& queue, const Batch& batch) {
  std::erase_if(queue.open, [&batch](const BatchPtr& open) { return open.get() == &batch; });
}

// What is open for too long is given up; of an idempotent producer that breaks the sequence.
void Producer::expire(Queue& queue) {
  if (queue.must_restart) return;
  while (!queue.open.empty()) {
    Batch& first = *queue.open.front();
    bool is_late = options_.delivery_timeout != Duration::max() &&
                   client_.now() - first.made_at > options_.delivery_timeout;
    if (!is_late || first.is_in_flight) return;
    client_.context().world.happened("client.delivery_timeout");
    if (options_.is_idempotent && first.was_sent) {
      queue.must_restart = true;
      return;
    }
    client_.context().history.gave_up(*first.send);
    queue.open.pop_front();
  }
}

// The partition goes on under a new epoch: what may be stored is given up, the rest is numbered anew.
void Producer::restart(Queue& queue) {
  bool is_waiting = std::ranges::any_of(queue.open, [](const BatchPtr& open) { return open->is_in_flight; });
  if (!queue.must_restart || is_waiting) return;
  queue.must_restart = false;
  client_.context().world.happened("client.epoch_bumped");
  if (queue.producer_id == producer_id_ && queue.epoch == epoch_) ++epoch_;
  std::erase_if(queue.open, [&](const BatchPtr& open) {
    open->was_sent = false;
    if (!open->send->may_be_stored) return false;
    client_.context().history.gave_up(*open->send);
    return true;
  });
}

}  // namespace varve::sim
