// The collector beside brokers that are idle, and beside brokers whose states differ.
#include <gtest/gtest.h>

#include "metadata/state/object_key.h"
#include "sim/metadata_client_under_test.h"
#include "sim/object_store.h"
#include "sim/run_task.h"
#include "sim/storage/storage_world.h"
#include "storage/maintenance/garbage_collector.h"

namespace varve::sim {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

size_t entries_beside_beats(const SimMetadataLog& log, LogPosition after) {
  size_t count = 0;
  for (const SimMetadataLog::Record& record : log.records()) {
    if (record.position <= after) continue;
    auto entry = metadata::decode_entry(record.bytes.view());
    CHECK(entry.has_value());
    for (const metadata::Command& command : entry->commands) {
      count += metadata::kind_of(command) != metadata::CommandKind::kBeat;
    }
  }
  return count;
}

TEST(GarbageCollector, AnIdleClusterProposesNothingButBeats) {
  StorageBrokerOptions options;
  options.collector.look_interval = 10s;
  StorageWorld sim(1, 2, options);
  sim.start();
  PartitionHandle partition = sim.create_topic("topic", 1).front();
  sim.produce({{.partition = partition}});
  sim.pass(minutes(15));
  LogPosition tail = sim.log().tail();
  FenceEpoch fence = sim.broker().client().state().fence_epoch();
  EXPECT_GT(fence, FenceEpoch(0)) << "what was uploaded before has been fenced once";
  sim.pass(hours(3));
  EXPECT_GT(sim.log().tail(), tail) << "two brokers beat";
  EXPECT_EQ(entries_beside_beats(sim.log(), tail), 0u);
  sim.produce({{.partition = partition}});
  sim.pass(minutes(15));
  EXPECT_GT(sim.broker().client().state().fence_epoch(), fence) << "new work brings the next";
}

// Lists only once it is let.
class HeldListStore final : public object_store::ObjectStore {
 public:
  explicit HeldListStore(std::unique_ptr<ObjectStore> store) : store_(std::move(store)) {}
  bool is_held = false;

  using Key = std::string;
  runtime::Task<object_store::StoreResult<void>> put(Key key, std::vector<Slice> body) override {
    return store_->put(std::move(key), std::move(body));
  }
  runtime::Task<object_store::StoreResult<void>> put_if_absent(Key key, std::vector<Slice> body) override {
    return store_->put_if_absent(std::move(key), std::move(body));
  }
  runtime::Task<object_store::StoreResult<Slice>> get(Key key,
                                                      std::optional<object_store::ByteRange> range) override {
    return store_->get(std::move(key), range);
  }
  runtime::Task<object_store::StoreResult<object_store::ObjectInfo>> head(Key key) override {
    return store_->head(std::move(key));
  }
  runtime::Task<object_store::StoreResult<object_store::ListPage>> list(Key prefix, Key after,
                                                                        size_t max_keys) override {
    auto page = co_await store_->list(std::move(prefix), std::move(after), max_keys);
    while (is_held) co_await runtime::sleep_for(1s);
    co_return page;
  }
  runtime::Task<object_store::StoreResult<std::vector<std::string>>> delete_many(
      std::vector<Key> keys) override {
    return store_->delete_many(std::move(keys));
  }

 private:
  std::unique_ptr<ObjectStore> store_;
};

// Brokers that only beat, the first of which collects.
class CollectorBesideOthers : public testing::Test {
 protected:
  void add_broker(bool is_wrong = false) {
    auto id = static_cast<int32_t>(brokers_.size());
    PlantedBugs bugs;
    bugs.apply_reads_local_broker = is_wrong;
    brokers_.push_back(std::make_unique<ClientUnderTest>(
        world_, log_, shared_.client(fmt::format("broker{}", id)), id, bugs, minutes(10 * id)));
    world_.run_for(2s);
    ASSERT_TRUE(brokers_.back()->started && *brokers_.back()->started);
  }
  void start() {
    add_broker();
    add_broker();
    storage::GarbageCollectorConfig config;
    config.key_prefix = "default";
    config.broker = BrokerId(0);
    config.look_interval = 1s;
    config.fence_interval = 2s;
    config.sweep_interval = 5s;
    collector_.emplace(first().node.process(), first().client, list_store_, config, Logger(),
                       first().metrics);
    collector_->start();
  }
  ~CollectorBesideOthers() override {
    if (collector_) run_task(world_, first().node.process().io(0), collector_->stop());
  }

