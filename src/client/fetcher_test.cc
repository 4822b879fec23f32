#include "client/fetcher.h"

#include "client/scripted_broker_testing.h"

namespace varve::client {
namespace {

using runtime::Task;

class FetcherTest : public ScriptedTest {};

TEST_F(FetcherTest, PartitionsThatAreLookedUpInTwoLivesOfATopicAreReadFromTheirOwn) {
  broker_.lead_two_lives("t");
  std::vector<std::pair<Uuid, PartitionIndex>> read;
  broker_.on<protocol::FetchRequest>([&](const protocol::FetchRequest& request, int16_t) {
    for (const auto& topic : request.topics) {
      for (const auto& row : topic.partitions) read.emplace_back(topic.topic_id, row.partition);
    }
    return protocol::FetchResponse();
  });
  run([&]() -> Task<> {
    ClusterOptions options = cluster_options();
    options.metadata_age_max = 0ms;
    Cluster cluster(client_node_.process(), executor(), options);
    Fetcher fetcher(cluster, {});
    fetcher.put({"t", PartitionIndex(0)}, ScriptedBroker::id_of("second"), Offset(0));
    fetcher.put({"t", PartitionIndex(1)}, ScriptedBroker::id_of("first"), Offset(0));
    co_await fetcher.advance();
    co_await fetcher.wait(cluster.now() + 5s);
    co_await fetcher.close();
    co_await cluster.close();
  });
  EXPECT_EQ(read, (std::vector<std::pair<Uuid, PartitionIndex>>{
                      {ScriptedBroker::id_of("second"), PartitionIndex(0)},
                      {ScriptedBroker::id_of("first"), PartitionIndex(1)}}));
}

TEST_F(FetcherTest, APartitionThatIsTakenAwayWhileAnotherIsLookedUpIsNotRead) {
  broker_.lead({{"t", 1}, {"u", 1}});
  std::set<Uuid> read;
  broker_.on<protocol::FetchRequest>([&](const protocol::FetchRequest& request, int16_t) {
    for (const auto& topic : request.topics) read.insert(topic.topic_id);
    return protocol::FetchResponse();
  });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    EXPECT_TRUE(co_await cluster->topic("t"));
    Fetcher fetcher(*cluster, {});
    fetcher.put({"t", PartitionIndex(0)}, ScriptedBroker::id_of("t"), Offset(0));
    fetcher.put({"u", PartitionIndex(0)}, ScriptedBroker::id_of("u"), Offset(0));
    network_.set_partitioned("client", "broker0", true);
    world_.after(1s, [&] {
      fetcher.remove({"t", PartitionIndex(0)});
      network_.heal();
    });
    co_await fetcher.advance();
    co_await fetcher.wait(cluster->now() + 5s);
    co_await fetcher.close();
    co_await cluster->close();
  });
  EXPECT_EQ(read, std::set<Uuid>{ScriptedBroker::id_of("u")});
}

}  // namespace
}  // namespace varve::client
