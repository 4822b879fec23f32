// DescribeTopicPartitions: topics in pages.
#include "protocol/messages/describe_topic_partitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/produce_testing.h"

namespace varve::broker {
namespace {

using protocol::DescribeTopicPartitionsRequest;
using protocol::DescribeTopicPartitionsResponse;
using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DescribeTopicPartitionsTest : public ProduceTest {
 protected:
  struct Start {
    std::string topic;
    int32_t partition;
  };
  static Task<DescribeTopicPartitionsResponse> ask(RawClient& client, std::vector<std::string> topics,
                                                   int32_t limit = 2000,
                                                   std::optional<Start> start = std::nullopt) {
    DescribeTopicPartitionsRequest request;
    for (std::string& topic : topics) request.topics.emplace_back().name = std::move(topic);
    request.response_partition_limit = limit;
    if (start) {
      request.cursor.emplace().topic_name = start->topic;
      request.cursor->partition_index = PartitionIndex(start->partition);
    }
    co_return co_await client.ask(std::move(request), 0);
  }
  // "t:0,1 u:0 next u:1"
  static std::string summary(const DescribeTopicPartitionsResponse& response) {
    std::string text;
    for (const auto& topic : response.topics) {
      text += *topic.name + ":";
      if (topic.error_code != ErrorCode::kNone)
        text += fmt::format("error {}", static_cast<int>(topic.error_code));
      for (const auto& partition : topic.partitions) {
        if (!text.ends_with(':')) text += ',';
        text += std::to_string(partition.partition_index.value());
      }
      text += ' ';
    }
    if (response.next_cursor) {
      text +=
          fmt::format("next {}:{}", response.next_cursor->topic_name, response.next_cursor->partition_index);
    }
    return text;
  }
};

TEST_F(DescribeTopicPartitionsTest, TopicsAreToldInTheOrderOfTheirNames) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t", 2);
    co_await create(client, "c");
    auto reply = co_await ask(client, {"t", "nope", "b d", "t", ""});
    EXPECT_EQ(summary(reply), ":error 17 b d:error 17 nope:error 3 t:0,1 ");
    const auto& topic = reply.topics.at(3);
    EXPECT_EQ(topic.topic_id, id);
    EXPECT_EQ(topic.topic_authorized_operations, 0xdf8);
    EXPECT_FALSE(topic.is_internal);
    const auto& partition = topic.partitions.at(1);
    EXPECT_EQ(partition.leader_id, BrokerId(0));
    EXPECT_EQ(partition.leader_epoch, 1);
    EXPECT_THAT(partition.replica_nodes, ElementsAre(BrokerId(0)));
    EXPECT_THAT(partition.isr_nodes, ElementsAre(BrokerId(0)));
    EXPECT_THAT(partition.offline_replicas, IsEmpty());
    EXPECT_EQ(partition.eligible_leader_replicas, std::vector<BrokerId>());
    EXPECT_EQ(partition.last_known_elr, std::vector<BrokerId>());
    EXPECT_EQ(summary(co_await ask(client, {})), "c:0 t:0,1 ");
  });
}

TEST_F(DescribeTopicPartitionsTest, PagesFollowEachOtherWithoutGapsOrRepeats) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "c");
    co_await create(client, "t", 5);
    co_await create(client, "u");
    EXPECT_EQ(summary(co_await ask(client, {}, 2)), "c:0 t:0 next t:1");
    EXPECT_EQ(summary(co_await ask(client, {"u", "t"}, 2, Start{"t", 1})), "t:1,2 next t:3");
    EXPECT_EQ(summary(co_await ask(client, {"u", "t"}, 5)), "t:0,1,2,3,4 next u:0");
    EXPECT_EQ(summary(co_await ask(client, {"u", "t"}, 6)), "t:0,1,2,3,4 u:0 ");
    // A start behind the last partition, or at a topic that has gone meanwhile.
    EXPECT_EQ(summary(co_await ask(client, {"t", "u"}, -3, Start{"t", 9})), "t: u:0 ");
    EXPECT_EQ(summary(co_await ask(client, {}, 10, Start{"tt", 3})), "u:0 ");
    EXPECT_EQ(summary(co_await ask(client, {}, 10, Start{"zzz", 3})), "");
    // Topics that are not there take no room; a page has one partition at least.
    EXPECT_EQ(summary(co_await ask(client, {"nope", "nope2", "t"}, 2)),
              "nope:error 3 nope2:error 3 t:0,1 next t:2");
    EXPECT_EQ(summary(co_await ask(client, {"t"}, 0, Start{"t", 1})), "t:1 next t:2");
    std::string all;
    std::optional<Start> start;
    do {
      auto page = co_await ask(client, {}, 3, start);
      start.reset();
      if (page.next_cursor)
        start = Start{page.next_cursor->topic_name, page.next_cursor->partition_index.value()};
      page.next_cursor.reset();
      all += summary(page);
    } while (start);
    EXPECT_EQ(all, "c:0 t:0,1 t:2,3,4 u:0 ");
  });
}

TEST_F(DescribeTopicPartitionsTest, APageIsBoundedWhateverTheClientAsks) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "wide", 2'001);
    auto reply = co_await ask(client, {}, INT32_MAX);
    EXPECT_EQ(reply.topics.at(0).partitions.size(), 2'000u);
    EXPECT_EQ(reply.next_cursor->partition_index, PartitionIndex(2'000));
  });
}

TEST_F(DescribeTopicPartitionsTest, AStartThatIsNotAmongTheTopicsIsAnInvalidRequest) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await create(client, "u");
    EXPECT_EQ(summary(co_await ask(client, {"t"}, 10, Start{"u", 0})), "t:error 42 ");
    EXPECT_EQ(summary(co_await ask(client, {"u"}, 10, Start{"t", 0})), "u:error 42 ");
    EXPECT_EQ(summary(co_await ask(client, {"t"}, 10, Start{"t", -1})), "t:error 42 ");
    EXPECT_EQ(summary(co_await ask(client, {}, 10, Start{"t", -1})), "");
  });
}

}  // namespace
}  // namespace varve::broker
