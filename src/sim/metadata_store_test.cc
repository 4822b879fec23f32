// What the metadata client makes of an object store that others change while it works.
#include <gtest/gtest.h>

#include <map>

#include "metadata/client/snapshot_store.h"
#include "metadata/state/state_testing.h"
#include "sim/disturbed_store_testing.h"
#include "sim/metadata_client_under_test.h"
#include "sim/object_store.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using metadata::FoundSnapshot;
using metadata::LogIdentity;
using metadata::SnapshotManifest;
using metadata::SnapshotStore;
using object_store::ByteRange;
using object_store::StoreResult;
using runtime::Task;

// A state that grows by a topic, and its snapshots.
class MetadataStoreTest : public testing::Test {
 protected:
  MetadataStoreTest() {
    incarnation_ = driver_.register_broker(0);
    snapshots_.set_log(LogIdentity{});
  }

  void add_topic() {
    std::string name = fmt::format("topic-{}", ++topics_);
    driver_.create_topic(incarnation_, name, 1);
  }
  Nonce nonce() const { return driver_.state.incarnations().at(incarnation_).nonce; }

  static Task<> write_into(SnapshotStore& snapshots, metadata::StateDriver& driver, Nonce nonce,
                           std::vector<LogPosition> retained, std::optional<SnapshotManifest>& written) {
    auto result = co_await snapshots.write(driver.state.position(), nonce, FenceEpoch(0), driver.state.hash(),
                                           driver.state.to_chunks(), std::move(retained));
    if (result) written = std::move(*result);
  }
  SnapshotManifest write(std::vector<LogPosition> retained) {
    std::optional<SnapshotManifest> written;
    run_task(world_, io(), write_into(snapshots_, driver_, nonce(), std::move(retained), written));
    CHECK(written.has_value());
    return *written;
  }
  runtime::Executor& io() { return node_.process().io(0); }
  static Task<> delete_into(SnapshotStore& snapshots, std::vector<LogPosition> keep,
                            std::set<Nonce> registered, bool& is_done) {
    is_done = (co_await snapshots.delete_unretained(std::move(keep), std::move(registered))).has_value();
  }
  std::string manifest_key(const SnapshotManifest& manifest) const {
    return fmt::format("default/_log/snapshots/{:032x}/{:016x}-{:016x}", 0, manifest.position.value(),
                       nonce().value());
  }

  // Loads a snapshot, once, in the middle of writing another.
  class ReloadingStore final : public DisturbedStore {
   public:
    using DisturbedStore::DisturbedStore;
    Task<> before_put_if_absent(std::string) override {
      if (!snapshot) co_return;
      FoundSnapshot wanted = *std::exchange(snapshot, std::nullopt);
      auto loaded = co_await snapshots->load(wanted, {});
      has_loaded = loaded.has_value();
    }
    SnapshotStore* snapshots = nullptr;
    std::optional<FoundSnapshot> snapshot;
    bool has_loaded = false;
  };

  World world_{{.seed = 3}};
  Node node_{world_, {.host = "a"}};
  SimObjectStore shared_{world_};
  ReloadingStore store_{shared_.client("a")};
  SnapshotStore snapshots_{node_.process(), store_, "default"};
  metadata::StateDriver driver_;
  Incarnation incarnation_;
  int topics_ = 0;
};

TEST_F(MetadataStoreTest, ASnapshotKeepsItsPredecessorThroughAReload) {
  SnapshotManifest first = write({});
  add_topic();
  SnapshotManifest second = write({});
  driver_.propose(incarnation_, metadata::AllocateProducerIds{});  // the topic's chunk stays as it is
  store_.snapshots = &snapshots_;
  store_.snapshot = FoundSnapshot{manifest_key(first), first.position, nonce()};
  SnapshotManifest third = write({first.position, second.position});
  ASSERT_TRUE(store_.has_loaded);
  EXPECT_EQ(third.predecessor, second.position) << "that is whose chunks it names";
}

