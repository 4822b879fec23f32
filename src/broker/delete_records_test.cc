// DeleteRecords, and what Fetch, ListOffsets and OffsetForLeaderEpoch make of a partition that does not begin at 0.
#include "protocol/messages/delete_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/produce_testing.h"

namespace varve::broker {
namespace {

using protocol::DeleteRecordsRequest;
using protocol::DeleteRecordsResponse;
using protocol::ErrorCode;
using runtime::Task;
using sim::make_batch;
using sim::RawClient;
using Row = DeleteRecordsResponse::DeleteRecordsPartitionResult;

class DeleteRecordsTest : public ProduceTest {
 protected:
  // `count` batches of one record each, with the times 1, 2, 3...
  Task<> fill(RawClient& client, std::string topic, int count) {
    for (int i = 0; i < count; ++i) {
      sim::BatchSpec spec;
      spec.timestamps = {i + 1};
      EXPECT_EQ((co_await produce(client, topic, make_batch(spec))).error_code, ErrorCode::kNone);
    }
  }
  Task<Row> remove(RawClient& client, std::string topic, int32_t partition, int64_t offset,
                   int16_t version = 2) {
    auto reply = co_await client.ask(sim::delete_records_request(topic, {{partition, offset}}), version);
    EXPECT_EQ(reply.topics.at(0).name, topic);
    EXPECT_EQ(reply.topics.at(0).partitions.at(0).partition_index, PartitionIndex(partition));
    co_return reply.topics.at(0).partitions.at(0);
  }
  Task<Offset> listed(RawClient& client, std::string topic, int64_t timestamp) {
    auto reply = co_await client.ask(sim::list_offsets_request(topic, 0, timestamp), 7);
    EXPECT_EQ(reply.topics.at(0).partitions.at(0).error_code, ErrorCode::kNone);
    co_return reply.topics.at(0).partitions.at(0).offset;
  }
};

TEST_F(DeleteRecordsTest, C047RecordsBelowAreGoneAndTheRestStaysForEveryBroker) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect(0);
    RawClient other = co_await connect(1);
    co_await create(client, "t");
    co_await fill(client, "t", 5);
    Row row = co_await remove(client, "t", 0, 2);
    EXPECT_EQ(row.error_code, ErrorCode::kNone);
    EXPECT_EQ(row.low_watermark, Offset(2));
    for (RawClient* reader : {&client, &other}) {
      EXPECT_EQ(co_await listed(*reader, "t", -2), Offset(2));
      EXPECT_EQ(co_await listed(*reader, "t", -1), Offset(5));
      // The record of time 1 is gone; the first one at or after it is the new start.
      EXPECT_EQ(co_await listed(*reader, "t", 1), Offset(2));
      EXPECT_EQ(co_await listed(*reader, "t", 4), Offset(3));
      sim::FetchSpec spec;
      spec.partitions = {{0, 1}};
      auto below = co_await reader->ask(sim::fetch_request("t", Uuid{}, spec), 11);
      EXPECT_EQ(below.responses.at(0).partitions.at(0).error_code, ErrorCode::kOffsetOutOfRange);
      spec.partitions = {{0, 2}};
      auto from_start = co_await reader->ask(sim::fetch_request("t", Uuid{}, spec), 11);
      EXPECT_EQ(records_of(from_start.responses.at(0).partitions.at(0).records->joined()), 3u);
      EXPECT_EQ(from_start.responses.at(0).partitions.at(0).log_start_offset, Offset(2));
    }
  });
}

TEST_F(DeleteRecordsTest, AnOffsetInsideABatchIsTheStartAlthoughTheBatchIsServedWhole) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    sim::BatchSpec spec;
    spec.timestamps = {1, 2, 3, 4};
    EXPECT_EQ((co_await produce(client, "t", make_batch(spec))).error_code, ErrorCode::kNone);
    EXPECT_EQ((co_await remove(client, "t", 0, 2)).low_watermark, Offset(2));
    EXPECT_EQ(co_await listed(client, "t", -2), Offset(2));
    EXPECT_EQ(co_await listed(client, "t", 1), Offset(2));
    sim::FetchSpec from;
    from.partitions = {{0, 2}};
    auto reply = co_await client.ask(sim::fetch_request("t", Uuid{}, from), 11);
    EXPECT_EQ(records_of(reply.responses.at(0).partitions.at(0).records->joined()), 4u);
  });
}

TEST_F(DeleteRecordsTest, MinusOneDeletesAllThatIsReadableAndProducingGoesOn) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    EXPECT_EQ((co_await remove(client, "t", 0, -1)).low_watermark, Offset(0));
    co_await fill(client, "t", 3);
    EXPECT_EQ((co_await remove(client, "t", 0, -1)).low_watermark, Offset(3));
    EXPECT_EQ(co_await listed(client, "t", -2), Offset(3));
    EXPECT_EQ(co_await listed(client, "t", 1), Offset(-1));
    ProduceRow row = co_await produce(client, "t", make_batch("v"));
    EXPECT_EQ(row.base_offset, Offset(3));
    EXPECT_EQ(row.log_start_offset, Offset(3));
  });
}

