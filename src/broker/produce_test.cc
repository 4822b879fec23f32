// Produce against a whole broker. Cases of the area "produce".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/produce_testing.h"
#include "protocol/messages/init_producer_id.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::ProduceRequest;
using protocol::records::BatchHeader;
using runtime::Task;
using sim::BatchSpec;
using sim::make_batch;
using sim::produce_request;
using sim::RawClient;
using Row = ProduceRow;

TEST_F(ProduceTest, EveryVersionIsServedByNameOrById) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t");
    for (int16_t version = ProduceRequest::kMinVersion; version <= ProduceRequest::kMaxVersion; ++version) {
      ProduceRequest request = produce_request("t", {{0, make_batch("v")}});
      request.topic_data[0].topic_id = id;
      auto reply = co_await client.ask(request, version);
      const Row& row = reply.responses.at(0).partition_responses.at(0);
      EXPECT_EQ(row.error_code, ErrorCode::kNone) << version;
      EXPECT_EQ(row.base_offset, Offset(version - ProduceRequest::kMinVersion)) << version;
      if (version >= 5) EXPECT_EQ(row.log_start_offset, Offset(0)) << version;
    }
    ProduceRequest unknown = produce_request("", {{0, make_batch("v")}});
    unknown.topic_data[0].topic_id.bytes[0] = 1;
    auto reply = co_await client.ask(unknown, 13);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kUnknownTopicId);
  });
}

TEST_F(ProduceTest, C006TheCodecBitsOfTheStoredBatchAreTheProducers) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (Codec codec : {Codec::kNone, Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
      std::string topic = "c" + std::to_string(static_cast<int>(codec));
      co_await create(client, topic);
      BatchSpec spec;
      spec.value = std::string(100'000, 'x');
      spec.options.codec = codec;
      EXPECT_EQ((co_await produce(client, topic, make_batch(spec))).error_code, ErrorCode::kNone);
      Slice batch = co_await stored(client, topic);
      EXPECT_EQ(BatchHeader::decode(batch.view()).codec(), codec);
      if (codec != Codec::kNone) EXPECT_LT(batch.size(), 10'000u);
    }
  });
}

TEST_F(ProduceTest, C029WithoutAcksThereIsNoReplyAndTheRecordIsStored) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await client.post(produce_request("t", {{0, make_batch("silent")}}, 0), 9);
    auto metadata = co_await client.ask(sim::metadata_request({"t"}), 9);
    EXPECT_EQ(metadata.topics.at(0).error_code, ErrorCode::kNone);
    Slice batch = co_await stored(client, "t");
    EXPECT_THAT(std::string(as_text(batch.view())), ::testing::HasSubstr("silent"));
  });
}

TEST_F(ProduceTest, C029WithoutAcksAnErrorClosesTheConnection) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.post(produce_request("nobody", {{0, make_batch("v")}}, 0), 9);
    EXPECT_TRUE(co_await client.is_closed());
  });
}

TEST_F(ProduceTest, C029OtherAcksAreInvalid) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    for (int16_t acks : {2, -2}) {
      auto reply = co_await client.ask(produce_request("t", {{0, make_batch("v")}}, acks), 9);
      EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kInvalidRequiredAcks);
    }
    auto reply = co_await client.ask(produce_request("t", {{0, make_batch("v")}}, 1), 9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).base_offset, Offset(0));
  });
}

TEST_F(ProduceTest, C033ZstdIsRefusedBeforeProduce7) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    BatchSpec spec;
    spec.options.codec = Codec::kZstd;
    EXPECT_EQ((co_await produce(client, "t", make_batch(spec), 6)).error_code,
              ErrorCode::kUnsupportedCompressionType);
    EXPECT_EQ((co_await produce(client, "t", make_batch(spec), 7)).error_code, ErrorCode::kNone);
  });
}

TEST_F(ProduceTest, C037LogAppendTimeIsTheBrokersAndIsTold) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "append", 1, {{"message.timestamp.type", "LogAppendTime"}});
    co_await create(client, "create");
    BatchSpec spec;
    spec.timestamps = {5};
    int64_t before = brokers_[0]->process().wall_now().value();
    Row append = co_await produce(client, "append", make_batch(spec), 7);
    EXPECT_GE(append.log_append_time_ms, before);
    EXPECT_LE(append.log_append_time_ms, brokers_[0]->process().wall_now().value() + 1);
    BatchHeader header = BatchHeader::decode((co_await stored(client, "append")).view());
    EXPECT_TRUE(header.log_append_time());
    EXPECT_EQ(header.max_timestamp, WallTime(append.log_append_time_ms));
    Row create_time = co_await produce(client, "create", make_batch(spec), 7);
    EXPECT_EQ(create_time.log_append_time_ms, -1);
    header = BatchHeader::decode((co_await stored(client, "create")).view());
    EXPECT_FALSE(header.log_append_time());
    EXPECT_EQ(header.max_timestamp, WallTime(5));
  });
}

