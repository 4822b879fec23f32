// What tests of the write and read paths share: brokers of one cluster, and plain calls that run to their end.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/run_task.h"
#include "sim/storage/storage_broker.h"
#include "storage/format/test_batch.h"

namespace varve::sim {

// A produced batch, as a test wants it.
struct Produced {
  PartitionHandle partition;
  storage::TestBatch batch{};
  bool is_log_append_time = false;
  uint64_t connection = 1;
};

inline storage::AppendBatch append_batch(const Produced& produced) {
  storage::AppendBatch append;
  append.partition = produced.partition;
  append.index = PartitionIndex(static_cast<int32_t>(produced.partition.value()));
  append.bytes = storage::make_batch(produced.batch);
  append.records = static_cast<uint32_t>(produced.batch.timestamps.size());
  append.max_timestamp =
      *std::max_element(produced.batch.timestamps.begin(), produced.batch.timestamps.end());
  append.producer_id = produced.batch.producer_id;
  append.producer_epoch = produced.batch.producer_epoch;
  append.first_sequence = produced.batch.first_sequence;
  append.is_transactional = produced.batch.is_transactional;
  append.is_log_append_time = produced.is_log_append_time;
  return append;
}

inline storage::AppendRequest append_request(const std::vector<Produced>& produced) {
  storage::AppendRequest request;
  for (const Produced& one : produced) {
    request.connection = one.connection;
    request.batches.push_back(append_batch(one));
    request.frame_bytes += request.batches.back().bytes.size();
  }
  return request;
}

// How long store and log take to answer.
struct StorageWorldTimes {
  ServiceTimes store{};
  ServiceTimes log = SimMetadataLog::default_times();
};

class StorageWorld {
 public:
  explicit StorageWorld(uint64_t seed = 1, size_t brokers = 1, StorageBrokerOptions options = {},
                        StorageWorldTimes times = {})
      : world_({.seed = seed, .time_max = std::chrono::hours(48)}),
        store_(world_, times.store),
        log_(world_, times.log) {
    for (size_t i = 0; i < brokers; ++i) {
      std::string host(1, static_cast<char>('a' + i));
      nodes_.push_back(std::make_unique<Node>(world_, NodeOptions{.host = host}));
      options.id = BrokerId(static_cast<int32_t>(i) + 1);
      brokers_.push_back(std::make_unique<StorageBroker>(*nodes_[i], store_, log_, options));
    }
  }

  void start() {
    for (auto& broker : brokers_) {
      broker->boot();
      CHECK(world_.run_until([&] { return broker->is_serving() || broker->has_failed(); }) == RunEnd::kDone);
      CHECK(broker->is_serving());
    }
  }

  World& world() { return world_; }
  SimObjectStore& store() { return store_; }
  SimMetadataLog& log() { return log_; }
  StorageBroker& broker(size_t index = 0) { return *brokers_.at(index); }
  size_t broker_count() const { return brokers_.size(); }

  // Runs a call on the broker's first io executor and gives its result.
  template <class T>
  T run(StorageBroker& broker, runtime::Task<T> call) {
    std::optional<T> result;
    run_task(world_, broker.io(), keep(std::move(call), &result));
    return std::move(*result);
  }
  void run(StorageBroker& broker, runtime::Task<> call) { run_task(world_, broker.io(), std::move(call)); }
  void pass(Duration span) { world_.run_for(span); }

  // Handles of the new topic's partitions, known to every broker.
  std::vector<PartitionHandle> create_topic(std::string name, uint32_t partitions) {
    metadata::CreateTopic command{
        .id = world_.random().uuid(), .name = name, .partitions = partitions, .configs = {}};
    auto created = run(broker(), broker().client().propose(command));
    CHECK(created, "{}", created.error().message);
    for (auto& other : brokers_) sync(*other);
    return broker().client().image()->find_topic(name)->partitions;
  }
  void sync(StorageBroker& broker) { CHECK(run(broker, broker.client().sync(world_.now() + 60s))); }

  storage::AppendResults produce(const std::vector<Produced>& produced, size_t broker_index = 0) {
    StorageBroker& target = broker(broker_index);
    return run(target, target.ingest().append(append_request(produced)));
  }
  storage::FetchedPartition fetch(PartitionHandle partition, int64_t offset, size_t broker_index = 0) {
    storage::FetchRequest request;
    request.partitions = {{partition, Offset(offset)}};
    return fetch_all(request, broker_index).at(0);
  }
  std::vector<storage::FetchedPartition> fetch_all(storage::FetchRequest request, size_t broker_index = 0) {
    StorageBroker& target = broker(broker_index);
    return run(target, target.fetcher().fetch(std::move(request)));
  }
  storage::FoundOffset list_offset(PartitionHandle partition, int64_t timestamp,
                                   bool is_read_committed = false) {
    StorageBroker& target = broker();
    return run(target,
               target.fetcher().list_offsets({{partition, timestamp}}, is_read_committed, world_.now() + 10s))
        .at(0);
  }
  // Keys of WAL objects in the store.
  std::vector<std::string> wal_keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, object] : store_.objects()) {
      if (key.starts_with("ns/_wal/")) keys.push_back(key);
    }
    return keys;
  }

 private:
  template <class T>
  static runtime::Task<> keep(runtime::Task<T> call, std::optional<T>* result) {
    result->emplace(co_await std::move(call));
  }

  World world_;
  SimObjectStore store_;
  SimMetadataLog log_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<StorageBroker>> brokers_;
};

// A batch of a fetch's answer.
struct ReadBatch {
  Offset base_offset;
  int32_t leader_epoch = -1;
  protocol::records::BatchHeader header;
  std::vector<uint8_t> bytes;
};

// The batches of an answer; fails the test if one of them is not sound.
inline std::vector<ReadBatch> batches_of(const storage::FetchedPartition& fetched) {
  std::vector<uint8_t> all;
  for (const Slice& slice : fetched.records) all.insert(all.end(), slice.view().begin(), slice.view().end());
  EXPECT_EQ(all.size(), fetched.records_bytes);
  std::vector<ReadBatch> batches;
  ByteView rest = all;
  while (!rest.empty()) {
    auto view = protocol::records::BatchView::first_of(rest);
    if (!view) {
      ADD_FAILURE() << view.error().message;
      break;
    }
    EXPECT_TRUE(view->checksum_matches());
    batches.push_back({view->header().base_offset,
                       view->header().partition_leader_epoch,
                       view->header(),
                       {view->bytes().begin(), view->bytes().end()}});
    rest = rest.subspan(view->bytes().size());
  }
  return batches;
}

}  // namespace varve::sim
