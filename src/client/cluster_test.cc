#include "client/cluster.h"

#include <gtest/gtest.h>

#include "client/group_offsets.h"
#include "client/scripted_broker_testing.h"
#include "protocol/messages/create_topics.h"
#include "protocol/messages/offset_commit.h"
#include "protocol/messages/offset_fetch.h"

namespace varve::client {
namespace {

using protocol::ApiKey;
using protocol::ErrorCode;
using runtime::Task;

using ClusterTest = ScriptedTest;

TEST_F(ClusterTest, ATopicIsAskedForOnceUntilItIsForgottenOrOld) {
  broker_.lead({{"t", 3}});
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    auto topic = co_await cluster->topic("t");
    EXPECT_TRUE(topic);
    EXPECT_EQ(topic->id, ScriptedBroker::id_of("t"));
    EXPECT_EQ(topic->leaders, std::vector<BrokerId>(3, BrokerId(0)));
    co_await cluster->topic("t");
    EXPECT_EQ(broker_.asked[ApiKey::kMetadata], 1u);
    cluster->forget_topic("t");
    co_await cluster->topic("t");
    EXPECT_EQ(broker_.asked[ApiKey::kMetadata], 2u);
    co_await runtime::sleep_for(cluster->options().metadata_age_max + 1s);
    co_await cluster->topic("t");
    EXPECT_EQ(broker_.asked[ApiKey::kMetadata], 3u);
    co_await cluster->close();
  });
}

TEST_F(ClusterTest, AnErrorKeepsKafkasCode) {
  broker_.lead({});
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    auto topic = co_await cluster->topic("absent");
    EXPECT_FALSE(topic);
    EXPECT_TRUE(topic.error().is(ErrorCode::kUnknownTopicOrPartition));
    EXPECT_TRUE(topic.error().is_retriable());
    EXPECT_FALSE(topic.error().leaves_doubt());
    co_await cluster->close();
  });
}

TEST_F(ClusterTest, WithoutAnyBrokerTheErrorSaysSo) {
  run([&]() -> Task<> {
    ClusterOptions options;
    options.bootstrap = {{"broker0", 1}, {"nowhere", 9092}};
    Cluster cluster(client_node_.process(), executor(), options);
    auto topic = co_await cluster.topic("t");
    EXPECT_FALSE(topic);
    EXPECT_EQ(topic.error().cause, ClientErrc::kDisconnected);
    co_await cluster.close();
  });
}

TEST_F(ClusterTest, AnyRequestGoesToTheController) {
  broker_.lead({});
  broker_.on<protocol::CreateTopicsRequest>([](const auto& request, int16_t) {
    protocol::CreateTopicsResponse response;
    response.topics.emplace_back().name = request.topics[0].name;
    return response;
  });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    protocol::CreateTopicsRequest request;
    request.topics.emplace_back().name = "new";
    auto response = co_await cluster->ask_controller(request);
    EXPECT_TRUE(response);
    EXPECT_EQ(response->topics.at(0).name, "new");
    co_await cluster->close();
  });
}

TEST_F(ClusterTest, AConnectionThatBrokeIsMadeAnew) {
  broker_.lead({{"t", 1}});
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    co_await cluster->topic("t");
    broker_.cut_connections();
    co_await runtime::sleep_for(1s);
    EXPECT_EQ(cluster->find_open(BrokerId(0)), nullptr);
    EXPECT_TRUE(co_await cluster->connect(BrokerId(0)));
    EXPECT_NE(cluster->find_open(BrokerId(0)), nullptr);
    EXPECT_FALSE(co_await cluster->connect(BrokerId(7)));
    co_await cluster->close();
  });
}

