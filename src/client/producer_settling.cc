// The second half of Producer: what a reply, or its absence, means for each batch.
#include <algorithm>

#include "client/producer.h"

namespace varve::client {

using protocol::ErrorCode;
using runtime::Done;
using runtime::Task;

namespace {

// Whether a batch may be stored that was answered so.
bool leaves_doubt(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnknownServerError:
    case ErrorCode::kRequestTimedOut:
    case ErrorCode::kNetworkException:
    case ErrorCode::kNotEnoughReplicasAfterAppend:
    case ErrorCode::kKafkaStorageError:
      return true;
    default:
      return false;
  }
}

}  // namespace

Task<> Producer::await_reply(Cluster::ConnectionPtr connection, Connection::Posted posted, int16_t version,
                             Flight flight) {
  auto response = co_await Connection::reply<protocol::ProduceRequest>(
      std::move(connection), std::move(posted), version, flight.sent_at + options_.request_timeout);
  --brokers_[flight.broker].in_flight;
  settle(flight, response);
  wake();
}

void Producer::settle(const Flight& flight, const ClientResult<protocol::ProduceResponse>& response) {
  std::map<std::pair<Uuid, PartitionIndex>, const Row*> by_id;
  std::map<TopicPartition, const Row*> by_name;
  ProduceTry outcome{.broker = flight.broker, .sent_at = flight.sent_at, .batches = flight.batches.size()};
  if (response) {
    for (const auto& topic : response->responses) {
      for (const Row& row : topic.partition_responses) {
        ++outcome.rows;
        by_id[{topic.topic_id, row.index}] = &row;
        by_name[{topic.name, row.index}] = &row;
      }
    }
  }
  for (const auto& [queue, batch] : flight.batches) {
    batch->is_in_flight = false;
    const Row* row = nullptr;
    // Rows have a name up to version 12, then an id.
    if (auto named = by_name.find(queue->at); named != by_name.end()) {
      row = named->second;
    } else if (auto found = by_id.find({batch->topic, queue->at.partition}); found != by_id.end()) {
      row = found->second;
    }
    bool is_clear = row != nullptr && !leaves_doubt(row->error_code);
    batch->may_be_stored = batch->may_be_stored || !is_clear;
    outcome.error = row == nullptr ? std::nullopt : std::optional(row->error_code);
    outcome.offset = row == nullptr ? Offset(-1) : row->base_offset;
    outcome.message = row == nullptr ? "" : row->error_message.value_or("");
    listener_.answered(*batch, outcome);
    settle_one(*queue, batch, row);
  }
}

void Producer::settle_one(Queue& queue, const BatchPtr& batch, const Row* row) {
  if (row == nullptr) {
    cluster_.forget_topic(queue.at.topic);
    return try_again(queue, batch, {ClientErrc::kDisconnected, {}, "no answer to Produce"});
  }
  if (row->error_code == ErrorCode::kNone) {
    queue.has_landed = true;
    return resolve(
        queue, batch,
        Delivery{batch->topic, queue.at.partition, row->base_offset, WallTime(row->log_append_time_ms)});
  }
  // Stored by an earlier try, too long ago for the broker to know where.
  if (row->error_code == ErrorCode::kDuplicateSequenceNumber) {
    queue.has_landed = true;
    return resolve(queue, batch, Delivery{batch->topic, queue.at.partition, Offset(-1), WallTime(-1)});
  }
  refused_by(queue, batch, *row);
}

void Producer::refused_by(Queue& queue, const BatchPtr& batch, const Row& row) {
  ClientError error = refused(row.error_code, fmt::format("Produce to {}", queue.at.to_string())).error();
  if (row.error_message) error.message += ": " + *row.error_message;
  switch (row.error_code) {
    case ErrorCode::kOutOfOrderSequenceNumber:
      // With nothing open before it something acknowledged is missing: the sequence is broken.
      if (batch->went_first && options_.is_idempotent) queue.must_restart = true;
      return try_again(queue, batch, error);
    case ErrorCode::kInvalidProducerEpoch:
    case ErrorCode::kUnknownProducerId:
      if (!options_.is_idempotent) break;
      queue.must_restart = true;
      return try_again(queue, batch, error);
    default:
      break;
  }
  if (protocol::is_retriable(row.error_code)) {
    cluster_.forget_topic(queue.at.topic);
    return try_again(queue, batch, error);
  }
  // What is numbered behind it has a gap before it now.
  if (options_.is_idempotent) queue.must_restart = true;
  resolve(queue, batch, std::unexpected(std::move(error)));
}

