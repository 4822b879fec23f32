// Requests that are small and must not cost much, though their answers or their names would let them.
#include <gmock/gmock.h>

#include <ctime>

#include "broker/groups_testing.h"

namespace varve::broker {
namespace {

using sim::RawClient;

class SmallRequestsTest : public GroupsTest {
 protected:
  SmallRequestsTest() { start_brokers(1); }
};

// What a group holds is many times as long as its name: a request that names it often would make an answer without end.
TEST_F(SmallRequestsTest, WhatIsNamedMoreThanTwiceIsAnsweredTwice) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await commit(client, {.group = "g", .offset = 1});
    protocol::OffsetFetchRequest all;
    protocol::DescribeGroupsRequest describe;
    for (int i = 0; i < 4; ++i) {
      all.groups.emplace_back().group_id = "g";
      all.groups.back().topics = std::nullopt;
      describe.groups.emplace_back("g");
    }
    auto groups = (co_await client.ask(all, 8)).groups;
    protocol::OffsetFetchRequest one;
    auto& group = one.groups.emplace_back();
    group.group_id = "g";
    for (int i = 0; i < 2; ++i) {
      auto& row = group.topics->emplace_back();
      row.name = "t";
      row.partition_indexes = {PartitionIndex(0), PartitionIndex(0)};
    }
    auto topics = (co_await client.ask(one, 8)).groups.at(0).topics;
    auto described = (co_await client.ask(describe, 5)).groups;
    for (size_t i = 0; i < 4; ++i) {
      ErrorCode expected = i < 2 ? ErrorCode::kNone : ErrorCode::kInvalidRequest;
      EXPECT_EQ(groups.at(i).error_code, expected);
      EXPECT_EQ(groups.at(i).topics.size(), i < 2 ? 1U : 0U);
      EXPECT_EQ(topics.at(i / 2).partitions.at(i % 2).error_code, expected);
      EXPECT_EQ(described.at(i < 2 ? i + 2 : i - 2).error_code, expected) << "what is refused stands first";
    }
  });
}

TEST_F(SmallRequestsTest, DeletingOffsetsOfManyTopicsThatAreNotThereCostsNoMoreForEach) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await commit(client, {.offset = 1});
    protocol::OffsetDeleteRequest request;
    request.group_id = "g";
    for (int i = 0; i < 40'000; ++i) {
      auto& topic = request.topics.emplace_back();
      topic.name = fmt::format("absent-{}", i);
      topic.partitions.emplace_back().partition_index = PartitionIndex(0);
    }
    std::clock_t began = std::clock();
    auto reply = co_await client.ask(request, 0);
    EXPECT_LE(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC, 1.0)
        << "of the processor, both sides";
    EXPECT_EQ(reply.topics.size(), request.topics.size());
    EXPECT_EQ(reply.topics.at(9).name, request.topics.at(9).name);
  });
}

// More than are looked for in one job of the core.
TEST_F(SmallRequestsTest, ManyGroupsAreDescribedAndDeletedInTheirOrder) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await commit(client, {.group = "there", .offset = 1});
    protocol::DescribeGroupsRequest describe;
    for (int i = 0; i < 2'500; ++i) describe.groups.push_back(fmt::format("absent-{}", i));
    describe.groups.at(2'100) = "there";
    auto described = (co_await client.ask(describe, 6)).groups;
    protocol::DeleteGroupsRequest remove;
    remove.groups_names = describe.groups;
    auto removed = (co_await client.ask(remove, 2)).results;
    EXPECT_EQ(described.size(), 2'500u);
    EXPECT_EQ(removed.size(), 2'500u);
    for (size_t i = 0; i < described.size(); ++i) {
      ErrorCode expected = i == 2'100 ? ErrorCode::kNone : ErrorCode::kGroupIdNotFound;
      EXPECT_EQ(described[i].group_id, describe.groups[i]);
      EXPECT_EQ(described[i].error_code, expected) << i;
      EXPECT_EQ(removed[i].error_code, expected) << i;
    }
  });
}

}  // namespace
}  // namespace varve::broker