TEST_F(ClusterTest, TheVersionIsWhatTheOwnerChooses) {
  broker_.lead({{"t", 1}});
  std::vector<int16_t> versions;
  broker_.on<protocol::FindCoordinatorRequest>([&](const auto& request, int16_t version) {
    versions.push_back(version);
    protocol::FindCoordinatorResponse response;
    response.host = "broker0";
    response.port = ScriptedBroker::kPort;
    response.node_id = BrokerId(4);
    if (version >= 4) {
      response.coordinators.emplace_back().key = request.coordinator_keys.at(0);
      response.coordinators[0].node_id = BrokerId(4);
      response.coordinators[0].host = "broker0";
      response.coordinators[0].port = ScriptedBroker::kPort;
    }
    return response;
  });
  run([&]() -> Task<> {
    for (int16_t version : {0, 3, 4, 6}) {
      ClusterOptions options = cluster_options();
      options.choose_version = [version](ApiKey key, VersionRange range) {
        return key == ApiKey::kFindCoordinator ? version : range.high;
      };
      Cluster cluster(client_node_.process(), executor(), options);
      auto coordinator = co_await cluster.coordinator("g");
      EXPECT_TRUE(coordinator);
      EXPECT_EQ(*coordinator, BrokerId(4));
      EXPECT_TRUE(co_await cluster.connect(*coordinator));
      co_await cluster.close();
    }
  });
  EXPECT_EQ(versions, (std::vector<int16_t>{0, 3, 4, 6}));
}

TEST_F(ClusterTest, OffsetsAreCommittedAndFoundByNameAndById) {
  broker_.lead({{"t", 2}});
  std::map<std::pair<std::string, PartitionIndex>, Offset> stored;
  broker_.on<protocol::OffsetCommitRequest>([&](const auto& request, int16_t version) {
    protocol::OffsetCommitResponse response;
    for (const auto& topic : request.topics) {
      std::string name = version >= 10 ? "t" : topic.name;
      if (version >= 10) EXPECT_EQ(topic.topic_id, ScriptedBroker::id_of("t"));
      auto& rows = response.topics.emplace_back();
      rows.name = topic.name;
      rows.topic_id = topic.topic_id;
      for (const auto& row : topic.partitions) {
        stored[{name, row.partition_index}] = row.committed_offset;
        rows.partitions.emplace_back().partition_index = row.partition_index;
      }
    }
    return response;
  });
  broker_.on<protocol::OffsetFetchRequest>([&](const auto& request, int16_t version) {
    protocol::OffsetFetchResponse response;
    auto fill = [&](const auto& asked_topics, auto& topics) {
      for (const auto& topic : asked_topics) {
        auto& rows = topics.emplace_back();
        rows.name = topic.name;
        for (PartitionIndex index : topic.partition_indexes) {
          auto found = stored.find({"t", index});
          auto& row = rows.partitions.emplace_back();
          row.partition_index = index;
          row.committed_offset = found == stored.end() ? Offset(-1) : found->second;
        }
      }
    };
    if (version < 8) {
      fill(*request.topics, response.topics);
    } else {
      auto& group = response.groups.emplace_back();
      group.group_id = request.groups.at(0).group_id;
      fill(*request.groups[0].topics, group.topics);
      if (version >= 10) group.topics.at(0).topic_id = ScriptedBroker::id_of("t");
    }
    return response;
  });
  run([&]() -> Task<> {
    for (int16_t version = 2; version <= 10; ++version) {
      ClusterOptions options = cluster_options();
      options.choose_version = [version](ApiKey key, VersionRange range) {
        bool is_ours = key == ApiKey::kOffsetCommit || key == ApiKey::kOffsetFetch;
        return is_ours ? version : range.high;
      };
      Cluster cluster(client_node_.process(), executor(), options);
      GroupOffsets offsets(cluster, "g");
      stored.clear();
      Commits commits{{{"t", PartitionIndex(1)}, {Offset(40 + version), -1, "note"}}};
      auto done = co_await offsets.commit({}, commits, world_.now() + 10s);
      EXPECT_TRUE(done) << version;
      auto found =
          co_await offsets.fetch({{"t", PartitionIndex(0)}, {"t", PartitionIndex(1)}}, world_.now() + 10s);
      EXPECT_TRUE(found) << version;
      if (!found) continue;
      EXPECT_FALSE((found->at({"t", PartitionIndex(0)})));
      EXPECT_EQ((found->at({"t", PartitionIndex(1)})->offset), Offset(40 + version));
      co_await cluster.close();
    }
  });
}

}  // namespace
}  // namespace varve::client
