#include "client/producer.h"

#include <algorithm>

#include "protocol/messages/init_producer_id.h"

namespace varve::client {

using protocol::ErrorCode;
using protocol::records::HeaderView;
using runtime::Completion;
using runtime::Done;
using runtime::Task;

namespace {

// Kafka's broker remembers so many batches of a producer; its producer keeps within that.
constexpr size_t kOpenBatchesMax = 5;
constexpr int64_t kSequences = int64_t{1} << 31;
constexpr int16_t kFirstProduceById = 13;
constexpr int16_t kFirstProduceWithZstd = 7;
// Lengths and deltas of one record, at most.
constexpr size_t kRecordOverheadBytes = 32;
constexpr int32_t kTransactionTimeoutMs = 60'000;

size_t bytes_of(const std::optional<std::string>& text) { return text ? text->size() : 0; }

size_t bytes_of(const NewRecord& record) {
  size_t bytes = kRecordOverheadBytes + bytes_of(record.key) + bytes_of(record.value);
  for (const auto& [name, value] : record.headers)
    bytes += kRecordOverheadBytes + name.size() + bytes_of(value);
  return bytes;
}

std::optional<ByteView> view_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return as_bytes(*text);
}

Completion<Producer::Result> already(Producer::Result result) {
  Completion<Producer::Result> completion;
  completion.set(std::move(result));
  return completion;
}

}  // namespace

Producer::Producer(Cluster& cluster, ProducerOptions options, ProducerListener* listener)
    : cluster_(cluster), options_(options), listener_(listener == nullptr ? no_listener_ : *listener) {
  CHECK(!options_.is_idempotent || options_.acks == -1, "an idempotent producer waits for all");
  CHECK(!options_.is_idempotent || options_.sends_again, "an idempotent producer sends again");
  CHECK(options_.requests_in_flight_max >= 1 && options_.requests_in_flight_max <= kOpenBatchesMax,
        "requests in flight");
}

void Producer::start() { scope_.spawn(cluster_.executor(), "producer", send_loop()); }

Completion<Producer::Result> Producer::send(const std::string& topic, PartitionIndex partition,
                                            const NewRecord& record) {
  size_t bytes = bytes_of(record);
  if (is_closed_) return already(failed(ClientErrc::kStopped, "the producer is closed"));
  if (bytes > options_.request_bytes_max) {
    return already(failed(ClientErrc::kOverLimit, fmt::format("a record of {} bytes", bytes)));
  }
  if (buffered_bytes_ + bytes > options_.buffer_bytes_max) {
    return already(failed(ClientErrc::kOverLimit, "the producer's buffer is full"));
  }
  Queue& queue = queues_[{topic, partition}];
  queue.at = {topic, partition};
  bool fits = !queue.open.empty() && queue.open.back()->bytes.empty() &&
              queue.open.back()->builder.bytes() + bytes <= options_.batch_bytes_max;
  if (!fits) {
    queue.open.push_back(std::make_shared<Batch>(protocol::records::BatchOptions{.codec = options_.codec}));
    queue.open.back()->number = ++batches_;
    queue.open.back()->at = queue.at;
    queue.open.back()->made_at = cluster_.now();
  }
  Batch& batch = *queue.open.back();
  std::vector<HeaderView> headers;
  for (const auto& [name, value] : record.headers) headers.push_back({name, view_of(value)});
  batch.builder.add({.timestamp = record.timestamp.value_or(cluster_.wall_now()),
                     .key = view_of(record.key),
                     .value = view_of(record.value),
                     .headers = headers});
  ++batch.records;
  batch.buffered_bytes += bytes;
  buffered_bytes_ += bytes;
  wake();
  return batch.waiting.emplace_back();
}

bool Producer::has_open() const {
  return std::ranges::any_of(queues_, [](const auto& entry) { return !entry.second.open.empty(); });
}

Task<> Producer::flush() {
  ++flushing_;
  wake();
  while (has_open() && !is_closed_) {
    Completion<Done> resolved = flush_waiters_.emplace_back();
    runtime::TaskContext& context = co_await runtime::this_context();
    if (context.stop.stop_requested()) break;
    co_await runtime::wait_until(resolved, MonotonicTime::never(), Done{});
  }
  --flushing_;
}

Task<> Producer::close() {
  is_closed_ = true;
  co_await scope_.close();
  for (auto& [at, queue] : queues_) {
    for (const BatchPtr& batch : queue.open) {
      batch->may_be_stored = batch->may_be_stored || batch->is_in_flight;
      batch->is_in_flight = false;
    }
    fail_all(queue, {ClientErrc::kStopped, {}, "the producer is closed"});
  }
}

