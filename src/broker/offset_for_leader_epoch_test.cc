// OffsetForLeaderEpoch: every record is of the epoch that the log's generation is.
#include "protocol/messages/offset_for_leader_epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/produce_testing.h"
#include "protocol/messages/delete_records.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::OffsetForLeaderEpochRequest;
using protocol::OffsetForLeaderEpochResponse;
using runtime::Task;
using sim::RawClient;
using Row = OffsetForLeaderEpochResponse::EpochEndOffset;

class OffsetForLeaderEpochTest : public ProduceTest {
 protected:
  // The generation of a log that was never restored.
  static constexpr int32_t kEpoch = 1;

  static OffsetForLeaderEpochRequest request_of(std::string topic, int32_t partition, int32_t epoch,
                                                int32_t current) {
    OffsetForLeaderEpochRequest request;
    request.topics.emplace_back().topic = std::move(topic);
    auto& row = request.topics[0].partitions.emplace_back();
    row.partition = PartitionIndex(partition);
    row.leader_epoch = epoch;
    row.current_leader_epoch = current;
    return request;
  }
  // "epoch 1 ends at 5", or "error 3".
  static Task<std::string> end_of(RawClient& client, int32_t epoch, int32_t current = -1,
                                  std::string topic = "t", int32_t partition = 0, int16_t version = 4) {
    auto reply = co_await client.ask(request_of(topic, partition, epoch, current), version);
    EXPECT_EQ(reply.topics.at(0).topic, topic);
    const Row& row = reply.topics.at(0).partitions.at(0);
    EXPECT_EQ(row.partition, PartitionIndex(partition));
    if (row.error_code == ErrorCode::kNone)
      co_return fmt::format("{} ends at {}", row.leader_epoch, row.end_offset);
    EXPECT_EQ(row.leader_epoch, -1);
    EXPECT_EQ(row.end_offset, Offset(-1));
    co_return fmt::format("error {}", static_cast<int>(row.error_code));
  }
};

TEST_F(OffsetForLeaderEpochTest, ThePresentEpochEndsWhereThePartitionEnds) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect(0);
    RawClient other = co_await connect(1);
    co_await create(client, "t");
    EXPECT_EQ(co_await end_of(client, kEpoch), "1 ends at 0");
    sim::BatchSpec spec;
    spec.timestamps = {1, 2, 3};
    EXPECT_EQ((co_await produce(client, "t", sim::make_batch(spec))).error_code, ErrorCode::kNone);
    for (int16_t version = OffsetForLeaderEpochRequest::kMinVersion;
         version <= OffsetForLeaderEpochRequest::kMaxVersion; ++version) {
      EXPECT_EQ(co_await end_of(other, kEpoch, kEpoch, "t", 0, version), "1 ends at 3") << version;
    }
  });
}

TEST_F(OffsetForLeaderEpochTest, AnEpochThatNeverWasHasNoEndAndAnEarlierOneEndedAtTheStart) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    for (int i = 0; i < 3; ++i) co_await produce(client, "t", sim::make_batch("v"));
    EXPECT_EQ(co_await end_of(client, kEpoch + 1), "-1 ends at -1");
    EXPECT_EQ(co_await end_of(client, -1), "-1 ends at -1");
    EXPECT_EQ(co_await end_of(client, kEpoch - 1), "0 ends at 0");
    co_await client.ask(sim::delete_records_request("t", {{0, 2}}), 2);
    EXPECT_EQ(co_await end_of(client, kEpoch - 1), "0 ends at 2");
    EXPECT_EQ(co_await end_of(client, kEpoch), "1 ends at 3");
  });
}

TEST_F(OffsetForLeaderEpochTest, AClientWithAnotherEpochIsToldWhichOfTheTwoIsOld) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    EXPECT_EQ(co_await end_of(client, kEpoch, kEpoch - 1), "error 74");
    EXPECT_EQ(co_await end_of(client, kEpoch, -2), "error 74");
    EXPECT_EQ(co_await end_of(client, kEpoch, kEpoch + 1), "error 75");
  });
}

TEST_F(OffsetForLeaderEpochTest, PartitionsThatAreNotThereAreUnknown) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    EXPECT_EQ(co_await end_of(client, kEpoch, 9, "t", 1), "error 3");
    EXPECT_EQ(co_await end_of(client, kEpoch, -1, "t", -1), "error 3");
    EXPECT_EQ(co_await end_of(client, kEpoch, -1, "nope"), "error 3");
    OffsetForLeaderEpochRequest twice = request_of("t", 0, kEpoch, -1);
    twice.topics[0].partitions.push_back(twice.topics[0].partitions[0]);
    auto reply = co_await client.ask(twice, 4);
    EXPECT_EQ(reply.topics.at(0).partitions.size(), 2u);
    EXPECT_EQ(reply.topics.at(0).partitions.at(1), reply.topics.at(0).partitions.at(0));
    EXPECT_EQ((co_await client.ask(OffsetForLeaderEpochRequest(), 4)).topics.size(), 0u);
  });
}

}  // namespace
}  // namespace varve::broker