TEST_F(ProduceTest, IdempotentBatchesAreStoredOnceAndInOrder) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect(0);
    RawClient other = co_await connect(1);
    co_await create(client, "t");
    auto init = co_await client.ask(protocol::InitProducerIdRequest{.transactional_id = std::nullopt}, 4);
    EXPECT_EQ(init.error_code, ErrorCode::kNone);
    EXPECT_EQ(init.producer_epoch, ProducerEpoch(0));
    auto second = co_await other.ask(protocol::InitProducerIdRequest{.transactional_id = std::nullopt}, 4);
    EXPECT_NE(init.producer_id, second.producer_id);
    ProducerId id = init.producer_id;
    EXPECT_EQ((co_await produce(client, "t", sim::idempotent_batch(id, 0, 3))).base_offset, Offset(0));
    // The same batch again, even through another broker, is the same success.
    EXPECT_EQ((co_await produce(other, "t", sim::idempotent_batch(id, 0, 3))).base_offset, Offset(0));
    EXPECT_EQ((co_await produce(other, "t", sim::idempotent_batch(id, 3))).base_offset, Offset(3));
    EXPECT_EQ((co_await produce(client, "t", sim::idempotent_batch(id, 9))).error_code,
              ErrorCode::kOutOfOrderSequenceNumber);
    EXPECT_EQ((co_await produce(client, "t", sim::idempotent_batch(second.producer_id, 5))).error_code,
              ErrorCode::kOutOfOrderSequenceNumber);
  });
}

TEST_F(ProduceTest, ConsecutiveProducesOfOneConnectionShareAnUploadInsteadOfWaitingForEachOther) {
  Settings settings = settings_of(0);
  // A slow upload is waited for, not tried again.
  settings.limits.object_attempt_max = settings.limits.object_deadline_max;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 2);
    // The first one wakes the idle broker; those behind it are taken while its upload is under way, some milliseconds.
    std::vector<int32_t> ids;
    size_t objects = store_.objects().size();
    for (int i = 0; i < 40; ++i)
      ids.push_back(co_await client.post(produce_request("t", {{i % 2, make_batch(std::to_string(i))}}), 9));
    for (int32_t id : ids) {
      auto reply = co_await client.expect<ProduceRequest>(id, 9);
      EXPECT_TRUE(reply);
      if (!reply) co_return;
      EXPECT_EQ(reply->responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
    }
    EXPECT_LE(store_.objects().size() - objects, 5u);
    for (int32_t partition : {0, 1}) EXPECT_EQ(records_of(co_await stored(client, "t", partition)), 20u);
  });
}

TEST_F(ProduceTest, EveryVersionOfInitProducerIdGivesAnotherId) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    std::set<ProducerId> ids;
    using Init = protocol::InitProducerIdRequest;
    for (int16_t version = Init::kMinVersion; version <= Init::kMaxVersion; ++version) {
      auto reply = co_await client.ask(Init{.transactional_id = std::nullopt}, version);
      EXPECT_EQ(reply.error_code, ErrorCode::kNone) << version;
      EXPECT_EQ(reply.producer_epoch, ProducerEpoch(0)) << version;
      EXPECT_TRUE(ids.insert(reply.producer_id).second) << version;
    }
  });
}

TEST_F(ProduceTest, PipelinedBatchesOfOneConnectionKeepTheirOrder) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i) {
      ids.push_back(co_await client.post(produce_request("t", {{0, make_batch(std::to_string(i))}}), 9));
    }
    for (int i = 0; i < 50; ++i) {
      auto reply = co_await client.expect<ProduceRequest>(ids[static_cast<size_t>(i)], 9);
      EXPECT_TRUE(reply);
      if (!reply) co_return;
      EXPECT_EQ(reply->responses.at(0).partition_responses.at(0).base_offset, Offset(i));
    }
  });
}

TEST_F(ProduceTest, AStoreThatFailsGivesRetriableErrorsAndHeals) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    store_.set_capacity(0);
    Row row = co_await produce(client, "t", make_batch("v"));
    EXPECT_EQ(row.error_code, ErrorCode::kKafkaStorageError);
    store_.set_capacity(UINT64_MAX);
    EXPECT_EQ((co_await produce(client, "t", make_batch("v"))).base_offset, Offset(0));
  });
}

TEST_F(ProduceTest, AStoreThatDoesNotAnswerGivesARetriableErrorAtThePutsDeadline) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    store_.set_down(true);
    ProduceRequest request = produce_request("t", {{0, make_batch("v")}});
    request.timeout_ms = 120'000;
    MonotonicTime asked = world_.now();
    auto reply = co_await client.ask(request, 9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kKafkaStorageError);
    EXPECT_GE(world_.now() - asked, 20s);
    EXPECT_LE(world_.now() - asked, 31s);
    store_.set_down(false);
    EXPECT_EQ((co_await produce(client, "t", make_batch("v"))).base_offset, Offset(0));
  });
}

TEST_F(ProduceTest, TheTimeoutOfARequestIsKeptAndLeavesTheFateOpen) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    slow_uploads();
    ProduceRequest request = produce_request("t", {{0, make_batch("v")}});
    request.timeout_ms = 50;
    MonotonicTime asked = world_.now();
    auto reply = co_await client.ask(request, 9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kRequestTimedOut);
    EXPECT_LT(world_.now() - asked, 1s);
  });
}

}  // namespace
}  // namespace varve::broker
