// Invariant 13: nothing is shared between brokers of one process but what they are given.
#include <gtest/gtest.h>

#include <list>

#include "sim/broker_fixture.h"

namespace varve::sim {
namespace {

constexpr size_t kBrokers = 10;

runtime::Task<> create_topic(BrokerNode& node, std::string name, bool& is_made) {
  metadata::CreateTopic topic;
  topic.id = Random(node.process().random_seed()).uuid();
  topic.name = std::move(name);
  topic.partitions = 1;
  auto made = co_await node.broker().metadata()->propose(topic);
  is_made = made && made->front().verdict == metadata::CommandVerdict::kDone;
}

// What a cluster stands on.
struct Ground {
  explicit Ground(World& world) : log(world), store(world) {}
  SimMetadataLog log;
  SimObjectStore store;
};

class Invariant13 : public BrokerFixture {
 protected:
  void make_topic(BrokerNode& node, const std::string& name) {
    bool is_made = false;
    run_task(world_, node.process().io(0), create_topic(node, name, is_made));
    EXPECT_TRUE(is_made) << name;
  }
};

TEST_F(Invariant13, TenBrokersOfOneClusterLiveInOneProcessOnOneClock) {
  start_brokers(kBrokers);
  make_topic(*brokers_[3], "shared");
  world_.run_for(5s);
  for (const auto& broker : brokers_) {
    auto image = broker->broker().metadata()->image();
    EXPECT_EQ(image->brokers.size(), kBrokers);
    EXPECT_NE(image->find_topic("shared"), nullptr);
  }
}

TEST_F(Invariant13, TenBrokersOfTenClustersInOneProcessKnowNothingOfEachOther) {
  std::list<Ground> grounds;
  std::vector<std::unique_ptr<BrokerNode>> nodes;
  for (size_t i = 0; i < kBrokers; ++i) {
    Ground& ground = grounds.emplace_back(world_);
    // All with the same id and the same addresses on their own machines.
    nodes.push_back(std::make_unique<BrokerNode>(world_, network_, ground.log, ground.store, settings_of(0),
                                                 "machine" + std::to_string(i)));
  }
  world_.run_for(10s);
  for (size_t i = 0; i < kBrokers; ++i) {
    ASSERT_TRUE(nodes[i]->is_serving()) << nodes[i]->problem();
    make_topic(*nodes[i], "of-" + std::to_string(i));
  }
  world_.run_for(5s);
  for (size_t i = 0; i < kBrokers; ++i) {
    auto image = nodes[i]->broker().metadata()->image();
    EXPECT_EQ(image->brokers.size(), 1u);
    ASSERT_EQ(image->topics_by_name.size(), 1u);
    EXPECT_EQ(image->topics_by_name.begin()->first, "of-" + std::to_string(i));
  }
}

}  // namespace
}  // namespace varve::sim
