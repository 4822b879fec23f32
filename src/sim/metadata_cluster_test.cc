// Three brokers' metadata clients on one simulated log and store: registering, fencing, syncing, snapshots.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "metadata/client/metadata_client.h"
#include "sim/metadata_log.h"
#include "sim/node.h"
#include "sim/object_store.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using metadata::ApplyOutcome;
using metadata::ClientConfig;
using metadata::CommandVerdict;
using metadata::CreateTopic;
using metadata::MetadataClient;
using runtime::Task;

constexpr size_t kBrokers = 3;

// Everything the brokers saw, for the checks that compare them.
struct History {
  std::map<LogPosition, uint64_t> hash_at;
  std::set<std::string> acknowledged_topics;
  uint64_t acknowledged = 0;
  uint64_t syncs = 0;
  bool is_over = false;  // no more work is begun
};

// One broker: a node, and on it a metadata client that is made anew at each boot.
class MetadataBroker {
 public:
  MetadataBroker(World& world, SimMetadataLog& log, SimObjectStore& store, History& history, int32_t id,
                 PlantedBugs bugs)
      : world_(world),
        log_(log),
        store_(store),
        history_(history),
        id_(id),
        bugs_(bugs),
        node_(world, {.host = fmt::format("broker{}", id)}) {
    start();
  }

  Node& node() { return node_; }
  MetadataClient* client() { return client_ ? &client_->client : nullptr; }
  bool is_serving() const { return client_ && client_->has_started; }

  void crash() {
    node_.crash(CrashKind::kKilled);
    client_.reset();
  }
  void boot() {
    node_.boot();
    start();
  }

 private:
  struct Program {
    Program(Process& process, SimMetadataLog& shared_log, SimObjectStore& shared_store,
            const std::string& host, ClientConfig config, PlantedBugs bugs)
        : log(shared_log.client(process)),
          store(shared_store.client(host)),
          client(process, *log, *store, std::move(config), logger, metrics, bugs) {}
    Logger logger;
    MetricRegistry metrics;
    std::unique_ptr<metadata::MetadataLog> log;
    std::unique_ptr<object_store::ObjectStore> store;
    MetadataClient client;
    bool has_started = false;
    int made = 0;
    runtime::TaskScope scope;  // first to go
  };

  void start() {
    ClientConfig config;
    config.broker = BrokerId(id_);
    config.key_prefix = "default";
    config.snapshot_after_bytes = 2000;
    client_ = std::make_unique<Program>(node_.process(), log_, store_, node_.host(), config, bugs_);
    client_->client.set_applied_listener([this](const ApplyOutcome&) { note_state(); });
    client_->scope.spawn(node_.process().io(0), "work", work(*client_));
  }

  // States at equal positions are equal (invariant 2).
  void note_state() {
    const metadata::State& state = client_->client.state();
    auto [known, is_new] = history_.hash_at.emplace(state.position(), state.hash());
    EXPECT_EQ(known->second, state.hash()) << "states differ at " << state.position().value();
  }

  // Starts, with patience, then makes topics and looks for those that others made.
  Task<> work(Program& program) {
    while (true) {
      auto started = co_await program.client.start();
      if (started) break;
      // A client that failed to start is not started twice: the process ends and its supervisor starts it anew.
      world_.after(1s, [this, life = node_.process().life()] {
        if (node_.is_up() && node_.process().life() == life) {
          crash();
          boot();
        }
      });
      co_return;
    }
    program.has_started = true;
    while (!history_.is_over) {
      co_await runtime::sleep_for(Duration(world_.random().between(1'000'000, 400'000'000)));
      if (world_.random().chance(1, 3)) {
        co_await look(program);
      } else {
        co_await make(program);
      }
    }
  }

  Task<> make(Program& program) {
    CreateTopic topic;
    topic.id = world_.random().uuid();
    topic.name = fmt::format("topic-{}-{}-{}", id_, node_.process().life(), program.made++);
    topic.partitions = 1;
    auto outcome = co_await program.client.propose(topic);
    if (outcome && outcome->front().verdict == CommandVerdict::kDone) {
      history_.acknowledged_topics.insert(topic.name);
      ++history_.acknowledged;
    }
  }

  // What was acknowledged before a sync began is there when it ends (invariant 5).
  Task<> look(Program& program) {
    std::set<std::string> expected = history_.acknowledged_topics;
    auto synced = co_await program.client.sync(node_.process().now() + 10s);
    if (!synced) co_return;
    ++history_.syncs;
    auto image = program.client.image();
    for (const std::string& name : expected) {
      EXPECT_NE(image->find_topic(name), nullptr)
          << name << " was acknowledged and is not there after a sync";
    }
  }

  World& world_;
  SimMetadataLog& log_;
  SimObjectStore& store_;
  History& history_;
  int32_t id_;
  PlantedBugs bugs_;
  Node node_;
  std::unique_ptr<Program> client_;
};

