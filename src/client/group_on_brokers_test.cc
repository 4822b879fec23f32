// Members of groups against whole brokers. Cases of the area "groups".
#include <gtest/gtest.h>

#include "client/group_consumer.h"
#include "client/producer.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::client {
namespace {

using protocol::ErrorCode;
using runtime::Task;

// A member that reads and commits until it is told to stop.
struct RunningMember {
  RunningMember(runtime::Runtime& runtime, const ClusterOptions& cluster_options,
                GroupConsumerOptions options)
      : cluster(runtime, runtime.io(0), cluster_options), consumer(cluster, std::move(options)) {}

  static Task<> run(RunningMember* member) {
    while (!member->is_stopped) {
      auto records = co_await member->consumer.poll(500ms);
      EXPECT_TRUE(records) << records.error().message;
      if (!records) break;
      member->records += records->size();
      auto done = co_await member->consumer.commit();
      if (done && !member->consumer.assignment().empty()) member->committed_at = member->cluster.now();
    }
    co_await member->consumer.close();
    co_await member->cluster.close();
    member->has_ended = true;
  }

  Cluster cluster;
  GroupConsumer consumer;
  bool is_stopped = false;
  bool has_ended = false;
  size_t records = 0;
  MonotonicTime committed_at;
  runtime::TaskScope scope;
};

class GroupOnBrokersTest : public sim::BrokerFixture {
 protected:
  runtime::Executor& executor() { return client_node_.process().io(0); }
  ClusterOptions bootstrap(size_t broker) {
    ClusterOptions options;
    options.bootstrap = {{brokers_[broker]->node().host(), kKafkaPort}};
    options.connect_timeout = 2s;
    options.request_timeout = 5s;
    return options;
  }
  static GroupConsumerOptions group_options() {
    GroupConsumerOptions options;
    options.member.group = "g";
    options.member.heartbeat_interval = 1s;
    options.member.rebalance_timeout = 10s;
    options.topics = {"t"};
    options.reset = OffsetReset::kEarliest;
    return options;
  }
  std::unique_ptr<RunningMember> start_member(size_t broker, GroupConsumerOptions options) {
    auto member =
        std::make_unique<RunningMember>(client_node_.process(), bootstrap(broker), std::move(options));
    member->scope.spawn(executor(), "member", RunningMember::run(member.get()));
    return member;
  }
  Task<> stop_member(RunningMember& member) {
    member.is_stopped = true;
    EXPECT_TRUE(co_await comes_true([&] { return member.has_ended; }));
  }
  // Within two minutes.
  Task<bool> comes_true(std::function<bool()> is_true) {
    MonotonicTime until = world_.now() + 120s;
    while (!is_true() && world_.now() < until) co_await runtime::sleep_for(100ms);
    co_return is_true();
  }
  static Task<> create(Cluster& cluster, int32_t partitions) {
    auto made = co_await cluster.ask_controller(sim::create_request("t", partitions));
    EXPECT_TRUE(made && made->topics.at(0).error_code == ErrorCode::kNone);
  }
  // So many to each partition.
  static Task<> produce(Cluster& cluster, int32_t partitions, int count) {
    Producer producer(cluster, {});
    producer.start();
    std::vector<runtime::Completion<Producer::Result>> results;
    for (int32_t partition = 0; partition < partitions; ++partition) {
      for (int i = 0; i < count; ++i) {
        NewRecord record{.key = std::nullopt, .value = "v", .headers = {}, .timestamp = std::nullopt};
        results.push_back(producer.send("t", PartitionIndex(partition), record));
      }
    }
    for (auto& result : results) EXPECT_TRUE(co_await result.wait());
    co_await producer.close();
  }
};

TEST_F(GroupOnBrokersTest, C078OneBrokerCoordinatesAndWhenItDiesMembersMoveWithTheirOffsets) {
  start_brokers(2);
  run([&]() -> Task<> {
    Cluster cluster(client_node_.process(), executor(), bootstrap(0));
    co_await create(cluster, 4);
    co_await produce(cluster, 4, 10);
    auto first = start_member(0, group_options());
    auto second = start_member(1, group_options());
    auto shares = [&] {
      return first->consumer.assignment().size() == 2 && second->consumer.assignment().size() == 2;
    };
    EXPECT_TRUE(co_await comes_true([&] { return shares() && first->records + second->records >= 40; }));
    std::set<TopicPartition> before = first->consumer.assignment();
    for (const TopicPartition& at : before) EXPECT_FALSE(second->consumer.assignment().contains(at));

    // Whoever does not coordinate the group says so.
    auto coordinator = co_await cluster.coordinator("g");
    EXPECT_TRUE(coordinator);
    auto owner = static_cast<size_t>(coordinator->value());
    sim::RawClient other = co_await connect(1 - owner);
    protocol::JoinGroupRequest join;
    join.group_id = "g";
    join.session_timeout_ms = 10'000;
    join.protocol_type = "consumer";
    join.protocols.emplace_back().name = "range";
    EXPECT_EQ((co_await other.ask(join, 9)).error_code, ErrorCode::kNotCoordinator);

    int32_t generation = first->consumer.identity().generation;
    size_t read_before = first->records + second->records;
    MonotonicTime killed_at = world_.now();
    brokers_[owner]->crash();
    EXPECT_TRUE(co_await comes_true(
        [&] { return first->committed_at > killed_at + 30s && second->committed_at > killed_at + 30s; }));
    EXPECT_EQ(first->consumer.identity().generation, generation);
    EXPECT_EQ(second->consumer.identity().generation, generation);
    EXPECT_EQ(first->consumer.assignment(), before);
    EXPECT_EQ(first->records + second->records, read_before) << "something was read again";

    Cluster survivor(client_node_.process(), executor(), bootstrap(1 - owner));
    auto moved = co_await survivor.coordinator("g");
    EXPECT_TRUE(moved);
    EXPECT_NE(*moved, *coordinator);
    GroupOffsets offsets(survivor, "g");
    std::set<TopicPartition> all;
    for (int32_t i = 0; i < 4; ++i) all.insert({"t", PartitionIndex(i)});
    auto committed = co_await offsets.fetch(all, world_.now() + 30s);
    EXPECT_TRUE(committed);
    for (const auto& [at, position] : *committed) {
      EXPECT_TRUE(position) << at.to_string();
      if (position) EXPECT_EQ(position->offset, Offset(10));
    }
    co_await produce(survivor, 4, 2);
    EXPECT_TRUE(co_await comes_true([&] { return first->records + second->records == read_before + 8; }));
    co_await stop_member(*first);
    co_await stop_member(*second);
    co_await survivor.close();
    co_await cluster.close();
  });
}

TEST_F(GroupOnBrokersTest, MembersOfBothKindsShareOutWhatThereIsAndTakeOverWhatIsLeft) {
  start_brokers(3);
  run([&]() -> Task<> {
    Cluster cluster(client_node_.process(), executor(), bootstrap(0));
    co_await create(cluster, 5);
    co_await produce(cluster, 5, 3);
    for (Assignor assignor : {Assignor::kRange, Assignor::kCooperativeSticky}) {
      GroupConsumerOptions options = group_options();
      options.assignor = assignor;
      options.member.group = std::string(assignor_name(assignor));
      auto first = start_member(0, options);
      EXPECT_TRUE(co_await comes_true([&] { return first->records == 15; }));
      auto second = start_member(1, options);
      auto third = start_member(2, options);
      EXPECT_TRUE(co_await comes_true([&] {
        size_t all = 0;
        for (RunningMember* member : {first.get(), second.get(), third.get()}) {
          size_t share = member->consumer.assignment().size();
          if (share == 0 || share > 2) return false;
          all += share;
        }
        return all == 5;
      }));
      co_await stop_member(*first);
      co_await stop_member(*second);
      EXPECT_TRUE(co_await comes_true([&] { return third->consumer.assignment().size() == 5; }));
      // Nobody has read anything twice, since all of it was committed.
      EXPECT_EQ(first->records + second->records + third->records, 15u);
      co_await stop_member(*third);
    }
    co_await cluster.close();
  });
}

TEST_F(GroupOnBrokersTest, AStaticMemberThatComesBackInTimeDisturbsNobody) {
  start_brokers(1);
  run([&]() -> Task<> {
    Cluster cluster(client_node_.process(), executor(), bootstrap(0));
    co_await create(cluster, 4);
    GroupConsumerOptions one = group_options(), two = group_options();
    one.member.instance_id = "one";
    two.member.instance_id = "two";
    auto first = start_member(0, one);
    auto second = start_member(0, two);
    auto shares = [&] {
      return first->consumer.assignment().size() == 2 && second->consumer.assignment().size() == 2;
    };
    EXPECT_TRUE(co_await comes_true(shares));
    int32_t generation = second->consumer.identity().generation;
    std::set<TopicPartition> before = first->consumer.assignment();
    co_await stop_member(*first);
    co_await runtime::sleep_for(5s);
    first = start_member(0, one);
    EXPECT_TRUE(co_await comes_true(shares));
    EXPECT_EQ(first->consumer.assignment(), before);
    co_await runtime::sleep_for(5s);
    EXPECT_EQ(second->consumer.identity().generation, generation);
    co_await stop_member(*first);
    co_await stop_member(*second);
    co_await cluster.close();
  });
}

}  // namespace
}  // namespace varve::client
