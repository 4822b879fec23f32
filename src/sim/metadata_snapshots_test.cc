// From which snapshot a broker begins: whole ones that the log records, and no others.
#include <gtest/gtest.h>

#include "metadata/client/snapshot_store.h"
#include "metadata/state/state_testing.h"
#include "sim/metadata_client_under_test.h"
#include "sim/object_store.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using metadata::SnapshotStore;
using metadata::StartErrc;
using runtime::Task;

// A broker that has taken snapshots and trimmed its log.
class RestartTest : public testing::Test {
 protected:
  RestartTest() {
    start();
    CHECK(has_started());
    broker_->scope.spawn(broker_->node.process().io(0), "topics", broker_->make_topics());
    while (log_.trim_mark() == LogPosition()) world_.run_for(1s);
    // Beyond the newest snapshot.
    world_.run_for(500ms);
    broker_->is_over = true;
    world_.run_for(1s);
    topics_ = topics_now();
    snapshots_ = broker_->client.state().snapshots();
  }

  void start() {
    broker_ = std::make_unique<ClientUnderTest>(world_, log_, store_.client("broker0"), 0);
    world_.run_for(60s);
  }
  void restart() {
    broker_->node.crash(CrashKind::kKilled);
    gone_.push_back(std::move(broker_));
    start();
  }
  bool has_started() const { return broker_->started && *broker_->started; }
  std::set<std::string> topics_now() const {
    std::set<std::string> names;
    for (const auto& [name, topic] : broker_->client.image()->topics_by_name) names.insert(name);
    return names;
  }
  std::vector<std::string> manifests() const {
    std::vector<std::string> keys;  // the newest last
    for (const auto& [key, object] : store_.objects()) {
      if (key.contains("/_log/snapshots/")) keys.push_back(key);
    }
    return keys;
  }
  std::string newest_chunk_of(const std::string& manifest) const {
    return metadata::decode_manifest(store_.objects().at(manifest).bytes.view())->chunks.back().key;
  }

  static Task<> write_into(SnapshotStore& snapshots, metadata::StateDriver& driver, bool& is_written) {
    auto result = co_await snapshots.write(driver.state.position(), Nonce(101), FenceEpoch(0),
                                           driver.state.hash(), driver.state.to_chunks(), {});
    is_written = result.has_value();
  }
  // A whole snapshot, at a position of this log, of a history that is another's.
  void put_unrecorded() {
    metadata::StateDriver driver;
    driver.register_broker(0);
    driver.gap = log_.tail().value() - 1 - driver.state.position().value();
    driver.register_broker(1);
    CHECK(driver.state.position() > snapshots_.back().position && driver.state.position() < log_.tail());
    Node node(world_, {.host = "writer"});
    auto store = store_.client("writer");
    SnapshotStore snapshots(node.process(), *store, "default");
    snapshots.set_log(broker_->client.identity());
    bool is_written = false;
    run_task(world_, node.process().io(0), write_into(snapshots, driver, is_written));
    CHECK(is_written);
  }

  World world_{{.seed = 21}};
  SimObjectStore store_{world_};
  SimMetadataLog log_{world_};
  std::unique_ptr<ClientUnderTest> broker_;
  // The log asks for a while whether those that held its sessions live.
  std::vector<std::unique_ptr<ClientUnderTest>> gone_;
  std::set<std::string> topics_;
  std::vector<metadata::RetainedSnapshot> snapshots_;
};

TEST_F(RestartTest, TheNewestSnapshotAndTheLogGiveEverything) {
  restart();
  ASSERT_TRUE(has_started());
  EXPECT_EQ(topics_now(), topics_);
}

TEST_F(RestartTest, AWholeSnapshotThatTheLogDoesNotRecordIsPassedOver) {
  put_unrecorded();
  restart();
  ASSERT_TRUE(has_started()) << broker_->started->error().message;
  EXPECT_EQ(topics_now(), topics_);
}

TEST_F(RestartTest, ADamagedNewestSnapshotLeavesTheOneBeforeAndTheLog) {
  std::string newest = manifests().back();
  for (const std::string& damaged : {newest_chunk_of(newest), newest}) {
    ASSERT_TRUE(store_.damage(damaged));
    restart();
    ASSERT_TRUE(has_started()) << broker_->started->error().message;
    EXPECT_EQ(topics_now(), topics_);
  }
}

TEST_F(RestartTest, AMissingNewestSnapshotLeavesTheOneBeforeAndTheLog) {
  store_.foreign_delete(newest_chunk_of(manifests().back()));
  restart();
  ASSERT_TRUE(has_started()) << broker_->started->error().message;
  EXPECT_EQ(topics_now(), topics_);
}

TEST_F(RestartTest, IfAllSnapshotsAreDamagedTheStartIsRefusedAndSaysWhatAndHowToGoOn) {
  std::vector<std::string> damaged = manifests();
  ASSERT_EQ(damaged.size(), 3u);
  for (const std::string& key : damaged) ASSERT_TRUE(store_.damage(key));
  restart();
  ASSERT_TRUE(broker_->started);
  ASSERT_FALSE(broker_->started->has_value());
  EXPECT_EQ(broker_->started->error().code, StartErrc::kSnapshotsDamaged);
  const std::string& message = broker_->started->error().message;
  for (const std::string& key : damaged) EXPECT_NE(message.find(key), std::string::npos) << message;
  EXPECT_NE(message.find("Put the named objects back"), std::string::npos) << message;
}

// The same choice when a running broker finds the log trimmed past it.
TEST_F(RestartTest, ABrokerThatFellBehindTheTrimPassesOverWhatTheLogDoesNotRecordToo) {
  ClientUnderTest other(world_, log_, store_.client("broker1"), 1);
  world_.run_for(10s);
  ASSERT_TRUE(other.started && *other.started);
  other.node.pause();
  LogPosition trimmed = log_.trim_mark();
  broker_->is_over = false;
  broker_->scope.spawn(broker_->node.process().io(0), "topics", broker_->make_topics());
  while (log_.trim_mark() == trimmed || log_.trim_mark() <= other.client.state().position())
    world_.run_for(1s);
  world_.run_for(500ms);
  broker_->is_over = true;
  world_.run_for(1s);
  snapshots_ = broker_->client.state().snapshots();
  put_unrecorded();
  other.node.resume();
  world_.run_for(60s);
  EXPECT_FALSE(other.client.fatal().is_set());
  EXPECT_EQ(other.client.state().hash(), broker_->client.state().hash());
}

}  // namespace
}  // namespace varve::sim
