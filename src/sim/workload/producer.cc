#include "sim/workload/producer.h"

#include <algorithm>

#include "protocol/messages/init_producer_id.h"

namespace varve::sim {

using protocol::ErrorCode;
using runtime::Done;
using runtime::Task;

namespace {

// Kafka's broker remembers so many batches of a producer; its producer keeps within that.
constexpr size_t kOpenBatchesMax = 5;
constexpr size_t kPartitionsPerRequestMax = 4;
constexpr size_t kQueuedBatchesMax = 12;
constexpr Duration kIdlePause = 100ms;
constexpr uint32_t kRefreshPerMille = 20;
constexpr int64_t kSequences = int64_t{1} << 31;

}  // namespace

Producer::Producer(WorkloadContext& context, Process& process, ProducerOptions options)
    : client_(context, process, fmt::format("producer {}", options.number)),
      options_(std::move(options)),
      host_(client_.any_host()) {}

void Producer::start() {
  client_.scope().spawn(client_.executor(), "generate", generate());
  client_.scope().spawn(client_.executor(), "send", send_loop());
}

bool Producer::is_finished() const {
  return !is_generating_ && requests_in_flight_ == 0 &&
         std::ranges::all_of(queues_, [](const auto& entry) { return entry.second.open.empty(); });
}

std::string Producer::describe() const {
  size_t open = 0;
  for (const auto& [key, queue] : queues_) open += queue.open.size();
  return fmt::format("{}: {} batches open, {} requests under way, id {} epoch {}", name(), open,
                     requests_in_flight_, producer_id_, epoch_);
}

Task<> Producer::generate() {
  while (!client_.context().is_over && batches_made_ < options_.batches_max) {
    co_await runtime::sleep_for(Duration(client_.random().between(0, 2 * options_.mean_gap.count())));
    if (client_.context().is_over) break;
    // Now and then several at once, so that requests and objects hold more than one.
    size_t count = client_.random().chance(1, 4) ? 1 + client_.random().below(6) : 1;
    for (size_t i = 0; i < count; ++i) make_batch();
    wake();
  }
  is_generating_ = false;
  wake();
}

void Producer::make_batch() {
  const std::string& topic = options_.topics[client_.random().below(options_.topics.size())];
  auto known = topics_.find(topic);
  uint32_t partitions = known == topics_.end() ? 1 : known->second.partitions;
  PartitionIndex partition(static_cast<int32_t>(client_.random().below(partitions)));
  Queue& queue = queues_[{topic, partition}];
  queue.topic = topic;
  queue.partition = partition;
  if (queue.open.size() >= kQueuedBatchesMax) return;
  ++batches_made_;
  auto batch = std::make_shared<Batch>();
  batch->send = &client_.context().history.make_send(options_.number, topic, partition);
  batch->send->is_once = options_.is_idempotent || !options_.retries;
  batch->send->records = static_cast<uint32_t>(client_.random().between(1, options_.records_max));
  batch->made_at = client_.now();
  batch->shape = {.number = batch->send->number,
                  .records = batch->send->records,
                  .value_bytes = static_cast<uint32_t>(client_.random().between(8, options_.value_bytes_max)),
                  .codec = options_.codec,
                  .timestamp = client_.wall_now()};
  queue.open.push_back(std::move(batch));
}

Task<> Producer::send_loop() {
  while (!is_finished()) {
    bool has_sent = false;
    if (requests_in_flight_ < options_.requests_in_flight_max) has_sent = co_await send_one();
    if (has_sent) continue;
    waiter_.emplace();
    co_await runtime::wait_until(*waiter_, client_.now() + kIdlePause, Done{});
  }
}

Task<bool> Producer::send_one() {
  if (options_.is_idempotent && producer_id_ == kNoProducerId && !co_await get_identity()) co_return false;
  for (const std::string& topic : options_.topics) {
    // Partitions may have been added.
    if (!topics_.contains(topic) || client_.random().chance(kRefreshPerMille, 1000)) co_await look_up(topic);
  }
  if (client_.random().chance(options_.switch_per_mille, 1000)) host_ = client_.other_host(host_);
  std::shared_ptr<KafkaConnection> connection = co_await client_.connect(host_);
  if (connection == nullptr) {
    host_ = client_.other_host(host_);
    co_return false;
  }
  Flight flight = collect();
  if (flight.batches.empty()) co_return false;
  for (auto& [queue, batch] : flight.batches) {
    // By name the broker may find any life of the topic; only lives that last are named.
    client_.context().history.sending(*batch->send, topics_.at(queue->topic).id, connection->number(),
                                      ++places_);
  }
  bool has_reply = options_.acks != 0;
  auto posted = connection->post(request_for(flight), options_.version, has_reply);
  if (!has_reply) {
    for (auto& [queue, batch] : flight.batches) {
      batch->send->may_be_stored = true;
      client_.context().history.gave_up(*batch->send);
      remove(*queue, *batch);
    }
    co_return true;
  }
  ++requests_in_flight_;
  client_.scope().spawn(client_.executor(), "await reply",
                        await_reply(connection, posted, std::move(flight)));
  co_return true;
}

Task<bool> Producer::get_identity() {
  protocol::InitProducerIdRequest request;
  request.transactional_id = std::nullopt;
  request.transaction_timeout_ms = 60'000;
  int16_t version = client_.draw_version<protocol::InitProducerIdRequest>();
  auto response = co_await client_.ask(host_, std::move(request), version);
  if (!response || response->error_code != ErrorCode::kNone) {
    host_ = client_.other_host(host_);
    co_return false;
  }
  producer_id_ = response->producer_id;
  epoch_ = response->producer_epoch;
  co_return true;
}

Task<> Producer::look_up(std::string topic) {
  auto found = co_await client_.find_topic(client_.any_host(), topic);
  if (!found) co_return;
  // Another life is taken up when the broker has said that this one is gone.
  auto known = topics_.find(topic);
  if (known == topics_.end() || known->second.id == found->id) topics_.insert_or_assign(topic, *found);
}

Producer::Flight Producer::collect() {
  Flight flight;
  flight.host = host_;
  flight.sent_at = client_.now();
  for (auto& [key, queue] : queues_) {
    if (flight.batches.size() == kPartitionsPerRequestMax) break;
    auto topic = topics_.find(queue.topic);
    if (topic == topics_.end()) continue;
    expire(queue);
    restart(queue);
    Batch* next = next_of(queue, topic->second.id);
    if (next == nullptr) continue;
    if (queue.life != topic->second.id) {
      queue.has_landed = false;
      queue.may_have_gap = !queue.life.is_zero();
    }
    queue.life = topic->second.id;
    if (options_.is_idempotent && !next->was_sent) number(queue, *next);
    if (next->send->bytes.empty()) next->send->bytes = make_sim_batch(next->shape);
    next->is_in_flight = true;
    next->was_sent = true;
    next->went_first = queue.open.front().get() == next;
    flight.names[topic->second.id] = queue.topic;
    flight.ids[queue.topic] = topic->second.id;
    auto at = std::ranges::find_if(queue.open, [next](const BatchPtr& open) { return open.get() == next; });
    flight.batches.emplace_back(&queue, *at);
  }
  return flight;
}

Producer::Batch* Producer::next_of(Queue& queue, Uuid life) {
  if (queue.must_restart || client_.now() < queue.not_before) return nullptr;
  // Whatever is on its way to a former life of the topic has to come back first, or it would be overtaken.
  bool is_waiting = std::ranges::any_of(queue.open, [](const BatchPtr& open) { return open->is_in_flight; });
  if (queue.life != life && is_waiting) return nullptr;
  // A partition that knows nothing of the producer takes any sequence: two brokers at once might begin with the later.
  bool goes_alone = options_.is_idempotent && (queue.life != life || !queue.has_landed);
  for (size_t i = 0; i < std::min(queue.open.size(), kOpenBatchesMax); ++i) {
    Batch& batch = *queue.open[i];
    if (batch.is_in_flight && goes_alone) return nullptr;
    if (batch.is_in_flight) continue;
    // What is sent again goes only when all before it is resolved.
    if (options_.is_idempotent && batch.was_sent && i > 0) return nullptr;
    // Through several brokers later ones may be resolved before the first: it must not be forgotten meanwhile.
    bool is_far_ahead = i > 0 && queue.numbered - queue.open.front()->ordinal >= kOpenBatchesMax;
    if (options_.is_idempotent && is_far_ahead) return nullptr;
    return &batch;
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
    }
  }
  batch.ordinal = queue.numbered++;
  Send& send = *batch.send;
  send.producer_id = batch.shape.producer_id = queue.producer_id;
  send.epoch = batch.shape.epoch = queue.epoch;
  send.first_sequence = batch.shape.first_sequence = Sequence(static_cast<int32_t>(queue.next_sequence));
  queue.next_sequence = (queue.next_sequence + send.records) % kSequences;
  send.bytes = make_sim_batch(batch.shape);
}

protocol::ProduceRequest Producer::request_for(const Flight& flight) const {
  protocol::ProduceRequest request;
  request.acks = options_.acks;
  request.timeout_ms = static_cast<int32_t>(options_.broker_timeout / 1ms);
  for (const auto& [queue, batch] : flight.batches) {
    bool is_same = !request.topic_data.empty() && request.topic_data.back().name == queue->topic;
    if (!is_same) {
      request.topic_data.emplace_back().name = queue->topic;
      request.topic_data.back().topic_id = flight.ids.at(queue->topic);
    }
    auto& data = request.topic_data.back().partition_data.emplace_back();
    data.index = queue->partition;
    data.records = batch->send->bytes;
  }
  return request;
}

Task<> Producer::await_reply(std::shared_ptr<KafkaConnection> connection, KafkaConnection::Posted posted,
                             Flight flight) {
  MonotonicTime deadline = flight.sent_at + options_.request_timeout;
  auto response = co_await KafkaConnection::reply<protocol::ProduceRequest>(connection, posted,
                                                                            options_.version, deadline);
  --requests_in_flight_;
  settle(flight, response);
  wake();
}

void Producer::wake() {
  if (waiter_) waiter_->set(Done{});
}

}  // namespace varve::sim
