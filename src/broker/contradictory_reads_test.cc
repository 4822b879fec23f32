// Fetch and ListOffsets that contradict themselves, or what the broker knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::ListOffsetsRequest;
using runtime::Task;
using sim::RawClient;

class ContradictoryReadsTest : public sim::BrokerFixture {
 protected:
  // A topic with two partitions and a record in the first.
  Task<Uuid> create(RawClient& client) {
    auto reply = co_await client.ask(sim::create_request("t", 2), 7);
    auto produced = co_await client.ask(sim::produce_request("t", {{0, sim::make_batch("v")}}), 9);
    EXPECT_EQ(produced.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
    co_return reply.topics.at(0).topic_id;
  }
  // The row of the first partition, in a version that has every field.
  Task<protocol::FetchResponse::PartitionData> fetch(RawClient& client, FetchRequest request,
                                                     int16_t version = 12) {
    auto reply = co_await client.ask(std::move(request), version);
    co_return reply.responses.at(0).partitions.at(0);
  }
};

TEST_F(ContradictoryReadsTest, APartitionAskedForTwiceIsAnInvalidRequestAndToldOnce) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client);
    ListOffsetsRequest request = sim::list_offsets_request("t", 0, -1);
    request.topics[0].partitions.push_back(request.topics[0].partitions[0]);
    request.topics[0].partitions.push_back(sim::list_offsets_request("t", 1, -1).topics[0].partitions[0]);
    auto reply = co_await client.ask(request, 7);
    EXPECT_EQ(reply.topics.at(0).partitions.size(), 2u);
    EXPECT_EQ(reply.topics.at(0).partitions.at(0).error_code, ErrorCode::kInvalidRequest);
    EXPECT_EQ(reply.topics.at(0).partitions.at(1).error_code, ErrorCode::kNone);
    request.topics.push_back(request.topics[0]);
    auto twice = co_await client.ask(request, 7);
    EXPECT_EQ(twice.topics.size(), 1u);
    EXPECT_EQ(twice.topics.at(0).partitions.size(), 2u);
    EXPECT_EQ(twice.topics.at(0).partitions.at(1).error_code, ErrorCode::kInvalidRequest);
    auto unknown = co_await client.ask(sim::list_offsets_request("nobody", 0, -1), 7);
    EXPECT_EQ(unknown.topics.at(0).partitions.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
  });
}

TEST_F(ContradictoryReadsTest, ATopicWithoutPartitionsIsNotTold) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client);
    ListOffsetsRequest request = sim::list_offsets_request("t", 0, -1);
    request.topics[0].partitions.clear();
    EXPECT_THAT((co_await client.ask(request, 7)).topics, ::testing::IsEmpty());
  });
}

TEST_F(ContradictoryReadsTest, OnlyMinusOneMeansNoEpochForListOffsetsAndAnyNegativeOneForFetch) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client);
    ListOffsetsRequest request = sim::list_offsets_request("t", 0, -1);
    FetchRequest fetched = sim::fetch_request("t", id);
    for (int32_t epoch : {-1, -2}) {
      request.topics[0].partitions[0].current_leader_epoch = epoch;
      auto row = (co_await client.ask(request, 7)).topics.at(0).partitions.at(0);
      EXPECT_EQ(row.error_code, epoch == -1 ? ErrorCode::kNone : ErrorCode::kFencedLeaderEpoch);
      fetched.topics[0].partitions[0].current_leader_epoch = epoch;
      EXPECT_EQ((co_await fetch(client, fetched)).error_code, ErrorCode::kNone);
    }
  });
}

TEST_F(ContradictoryReadsTest, NobodyIsAFollowerOrAheadOfTheLog) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client);
    FetchRequest good = sim::fetch_request("t", id);
    FetchRequest replica = good;
    replica.replica_id = BrokerId(0);
    EXPECT_EQ((co_await fetch(client, replica)).error_code, ErrorCode::kNotLeaderOrFollower);
    replica.replica_id = BrokerId(-1);
    replica.replica_state.replica_id = BrokerId(5);
    EXPECT_EQ((co_await fetch(client, replica, 15)).error_code, ErrorCode::kNotLeaderOrFollower);
    FetchRequest ahead = good;
    ahead.topics[0].partitions[0].last_fetched_epoch = 2;
    auto row = co_await fetch(client, ahead);
    EXPECT_EQ(row.error_code, ErrorCode::kOffsetOutOfRange);
    EXPECT_EQ(row.aborted_transactions, std::nullopt);
    ahead.topics[0].partitions[0].last_fetched_epoch = 1;
    EXPECT_EQ((co_await fetch(client, ahead)).error_code, ErrorCode::kNone);
  });
}

}  // namespace
}  // namespace varve::broker