Task<> Producer::send_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  while (!context.stop.stop_requested()) {
    waiter_.emplace();
    MonotonicTime begun = cluster_.now();
    for (auto& [at, queue] : queues_) {
      expire(queue);
      restart(queue);
    }
    bool needs_identity = options_.is_idempotent && producer_id_ == kNoProducerId && has_open();
    if (needs_identity && !co_await get_identity()) {
      co_await runtime::sleep_for(cluster_.backoff(1));
      continue;
    }
    for (const auto& [broker, queues] : co_await group_by_broker()) send_to(broker, queues);
    co_await runtime::wait_until(*waiter_, next_time(begun), Done{});
  }
}

MonotonicTime Producer::next_time(MonotonicTime since) const {
  MonotonicTime next = MonotonicTime::never();
  for (const auto& [at, queue] : queues_) {
    if (queue.open.empty()) continue;
    MonotonicTime end = queue.open.front()->made_at + options_.delivery_timeout;
    for (MonotonicTime when : {end, queue.open.back()->made_at + options_.linger, queue.not_before}) {
      // What is late is under way, and wakes us when it comes back.
      if (when > since) next = std::min(next, when);
    }
  }
  for (const auto& [id, broker] : brokers_) {
    if (broker.not_before > since) next = std::min(next, broker.not_before);
  }
  return next;
}

Task<bool> Producer::get_identity() {
  protocol::InitProducerIdRequest request;
  request.transactional_id = std::nullopt;
  request.transaction_timeout_ms = kTransactionTimeoutMs;
  auto response = co_await cluster_.ask_any(std::move(request));
  if (!response) co_return false;
  if (response->error_code != ErrorCode::kNone) {
    if (!protocol::is_retriable(response->error_code)) {
      ClientError error = refused(response->error_code, "InitProducerId").error();
      for (auto& [at, queue] : queues_) fail_all(queue, error);
    }
    co_return false;
  }
  producer_id_ = response->producer_id;
  epoch_ = response->producer_epoch;
  co_return true;
}

Task<std::map<BrokerId, std::vector<Producer::Queue*>>> Producer::group_by_broker() {
  std::map<BrokerId, std::vector<Queue*>> groups;
  for (auto& [at, queue] : queues_) {
    if (cluster_.now() < queue.not_before || next_of(queue) == nullptr) continue;
    auto topic = co_await cluster_.topic(at.topic);
    auto index = static_cast<size_t>(at.partition.value());
    bool has_leader = topic && index < topic->leaders.size() && topic->leaders[index] != kNoBroker;
    if (!topic && !topic.error().is_retriable()) {
      fail_all(queue, topic.error());
    } else if (!has_leader) {
      cluster_.forget_topic(at.topic);
      queue.not_before = cluster_.now() + cluster_.backoff(2);
    } else {
      enter(queue, topic->id);
      if (!queue.must_restart) groups[listener_.route(at, topic->leaders[index])].push_back(&queue);
    }
  }
  co_return groups;
}

void Producer::send_to(BrokerId id, const std::vector<Queue*>& queues) {
  Broker& broker = brokers_[id];
  if (broker.in_flight >= options_.requests_in_flight_max || cluster_.now() < broker.not_before) return;
  Cluster::ConnectionPtr connection = cluster_.find_open(id);
  if (connection == nullptr) {
    if (!broker.is_connecting) scope_.spawn(cluster_.executor(), "connect", connect(id));
    broker.is_connecting = true;
    return;
  }
  VersionRange versions;
  if (options_.codec == Codec::kZstd) versions.low = kFirstProduceWithZstd;
  bool are_named = std::ranges::any_of(queues, [](const Queue* queue) { return queue->topic.is_zero(); });
  if (are_named) versions.high = kFirstProduceById - 1;
  auto version = cluster_.version_of<protocol::ProduceRequest>(*connection, versions);
  if (!version) {
    for (Queue* queue : queues) fail_all(*queue, version.error());
    return;
  }
  Flight flight = collect(id, queues);
  if (flight.batches.empty()) return;
  for (const auto& [queue, batch] : flight.batches) listener_.sending(*batch, connection);
  protocol::ProduceRequest request = request_for(flight);
  if (options_.acks == 0) {
    bool is_posted = connection->post_without_reply(request, *version);
    Result result = Delivery{};
    if (!is_posted) result = failed(ClientErrc::kDisconnected, "the connection is gone");
    for (auto& [queue, batch] : flight.batches) {
      batch->may_be_stored = is_posted;
      resolve(*queue, batch, result);
    }
    return wake();
  }
  ++broker.in_flight;
  Connection::Posted posted = connection->post(request, *version);
  scope_.spawn(cluster_.executor(), "produce",
               await_reply(std::move(connection), std::move(posted), *version, std::move(flight)));
  // The same broker may get the next batches at once.
  wake();
}

Task<> Producer::connect(BrokerId id) {
  auto connection = co_await cluster_.connect(id);
  Broker& broker = brokers_[id];
  broker.is_connecting = false;
  broker.failures = connection ? 0 : broker.failures + 1;
  if (!connection) {
    broker.not_before = cluster_.now() + cluster_.backoff(broker.failures);
    // It may be led elsewhere by now.
    for (const auto& [at, queue] : queues_) cluster_.forget_topic(at.topic);
    listener_.unreachable(id);
  }
  wake();
}