void Producer::try_again(Queue& queue, const BatchPtr& batch, const ClientError& why) {
  queue.not_before = cluster_.now() + cluster_.backoff(std::min<size_t>(batch->tries, 5));
  if (!options_.sends_again) resolve(queue, batch, std::unexpected(why));
}

void Producer::resolve(Queue& queue, const BatchPtr& batch, const Result& result) {
  BatchPtr resolved = batch;  // `batch` may lie in the queue
  std::erase(queue.open, resolved);
  buffered_bytes_ -= resolved->buffered_bytes;
  listener_.resolved(*resolved, result);
  for (size_t i = 0; i < resolved->waiting.size(); ++i) {
    Result of_record = result;
    bool has_offset = of_record && of_record->offset.value() >= 0;
    if (has_offset) of_record->offset = of_record->offset.plus(static_cast<int64_t>(i));
    resolved->waiting[i].set(std::move(of_record));
  }
  for (const auto& waiter : std::exchange(flush_waiters_, {})) waiter.set(Done{});
}

// What is under way has an answer to come, and is resolved by that.
void Producer::fail_all(Queue& queue, const ClientError& error) {
  for (const BatchPtr& batch : std::deque<BatchPtr>(queue.open)) {
    if (batch->is_in_flight) continue;
    if (options_.is_idempotent && batch->was_sent) queue.must_restart = true;
    resolve(queue, batch, std::unexpected(error));
  }
}

// What is open for too long is given up; of an idempotent producer that breaks the sequence.
void Producer::expire(Queue& queue) {
  while (!queue.must_restart && !queue.open.empty()) {
    BatchPtr first = queue.open.front();
    bool is_late = cluster_.now() - first->made_at >= options_.delivery_timeout;
    if (!is_late || first->is_in_flight) return;
    if (options_.is_idempotent && first->was_sent) {
      queue.must_restart = true;
      return;
    }
    resolve(queue, first, failed(ClientErrc::kTimeout, "not delivered within the delivery timeout"));
  }
}

// The partition goes on under a new epoch: what may be stored is given up, the rest is numbered anew.
void Producer::restart(Queue& queue) {
  bool is_waiting = std::ranges::any_of(queue.open, [](const BatchPtr& open) { return open->is_in_flight; });
  if (!queue.must_restart || is_waiting) return;
  queue.must_restart = false;
  queue.has_landed = false;
  if (queue.producer_id == producer_id_ && queue.epoch == epoch_) {
    // The last epoch of an id is followed by another id.
    if (epoch_.value() == INT16_MAX)
      producer_id_ = kNoProducerId;
    else
      ++epoch_;
  }
  for (const BatchPtr& batch : std::deque<BatchPtr>(queue.open)) {
    batch->was_sent = false;
    if (!batch->may_be_stored) continue;
    resolve(queue, batch,
            failed(ClientErrc::kTimeout, "it may have been stored, but nobody can tell any more"));
  }
  expire(queue);
}

void Producer::enter(Queue& queue, Uuid topic) {
  if (queue.topic == topic) return;
  bool is_first = queue.topic.is_zero() && !queue.has_landed;
  bool was_used = std::ranges::any_of(queue.open, [](const BatchPtr& open) { return open->was_sent; });
  if (!is_first && options_.is_idempotent) {
    // What went to the topic's former life comes back first, and what may lie there is not sent twice.
    queue.must_restart = true;
    restart(queue);
    if (queue.must_restart) return;
  } else if (was_used &&
             std::ranges::any_of(queue.open, [](const BatchPtr& open) { return open->is_in_flight; })) {
    return;
  }
  queue.topic = topic;
}

}  // namespace varve::client
