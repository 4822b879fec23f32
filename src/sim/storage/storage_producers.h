// The clients of the storage scenario.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "base/random.h"
#include "runtime/runtime.h"
#include "sim/storage/storage_broker.h"
#include "sim/storage/storage_ledger.h"

namespace varve::sim {

// The brokers as a client sees them.
class StorageCluster {
 public:
  StorageCluster(World& world, std::vector<StorageBroker*> brokers)
      : world_(world), brokers_(std::move(brokers)) {}

  World& world() { return world_; }
  const std::vector<StorageBroker*>& brokers() const { return brokers_; }
  // A broker that serves, or null.
  StorageBroker* choose(Random& random) const;
  // Names the connection of a client to a broker's present life.
  uint64_t connection(size_t client, StorageBroker& broker);

  std::vector<PartitionHandle> partitions;         // of the topic that stays
  std::optional<PartitionHandle> brief_partition;  // of a topic that will be deleted, or was
  bool is_over = false;                            // consumers and topic makers end

 private:
  World& world_;
  std::vector<StorageBroker*> brokers_;
  std::map<std::tuple<size_t, BrokerId, uint64_t>, uint64_t> connections_;
};

// Sends `batches_left` batches, each once, in windows that go out at one moment.
class PlainProducer {
 public:
  PlainProducer(StorageCluster& cluster, StorageLedger& ledger, size_t client, size_t batches)
      : cluster_(cluster),
        ledger_(ledger),
        random_(cluster.world().random().fork()),
        client_(client),
        batches_left_(batches) {}

  runtime::Task<> run();
  bool is_done() const { return batches_left_ == 0; }

 private:
  void judge(StorageBroker& broker, uint64_t life, const std::vector<SentBatch*>& window,
             const std::vector<std::optional<storage::AppendResult>>& results);

  StorageCluster& cluster_;
  StorageLedger& ledger_;
  Random random_;
  const size_t client_;
  size_t batches_left_;

 public:
  // Early acknowledged: the promise holds if the broker lives on.
  struct Promise {
    SentBatch* batch;
    StorageBroker* broker;
    uint64_t life;
  };
  std::vector<Promise> promises;
};

// Sends batches with sequences until each is acknowledged, in windows, through changing brokers.
class IdempotentProducer {
 public:
  IdempotentProducer(StorageCluster& cluster, StorageLedger& ledger, size_t client, size_t batches)
      : cluster_(cluster),
        ledger_(ledger),
        random_(cluster.world().random().fork()),
        client_(client),
        batches_left_(batches) {}

  runtime::Task<> run();
  bool is_done() const { return batches_left_ == 0; }

 private:
  struct Stream {
    Sequence next{0};
    std::deque<SentBatch*> open;  // not acknowledged, in order
  };

  runtime::Task<> get_id();
  runtime::Task<> send_window(Stream& stream, PartitionHandle partition);

  StorageCluster& cluster_;
  StorageLedger& ledger_;
  Random random_;
  const size_t client_;
  size_t batches_left_;
  ProducerId id_ = kNoProducerId;
  std::map<PartitionHandle, Stream> streams_;
};

// Reads what was acknowledged through any broker, until the cluster's work is over.
runtime::Task<> consume(StorageCluster& cluster, StorageLedger& ledger);
// Makes and deletes topics, until the cluster's work is over; the last one is deleted.
runtime::Task<> make_brief_topics(StorageCluster& cluster, StorageLedger& ledger);

}  // namespace varve::sim