struct ClusterResult {
  History history;
  uint64_t trace_hash = 0;
  uint64_t snapshots = 0;
  LogPosition trimmed;
};

ClusterResult run_cluster(uint64_t seed, uint32_t fault_per_mille, int disturbances, PlantedBugs bugs = {}) {
  World world({.seed = seed});
  SimObjectStore store(world, {.slow_max = 2s, .timeout_max = 2s, .late_max = 1min});
  SimMetadataLog log(world);
  store.set_faults(StoreFaults::all(fault_per_mille / 4));
  LogFaults faults = LogFaults::all(fault_per_mille);
  faults.lag_max = 2s;
  log.set_faults(faults);
  ClusterResult result;
  std::vector<std::unique_ptr<MetadataBroker>> brokers;
  for (size_t i = 0; i < kBrokers; ++i) {
    brokers.push_back(
        std::make_unique<MetadataBroker>(world, log, store, result.history, static_cast<int32_t>(i), bugs));
  }
  for (int i = 0; i < disturbances; ++i) {
    world.run_for(Duration(world.random().between(2'000'000'000, 20'000'000'000)));
    MetadataBroker& victim = *brokers[world.random().below(kBrokers)];
    if (!victim.node().is_up() || victim.node().is_paused()) continue;
    if (world.random().chance(1, 2)) {
      victim.crash();
      world.run_for(Duration(world.random().between(0, 30'000'000'000)));
      victim.boot();
    } else {
      victim.node().pause();
      world.run_for(Duration(world.random().between(0, 60'000'000'000)));
      if (victim.node().is_paused()) victim.node().resume();
    }
  }
  // When faults stop, everything finishes: all brokers serve and agree.
  store.set_faults({});
  log.set_faults({});
  world.run_for(90s);
  result.history.is_over = true;
  world.run_for(10s);
  for (auto& broker : brokers) {
    EXPECT_TRUE(broker->is_serving()) << "seed " << seed;
    if (!broker->is_serving()) continue;
    EXPECT_TRUE(broker->client()->has_progress()) << "seed " << seed;
    for (const std::string& name : result.history.acknowledged_topics) {
      EXPECT_NE(broker->client()->image()->find_topic(name), nullptr) << name << " is lost, seed " << seed;
    }
  }
  result.trace_hash = world.trace_hash();
  result.trimmed = log.trim_mark();
  for (const auto& [key, object] : store.objects())
    result.snapshots += key.find("/snapshots/") != std::string::npos;
  return result;
}

TEST(MetadataCluster, ThreeBrokersRegisterProposeAndSyncOnOneLog) {
  ClusterResult result = run_cluster(1, 0, 0);
  EXPECT_GT(result.history.acknowledged, 100u);
  EXPECT_GT(result.history.syncs, 50u);
  EXPECT_GT(result.snapshots, 0u);
  EXPECT_GT(result.trimmed.value(), 0u);
}

TEST(MetadataCluster, NothingAcknowledgedIsLostUnderCrashesPausesAndFaults) {
  uint64_t acknowledged = 0;
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    acknowledged += run_cluster(seed, 30, 8).history.acknowledged;
  }
  EXPECT_GT(acknowledged, 500u);
}

TEST(MetadataCluster, TheSameSeedTakesTheSameSteps) {
  EXPECT_EQ(run_cluster(5, 30, 4).trace_hash, run_cluster(5, 30, 4).trace_hash);
}

TEST(MetadataCluster, APausedBrokerIsFencedAndComesBackAsANewIncarnation) {
  World world({.seed = 11});
  SimObjectStore store(world);
  SimMetadataLog log(world);
  History history;
  std::vector<std::unique_ptr<MetadataBroker>> brokers;
  for (int32_t i = 0; i < 2; ++i) {
    brokers.push_back(std::make_unique<MetadataBroker>(world, log, store, history, i, PlantedBugs{}));
  }
  world.run_for(10s);
  ASSERT_TRUE(brokers[1]->is_serving());
  Incarnation before = brokers[1]->client()->incarnation();
  brokers[1]->node().pause();
  world.run_for(60s);
  EXPECT_FALSE(brokers[0]->client()->image()->brokers.contains(BrokerId(1)));
  brokers[1]->node().resume();
  world.run_for(30s);
  EXPECT_GT(brokers[1]->client()->incarnation(), before);
  EXPECT_TRUE(brokers[0]->client()->image()->brokers.contains(BrokerId(1)));
}

TEST(MetadataCluster, ABrokerWhoseIdIsTakenStops) {
  World world({.seed = 12});
  SimObjectStore store(world);
  SimMetadataLog log(world);
  History history;
  MetadataBroker first(world, log, store, history, 0, {});
  world.run_for(10s);
  ASSERT_TRUE(first.is_serving());
  MetadataBroker second(world, log, store, history, 0, {});
  world.run_for(10s);
  EXPECT_TRUE(first.client()->fatal().is_set());
  EXPECT_FALSE(second.client()->fatal().is_set());
}

}  // namespace
}  // namespace varve::sim