TEST_F(DeleteRecordsTest, TheStartNeverGoesBack) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await fill(client, "t", 5);
    EXPECT_EQ((co_await remove(client, "t", 0, 4)).low_watermark, Offset(4));
    for (int64_t below : {0, 2, 4}) {
      Row row = co_await remove(client, "t", 0, below);
      EXPECT_EQ(row.error_code, ErrorCode::kNone) << below;
      EXPECT_EQ(row.low_watermark, Offset(4)) << below;
    }
    EXPECT_EQ(co_await listed(client, "t", -2), Offset(4));
  });
}

TEST_F(DeleteRecordsTest, OffsetsOutsideAndPartitionsThatAreNotThereAreRefused) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await fill(client, "t", 2);
    for (int64_t outside : {3, -2, -100}) {
      Row row = co_await remove(client, "t", 0, outside);
      EXPECT_EQ(row.error_code, ErrorCode::kOffsetOutOfRange) << outside;
      EXPECT_EQ(row.low_watermark, Offset(-1)) << outside;
    }
    for (int32_t partition : {1, -1}) {
      EXPECT_EQ((co_await remove(client, "t", partition, 0)).error_code, ErrorCode::kUnknownTopicOrPartition);
    }
    for (const char* topic : {"nope", "a b", ""}) {
      EXPECT_EQ((co_await remove(client, topic, 0, 0)).error_code, ErrorCode::kUnknownTopicOrPartition)
          << topic;
    }
    EXPECT_EQ(co_await listed(client, "t", -2), Offset(0));
  });
}

TEST_F(DeleteRecordsTest, OneRefusedPartitionTakesNoOtherWithItAndARepeatedOneIsAnsweredOnce) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 2);
    co_await fill(client, "t", 3);
    auto reply = co_await client.ask(sim::delete_records_request("t", {{0, 1}, {1, 9}, {0, 2}, {7, 0}}), 2);
    EXPECT_EQ(reply.topics.size(), 1u);
    const auto& rows = reply.topics.at(0).partitions;
    EXPECT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows.at(0).low_watermark, Offset(2));
    EXPECT_EQ(rows.at(1).error_code, ErrorCode::kOffsetOutOfRange);
    EXPECT_EQ(rows.at(2).error_code, ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ((co_await client.ask(DeleteRecordsRequest(), 2)).topics.size(), 0u);
  });
}

TEST_F(DeleteRecordsTest, OnlyTopicsThatDeleteAnythingLetClientsDelete) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "compacted", 1, {{"cleanup.policy", "compact"}});
    co_await create(client, "both", 1, {{"cleanup.policy", "compact,delete"}});
    co_await create(client, "neither", 1, {{"cleanup.policy", ""}});
    co_await create(client, "__consumer_offsets");
    EXPECT_EQ((co_await remove(client, "compacted", 0, 0)).error_code, ErrorCode::kPolicyViolation);
    EXPECT_EQ((co_await remove(client, "both", 0, 0)).error_code, ErrorCode::kNone);
    EXPECT_EQ((co_await remove(client, "neither", 0, 0)).error_code, ErrorCode::kNone);
    EXPECT_EQ((co_await remove(client, "__consumer_offsets", 0, 0)).error_code,
              ErrorCode::kInvalidTopicException);
  });
}

TEST_F(DeleteRecordsTest, EveryVersionIsServed) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await fill(client, "t", 5);
    int64_t offset = 0;
    for (int16_t version = DeleteRecordsRequest::kMinVersion; version <= DeleteRecordsRequest::kMaxVersion;
         ++version) {
      ++offset;
      EXPECT_EQ((co_await remove(client, "t", 0, offset, version)).low_watermark, Offset(offset)) << version;
    }
  });
}

TEST_F(DeleteRecordsTest, AnAnswerThatCannotBeKnownInTimeIsNoSuccess) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await fill(client, "t", 3);
    sim::LogFaults faults;
    faults.append.request_lost = 1000;
    log_.set_faults(faults);
    auto request = sim::delete_records_request("t", {{0, 2}});
    request.timeout_ms = 500;
    MonotonicTime asked = world_.now();
    auto reply = co_await client.ask(request, 2);
    EXPECT_LT(world_.now() - asked, 2s);
    EXPECT_EQ(reply.topics.at(0).partitions.at(0).error_code, ErrorCode::kRequestTimedOut);
    faults.read.request_lost = 1000;
    faults.other.request_lost = 1000;
    log_.set_faults(faults);
    reply = co_await client.ask(request, 2);
    EXPECT_EQ(reply.topics.at(0).partitions.at(0).error_code, ErrorCode::kNotLeaderOrFollower);
  });
}

}  // namespace
}  // namespace varve::broker