TEST_F(MetadataStoreTest, AfterASnapshotThatWasNotRecordedTheNextKeepsTheRecordedPredecessor) {
  add_topic();
  SnapshotManifest recorded = write({});
  for (int i = 0; i < 3; ++i) {
    driver_.propose(incarnation_, metadata::AllocateProducerIds{});  // the topic's chunk stays as it is
    EXPECT_EQ(write({recorded.position}).predecessor, recorded.position) << i;
  }
}

TEST_F(MetadataStoreTest, OldSnapshotsGoAndWhatNoRegisteredBrokerWroteStays) {
  write({});
  add_topic();
  SnapshotManifest second = write({});
  std::string chunks = fmt::format("default/_log/chunks/{:032x}/", 0);
  std::string manifests = fmt::format("default/_log/snapshots/{:032x}/", 0);
  std::set<std::string> foreign{
      chunks + "x", chunks + "notes about this folder, for whoever looks", manifests + "README",
      chunks + fmt::format("{0:016x}-{0:016x}-{1:016x}-{0:06x}-{0:016x}", 0, nonce().value() + 1),
      manifests + fmt::format("{:016x}-{:016x}", 1, nonce().value() + 1)};
  for (const std::string& key : foreign) shared_.foreign_put(key, Slice::copy_of(as_bytes("mine")));
  bool is_done = false;
  run_task(world_, io(), delete_into(snapshots_, {second.position}, {nonce()}, is_done));
  EXPECT_TRUE(is_done);
  for (const std::string& key : foreign) EXPECT_TRUE(shared_.objects().contains(key)) << key;
  EXPECT_EQ(shared_.objects().size(), second.chunks.size() + 1 + foreign.size());
}
// Takes its time to list snapshots.
class SlowListStore final : public DisturbedStore {
 public:
  using DisturbedStore::DisturbedStore;
  Task<> before_list(std::string prefix) override {
    if (prefix.contains("/snapshots/")) co_await runtime::sleep_for(10s);
  }
};

// A second broker starts while the first works.
class MetadataClientStart : public testing::Test {
 protected:
  MetadataClientStart() {
    world_.run_for(5s);
    CHECK(first_.started && *first_.started);
    first_.scope.spawn(first_.node.process().io(0), "topics", first_.make_topics());
  }

  World world_{{.seed = 5}};
  SimObjectStore shared_{world_};
  SimMetadataLog log_{world_};
  ClientUnderTest first_{world_, log_, shared_.client("broker0"), 0};
};

TEST_F(MetadataClientStart, ASnapshotTakenWhileABrokerStartsIsNoSignOfARolledBackLog) {
  world_.run_for(20s);
  ClientUnderTest second(world_, log_, std::make_unique<SlowListStore>(shared_.client("broker1")), 1);
  world_.run_for(40s);
  first_.is_over = true;
  world_.run_for(5s);
  ASSERT_TRUE(second.started);
  EXPECT_TRUE(*second.started) << second.started->error().message;
}

// Takes so long for the first manifest that it, and what else there was, is gone then.
class SlowFirstManifestStore final : public DisturbedStore {
 public:
  using DisturbedStore::DisturbedStore;
  Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override {
    if (key.contains("/snapshots/") && !std::exchange(was_slow_, true)) co_await runtime::sleep_for(60s);
    co_return co_await DisturbedStore::get(std::move(key), range);
  }

 private:
  bool was_slow_ = false;
};

TEST_F(MetadataClientStart, ABrokerWhoseSnapshotsWereReplacedWhileItReadThemBeginsFromNewerOnes) {
  while (log_.trim_mark() == LogPosition()) world_.run_for(1s);
  LogPosition newest = first_.client.state().snapshots().back().position;
  ClientUnderTest second(world_, log_, std::make_unique<SlowFirstManifestStore>(shared_.client("broker1")),
                         1);
  world_.run_for(120s);
  EXPECT_GT(log_.trim_mark(), newest);
  ASSERT_TRUE(second.started);
  EXPECT_TRUE(*second.started) << second.started->error().message;
}