Producer::Flight Producer::collect(BrokerId broker, const std::vector<Queue*>& queues) {
  Flight flight{broker, cluster_.now(), {}};
  size_t bytes = 0;
  for (Queue* queue : queues) {
    BatchPtr next = next_of(*queue);
    if (next == nullptr) continue;
    // What stays behind keeps its place in the sequence to itself, and goes on growing.
    size_t size = next->bytes.empty() ? next->builder.bytes() : next->bytes.size();
    if (!flight.batches.empty() && bytes + size > options_.request_bytes_max) continue;
    if (options_.is_idempotent && !next->was_sent) number(*queue, *next);
    if (next->bytes.empty()) next->bytes = Slice::take(next->builder.build());
    bytes += next->bytes.size();
    next->is_in_flight = true;
    next->was_sent = true;
    next->went_first = queue->open.front() == next;
    next->topic = queue->topic;
    ++next->tries;
    flight.batches.emplace_back(queue, std::move(next));
  }
  return flight;
}

bool Producer::is_due(const Queue& queue, const BatchPtr& batch) const {
  bool is_full = queue.open.back() != batch || batch->builder.bytes() >= options_.batch_bytes_max;
  return is_full || batch->was_sent || flushing_ > 0 || !batch->bytes.empty() ||
         cluster_.now() >= batch->made_at + options_.linger;
}

Producer::BatchPtr Producer::next_of(Queue& queue) const {
  if (queue.must_restart || cluster_.now() < queue.not_before) return nullptr;
  // A partition that knows nothing of the producer takes any sequence: the second batch might be taken for the first.
  bool goes_alone = options_.is_idempotent && !queue.has_landed;
  for (size_t i = 0; i < std::min(queue.open.size(), kOpenBatchesMax); ++i) {
    const BatchPtr& batch = queue.open[i];
    if (batch->is_in_flight && goes_alone) return nullptr;
    if (batch->is_in_flight) continue;
    // What is sent again goes only when all before it is resolved.
    if (options_.is_idempotent && batch->was_sent && i > 0) return nullptr;
    // Later ones may be resolved before the first, which must not be forgotten meanwhile.
    bool is_far_ahead = i > 0 && queue.numbered - queue.open.front()->ordinal >= kOpenBatchesMax;
    if (options_.is_idempotent && is_far_ahead) return nullptr;
    return is_due(queue, batch) ? batch : nullptr;
  }
  return nullptr;
}

void Producer::number(Queue& queue, Batch& batch) {
  if (queue.producer_id != producer_id_ || queue.epoch != epoch_) {
    // Under a new identity the partition begins anew, once nothing of the old one is open.
    bool has_old = std::ranges::any_of(queue.open, [](const BatchPtr& open) { return open->was_sent; });
    if (!has_old) {
      queue.producer_id = producer_id_;
      queue.epoch = epoch_;
      queue.next_sequence = 0;
      queue.has_landed = false;
    }
  }
  batch.ordinal = queue.numbered++;
  batch.producer_id = queue.producer_id;
  batch.epoch = queue.epoch;
  batch.first_sequence = Sequence(static_cast<int32_t>(queue.next_sequence));
  queue.next_sequence = (queue.next_sequence + batch.records) % kSequences;
  if (batch.bytes.empty()) {
    batch.builder.set_producer(batch.producer_id, batch.epoch, batch.first_sequence);
    return;
  }
  // Sent under another number before.
  std::vector<uint8_t> bytes(batch.bytes.view().begin(), batch.bytes.view().end());
  auto header = protocol::records::BatchHeader::decode(bytes);
  header.producer_id = batch.producer_id;
  header.producer_epoch = batch.epoch;
  header.base_sequence = batch.first_sequence;
  header.encode(bytes);
  protocol::records::seal(bytes);
  batch.bytes = Slice::take(std::move(bytes));
}

protocol::ProduceRequest Producer::request_for(const Flight& flight) const {
  protocol::ProduceRequest request;
  request.acks = options_.acks;
  request.timeout_ms = static_cast<int32_t>(options_.ack_timeout / 1ms);
  for (const auto& [queue, batch] : flight.batches) {
    // Partitions may have been looked up in two lives of their topic.
    bool is_same = !request.topic_data.empty() && request.topic_data.back().name == queue->at.topic &&
                   request.topic_data.back().topic_id == queue->topic;
    if (!is_same) {
      request.topic_data.emplace_back().name = queue->at.topic;
      request.topic_data.back().topic_id = queue->topic;
    }
    auto& row = request.topic_data.back().partition_data.emplace_back();
    row.index = queue->at.partition;
    row.records = batch->bytes;
  }
  return request;
}

void Producer::wake() {
  if (waiter_) waiter_->set(Done{});
}

}  // namespace varve::client
