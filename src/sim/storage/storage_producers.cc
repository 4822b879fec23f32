#include "sim/storage/storage_producers.h"

#include <algorithm>

namespace varve::sim {
namespace {

using runtime::Task;
using storage::AppendResult;
using storage::AppendVerdict;

// A reply of a broker that died never comes.
constexpr Duration kPatience = 90s;
constexpr size_t kWindowMax = 4;

runtime::Completion<storage::AppendResults> send(StorageBroker& broker, const SentBatch& batch,
                                                 uint64_t connection) {
  storage::AppendBatch append;
  append.partition = batch.partition;
  append.index = PartitionIndex(0);
  append.bytes = batch.bytes;
  append.records = batch.records;
  append.max_timestamp = batch.name;
  append.producer_id = batch.producer_id;
  if (batch.producer_id != kNoProducerId) append.producer_epoch = ProducerEpoch(0);
  append.first_sequence = batch.first_sequence;
  storage::AppendRequest request{
      .connection = connection, .frame_bytes = batch.bytes.size(), .batches = {append}};
  return broker.ingest().submit(std::move(request));
}

Task<std::optional<AppendResult>> wait_for(World& world,
                                           runtime::Completion<storage::AppendResults> completion) {
  storage::AppendResults results = co_await runtime::wait_until(completion, world.now() + kPatience, {});
  if (results.empty()) co_return std::nullopt;
  std::string name(storage::append_verdict_name(results[0].verdict));
  std::replace(name.begin(), name.end(), ' ', '_');
  world.happened("produce." + name);
  co_return results[0];
}

Duration draw(Random& random, Duration low, Duration high) {
  return Duration(random.between(low.count(), high.count()));
}

size_t draw_value_bytes(Random& random) {
  return static_cast<size_t>(random.between(1, random.chance(1, 4) ? 2'000 : 200));
}

}  // namespace

StorageBroker* StorageCluster::choose(Random& random) const {
  std::vector<StorageBroker*> serving;
  for (StorageBroker* broker : brokers_) {
    if (broker->is_serving()) serving.push_back(broker);
  }
  return serving.empty() ? nullptr : serving[random.below(serving.size())];
}

uint64_t StorageCluster::connection(size_t client, StorageBroker& broker) {
  uint64_t fresh = connections_.size() + 1;
  return connections_.emplace(std::tuple(client, broker.options().id, broker.process().life()), fresh)
      .first->second;
}

Task<> PlainProducer::run() {
  StorageBroker* broker = nullptr;
  while (batches_left_ > 0) {
    if (broker == nullptr || !broker->is_serving() || random_.chance(1, 10))
      broker = cluster_.choose(random_);
    if (broker != nullptr) {
      uint64_t connection = cluster_.connection(client_, *broker);
      uint64_t life = broker->process().life();
      PartitionHandle partition = cluster_.partitions[random_.below(cluster_.partitions.size())];
      if (cluster_.brief_partition && random_.chance(1, 5)) partition = *cluster_.brief_partition;
      std::vector<SentBatch*> window;
      std::vector<runtime::Completion<storage::AppendResults>> replies;
      for (size_t n = std::min(batches_left_, 1 + random_.below(2 * kWindowMax)); n > 0; --n) {
        uint32_t records = static_cast<uint32_t>(1 + random_.below(3));
        window.push_back(&ledger_.make(partition, records, draw_value_bytes(random_), kNoProducerId,
                                       kNoSequence, connection));
        replies.push_back(send(*broker, *window.back(), connection));
      }
      batches_left_ -= window.size();
      std::vector<std::optional<AppendResult>> results;
      for (auto& reply : replies) results.push_back(co_await wait_for(cluster_.world(), reply));
      judge(*broker, life, window, results);
    }
    co_await runtime::sleep_for(draw(random_, 0ms, 700ms));
  }
}

void PlainProducer::judge(StorageBroker& broker, uint64_t life, const std::vector<SentBatch*>& window,
                          const std::vector<std::optional<AppendResult>>& results) {
  // All were there when the first failed, so what fails before its commit fails those behind it (invariant 9).
  const SentBatch* failed = nullptr;
  for (size_t i = 0; i < window.size(); ++i) {
    if (!results[i]) return;
    const AppendResult& result = *results[i];
    if (storage::is_success(result.verdict)) {
      ledger_.findings().require(failed == nullptr, "batch {} was stored although {} of its chain had failed",
                                 window[i]->name, failed == nullptr ? 0 : failed->name);
      if (result.verdict == AppendVerdict::kBuffered) {
        promises.push_back({window[i], &broker, life});
      } else {
        ledger_.acknowledged(*window[i], result);
      }
    } else if (result.verdict == AppendVerdict::kTooManyWaiting) {
      // Refused as it came: those behind it may come when there is room again.
    } else if (storage::is_retriable(result.verdict)) {
      failed = window[i];
    } else {
      ledger_.findings().require(result.verdict == AppendVerdict::kUnknownPartition &&
                                     window[i]->partition != cluster_.partitions.front(),
                                 "batch {} without a producer id: {}", window[i]->name,
                                 storage::append_verdict_name(result.verdict));
    }
  }
}

Task<> IdempotentProducer::get_id() {
  while (id_ == kNoProducerId) {
    if (StorageBroker* broker = cluster_.choose(random_)) {
      metadata::ProposeResult timeout = fail(metadata::ProposeErrc::kUnknown, "");
      auto result = co_await runtime::wait_until(broker->propose(metadata::AllocateProducerIds{.count = 1}),
                                                 cluster_.world().now() + kPatience, timeout);
      if (result) id_ = result->at(0).first_producer_id;
    }
    co_await runtime::sleep_for(100ms);
  }
}

Task<> IdempotentProducer::run() {
  co_await get_id();
  while (batches_left_ > 0) {
    PartitionHandle partition = cluster_.partitions[random_.below(cluster_.partitions.size())];
    // What was begun is finished, so that the end is not held up by one stream.
    for (auto& [handle, stream] : streams_) {
      if (!stream.open.empty()) partition = handle;
    }
    co_await send_window(streams_[partition], partition);
    co_await runtime::sleep_for(draw(random_, 0ms, 700ms));
  }
}

Task<> IdempotentProducer::send_window(Stream& stream, PartitionHandle partition) {
  StorageBroker* broker = cluster_.choose(random_);
  StorageBroker* other = random_.chance(1, 5) ? cluster_.choose(random_) : broker;
  if (broker == nullptr || other == nullptr) co_return;
  size_t wanted = 1 + random_.below(kWindowMax);
  while (stream.open.size() < std::min(wanted, batches_left_)) {
    uint32_t records = static_cast<uint32_t>(1 + random_.below(3));
    stream.open.push_back(&ledger_.make(partition, records, draw_value_bytes(random_), id_, stream.next, 0));
    stream.next = Sequence(stream.next.value() + static_cast<int32_t>(records));
  }
  std::vector<runtime::Completion<storage::AppendResults>> replies;
  for (size_t i = 0; i < stream.open.size(); ++i) {
    // The second half may go through another broker, which does not know of the first.
    StorageBroker& target = i < stream.open.size() / 2 ? *broker : *other;
    replies.push_back(send(target, *stream.open[i], cluster_.connection(client_, target)));
  }
  bool is_in_order = true;
  for (size_t i = 0; i < replies.size(); ++i) {
    std::optional<AppendResult> result = co_await wait_for(cluster_.world(), replies[i]);
    bool is_stored = result && storage::is_success(result->verdict);
    if (is_in_order && is_stored) {
      ledger_.acknowledged(*stream.open.front(), *result);
      stream.open.pop_front();
      --batches_left_;
      continue;
    }
    // All before the first is acknowledged, so it continues what is stored, or repeats it.
    if (i == 0 && result) {
      ledger_.findings().require(storage::is_retriable(result->verdict),
                                 "batch {} of producer {} at sequence {}: {}", stream.open.front()->name, id_,
                                 stream.open.front()->first_sequence,
                                 storage::append_verdict_name(result->verdict));
    }
    is_in_order = false;
  }
}

Task<> consume(StorageCluster& cluster, StorageLedger& ledger) {
  Random random = cluster.world().random().fork();
  while (!cluster.is_over) {
    co_await runtime::sleep_for(draw(random, 10ms, 500ms));
    PartitionHandle partition = cluster.partitions[random.below(cluster.partitions.size())];
    std::optional<Offset> offset = ledger.acknowledged_offset(partition, random.next());
    StorageBroker* broker = cluster.choose(random);
    if (!offset || broker == nullptr) continue;
    storage::FetchRequest request{
        .partitions = {{partition, *offset, static_cast<uint32_t>(random.between(1, 20'000))}},
        .bytes_min = static_cast<uint32_t>(random.below(2)),
        .deadline = cluster.world().now() + 1s};
    std::vector<storage::FetchedPartition> none;
    auto fetched =
        co_await runtime::wait_until(broker->fetch(request), cluster.world().now() + kPatience, none);
    if (fetched.empty()) continue;
    storage::FetchErrc error = fetched[0].error;
    ledger.findings().require(
        error != storage::FetchErrc::kOffsetOutOfRange && error != storage::FetchErrc::kUnknownPartition,
        "a fetch of {} from the acknowledged offset {}: {}", partition, *offset,
        storage::fetch_error_name(error));
    if (error == storage::FetchErrc::kNone) ledger.read(partition, *offset, fetched[0]);
  }
}

Task<> make_brief_topics(StorageCluster& cluster, StorageLedger& ledger) {
  Random random = cluster.world().random().fork();
  metadata::ProposeResult timeout = fail(metadata::ProposeErrc::kUnknown, "");
  for (int life = 0; !cluster.is_over; ++life) {
    co_await runtime::sleep_for(draw(random, 1s, 10s));
    StorageBroker* broker = cluster.choose(random);
    if (broker == nullptr) continue;
    Uuid id = random.uuid();
    metadata::CreateTopic create{
        .id = id, .name = fmt::format("brief{}", life), .partitions = 1, .configs = {}};
    co_await runtime::wait_until(broker->propose(create), cluster.world().now() + kPatience, timeout);
    if (broker->is_serving()) {
      const metadata::TopicView* topic = broker->client().image()->find_topic(id);
      if (topic != nullptr) cluster.brief_partition = topic->partitions.at(0);
    }
    co_await runtime::sleep_for(draw(random, 1s, 10s));
    bool is_gone = false;
    while (!is_gone) {
      broker = cluster.choose(random);
      if (broker != nullptr) {
        auto result = co_await runtime::wait_until(broker->propose(metadata::DeleteTopic{id}),
                                                   cluster.world().now() + kPatience, timeout);
        is_gone = result.has_value();
      }
      co_await runtime::sleep_for(1s);
    }
    if (cluster.brief_partition) ledger.forget(*cluster.brief_partition);
  }
}

}  // namespace varve::sim