  ClientUnderTest& first() { return *brokers_.front(); }
  // The key of an object of the first broker's, which is put into the store.
  std::string put_object(uint64_t number) {
    metadata::WalObjectName name{.log_id = first().client.identity().id,
                                 .nonce = first().client.nonce(),
                                 .epoch = first().client.state().fence_epoch(),
                                 .number = ObjectNumber(number)};
    std::string key = metadata::wal_key("default", name);
    shared_.foreign_put(key, Slice::copy_of(as_bytes("batches")));
    return key;
  }
  bool is_there(const std::string& key) const { return shared_.objects().contains(key); }
  metadata::CommandOutcome propose(metadata::Command command) {
    std::optional<metadata::ProposeResult> result;
    run_task(world_, first().node.process().io(0), propose_into(first(), std::move(command), result));
    CHECK(result && *result);
    return (*result)->front();
  }
  static runtime::Task<> propose_into(ClientUnderTest& broker, metadata::Command command,
                                      std::optional<metadata::ProposeResult>& result) {
    result = co_await broker.client.propose(std::move(command));
  }
  // An object that a topic held, which is deleted.
  std::string put_dead_object() {
    metadata::CreateTopic topic{.id = world_.random().uuid(), .name = "t", .partitions = 1};
    propose(topic);
    PartitionHandle partition = first().client.state().find_topic("t")->partitions.front();
    std::string key;
    // Again if the fence passes it meanwhile.
    for (uint64_t number = 100; !commit(partition, number, key); ++number) {
    }
    propose(metadata::DeleteTopic{topic.id});
    return key;
  }
  bool commit(PartitionHandle partition, uint64_t number, std::string& key) {
    metadata::CommitObject object{.object = {first().client.incarnation(), ObjectNumber(number)},
                                  .epoch = first().client.state().fence_epoch(),
                                  .bytes = 100,
                                  .run_count = 1};
    object.runs.push_back({.partition = partition, .bytes = 61, .records = 1});
    key = put_object(number);
    return propose(object).runs.at(0).batches.at(0).verdict == metadata::BatchVerdict::kAccepted;
  }

  World world_{{.seed = 4}};
  SimObjectStore shared_{world_};
  SimMetadataLog log_{world_};
  HeldListStore list_store_{shared_.client("broker0")};
  std::vector<std::unique_ptr<ClientUnderTest>> brokers_;
  std::optional<storage::GarbageCollector> collector_;
};

TEST_F(CollectorBesideOthers, DeadObjectsAndOrphansGoWhileStatesAgree) {
  start();
  add_broker();
  std::string orphan = put_object(7);
  std::string dead = put_dead_object();
  world_.run_for(60s);
  EXPECT_FALSE(is_there(orphan));
  EXPECT_FALSE(is_there(dead));
}

TEST_F(CollectorBesideOthers, AnUploadThatWasGivenUpGoesAlthoughNothingIsDoneAfterIt) {
  start();
  add_broker();
  world_.run_for(60s);
  std::string orphan = put_object(7);
  world_.run_for(60s);
  EXPECT_FALSE(is_there(orphan));
  // And an idle log is idle again.
  FenceEpoch fence = first().client.state().fence_epoch();
  world_.run_for(60s);
  EXPECT_EQ(first().client.state().fence_epoch(), fence);
}

TEST_F(CollectorBesideOthers, NothingIsDeletedWhileStatesDiffer) {
  start();
  add_broker(/*is_wrong=*/true);
  world_.run_for(60s);
  ASSERT_TRUE(first().client.is_diverged());
  std::string orphan = put_object(7);
  std::string dead = put_dead_object();
  world_.run_for(60s);
  EXPECT_TRUE(is_there(orphan));
  EXPECT_TRUE(is_there(dead));
  brokers_[2]->node.crash(CrashKind::kKilled);
  world_.run_for(120s);
  EXPECT_FALSE(first().client.is_diverged());
  EXPECT_FALSE(is_there(orphan));
  EXPECT_FALSE(is_there(dead));
}

TEST_F(CollectorBesideOthers, ASweepDeletesNothingOnceStatesDiffer) {
  list_store_.is_held = true;
  start();
  std::string orphan = put_object(7);
  world_.run_for(4s);
  ASSERT_FALSE(first().client.is_diverged()) << "the sweep has begun before";
  add_broker(/*is_wrong=*/true);
  world_.run_for(60s);
  ASSERT_TRUE(first().client.is_diverged());
  list_store_.is_held = false;
  world_.run_for(60s);
  EXPECT_TRUE(is_there(orphan));
}

}  // namespace
}  // namespace varve::sim