// Counts the keys that are put, and loses every try to read a snapshot back while `is_deaf`.
class DeafStore final : public DisturbedStore {
 public:
  using DisturbedStore::DisturbedStore;

  Task<> before_put_if_absent(std::string key) override {
    if (is_deaf) ++puts[key];
    co_return;
  }
  Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override {
    if (is_deaf) co_return fail(object_store::StoreErrc::kUnavailable, "no answer");
    co_return co_await DisturbedStore::get(std::move(key), range);
  }

  bool is_deaf = false;
  std::map<std::string, int> puts;
};

TEST(MetadataClientSnapshots, AFailedOneIsTriedAgainUnderOtherNamesThoughNothingHappens) {
  World world({.seed = 5});
  SimObjectStore shared(world);
  SimMetadataLog log(world);
  auto own = std::make_unique<DeafStore>(shared.client("broker0"));
  DeafStore& store = *own;
  ClientUnderTest client(world, log, std::move(own), 0);
  world.run_for(5s);
  ASSERT_TRUE(client.started && *client.started);
  store.is_deaf = true;
  client.scope.spawn(client.node.process().io(0), "topics", client.make_topics());
  world.run_for(8s);
  client.is_over = true;
  world.run_for(130s);  // with pauses that grow
  int manifests = 0;
  for (const auto& [key, times] : store.puts) {
    EXPECT_EQ(times, 1) << key;
    manifests += key.find("/snapshots/") != std::string::npos;
  }
  EXPECT_GT(manifests, 5);
  store.is_deaf = false;
  world.run_for(65s);
  EXPECT_EQ(client.client.state().snapshots().size(), 1u);
}

// Brokers that do nothing but beat, by clocks that differ; broker i has bugs[i].
struct IdleBrokers {
  explicit IdleBrokers(std::vector<PlantedBugs> bugs) {
    for (const PlantedBugs& own : bugs) {
      auto id = static_cast<int32_t>(brokers.size());
      brokers.push_back(std::make_unique<ClientUnderTest>(
          world, log, shared.client(fmt::format("broker{}", id)), id, own, std::chrono::minutes(10 * id)));
    }
    world.run_for(60s);
  }
  bool gave_up(size_t broker) const { return brokers[broker]->client.fatal().is_set(); }

  World world{{.seed = 6}};
  SimObjectStore shared{world};
  SimMetadataLog log{world};
  std::vector<std::unique_ptr<ClientUnderTest>> brokers;
};

PlantedBugs wrong_state() {
  PlantedBugs bugs;
  bugs.apply_reads_local_broker = true;
  return bugs;
}

TEST(MetadataClientBeats, EqualStatesAgree) {
  IdleBrokers world({{}, {}, {}});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(world.gave_up(i)) << i;
    EXPECT_FALSE(world.brokers[i]->client.is_diverged()) << i;
  }
}

TEST(MetadataClientBeats, OfThreeBrokersTheOneWhoseStateDiffersGivesUp) {
  IdleBrokers world({{}, {}, wrong_state()});
  EXPECT_TRUE(world.gave_up(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(world.gave_up(i)) << i;
    EXPECT_TRUE(world.brokers[i]->client.is_diverged()) << "and deletes nothing";
  }
  // Once it is gone, the others go on.
  world.brokers[2]->node.crash(CrashKind::kKilled);
  world.world.run_for(60s);
  for (size_t i = 0; i < 2; ++i) EXPECT_FALSE(world.brokers[i]->client.is_diverged()) << i;
}

TEST(MetadataClientBeats, OfTwoBrokersWhoseStatesDifferBothGiveUp) {
  IdleBrokers world({{}, wrong_state()});
  EXPECT_TRUE(world.gave_up(0));
  EXPECT_TRUE(world.gave_up(1));
}

}  // namespace
}  // namespace varve::sim
