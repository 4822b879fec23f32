// Produce against a whole broker. Cases of the area "produce", and bad input in batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/messages/init_producer_id.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::ProduceRequest;
using protocol::ProduceResponse;
using protocol::records::BatchHeader;
using runtime::Task;
using sim::BatchSpec;
using sim::create_request;
using sim::FetchSpec;
using sim::make_batch;
using sim::produce_request;
using sim::RawClient;
using Row = ProduceResponse::PartitionProduceResponse;

class ProduceTest : public sim::BrokerFixture {
 protected:
  // The topic's id.
  Task<Uuid> create(RawClient& client, std::string topic, int32_t partitions = 1,
                    std::vector<std::pair<std::string, std::string>> configs = {}) {
    auto reply = co_await client.ask(create_request(topic, partitions, std::move(configs)), 7);
    EXPECT_EQ(reply.topics.at(0).error_code, ErrorCode::kNone);
    co_return reply.topics.at(0).topic_id;
  }
  // The answer for one batch to partition 0.
  Task<Row> produce(RawClient& client, std::string topic, Slice batch, int16_t version = 9) {
    auto reply = co_await client.ask(produce_request(topic, {{0, std::move(batch)}}), version);
    co_return reply.responses.at(0).partition_responses.at(0);
  }
  // All batches of a partition.
  Task<Slice> stored(RawClient& client, std::string topic, int32_t partition = 0) {
    FetchSpec spec;
    spec.partitions = {{partition, 0}};
    auto reply = co_await client.ask(sim::fetch_request(topic, Uuid{}, spec), 11);
    co_return reply.responses.at(0).partitions.at(0).records->joined();
  }
  static Slice with_byte(const Slice& batch, size_t at, uint8_t value) {
    std::vector<uint8_t> bytes(batch.view().begin(), batch.view().end());
    bytes[at] = value;
    return Slice::take(std::move(bytes));
  }
};

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

TEST_F(ProduceTest, C028ANegativeSequenceWithAProducerIdIsAnInvalidRecord) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto row = co_await produce(client, "t", sim::idempotent_batch(ProducerId(7), -5));
    EXPECT_EQ(row.error_code, ErrorCode::kInvalidRecord);
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

TEST_F(ProduceTest, C036AWrongMaximumTimestampIsPutRight) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (Codec codec : {Codec::kNone, Codec::kGzip}) {
      std::string topic = codec == Codec::kNone ? "plain" : "gzip";
      co_await create(client, topic);
      BatchSpec spec;
      spec.timestamps = {1000, 1005, 1009};
      spec.options.codec = codec;
      Slice good = make_batch(spec);
      std::vector<uint8_t> bytes(good.view().begin(), good.view().end());
      BatchHeader header = BatchHeader::decode(bytes);
      header.max_timestamp = WallTime(-1);
      header.encode(bytes);
      protocol::records::seal(bytes);
      EXPECT_EQ((co_await produce(client, topic, Slice::take(bytes))).error_code, ErrorCode::kNone);
      Slice batch = co_await stored(client, topic);
      EXPECT_EQ(BatchHeader::decode(batch.view()).max_timestamp, WallTime(1009));
      auto view = protocol::records::BatchView::first_of(batch.view());
      EXPECT_TRUE(view && view->checksum_matches());
      auto found = co_await client.ask(sim::list_offsets_request(topic, 0, 1004), 7);
      EXPECT_EQ(found.topics.at(0).partitions.at(0).offset, Offset(1));
      EXPECT_EQ(found.topics.at(0).partitions.at(0).timestamp, 1005);
    }
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

TEST_F(ProduceTest, C038TimestampsOutOfRangeRefuseTheBatchAndAreNamed) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    std::vector<std::pair<std::string, std::string>> configs = {
        {"message.timestamp.after.max.ms", "3600000"}, {"message.timestamp.before.max.ms", "86400000"}};
    co_await create(client, "t", 1, configs);
    configs.emplace_back("message.timestamp.type", "LogAppendTime");
    co_await create(client, "append", 1, configs);
    int64_t now = brokers_[0]->process().wall_now().value();
    BatchSpec spec;
    spec.timestamps = {now, now + 7'200'000, now - 172'800'000};
    Row row = co_await produce(client, "t", make_batch(spec), 8);
    EXPECT_EQ(row.error_code, ErrorCode::kInvalidTimestamp);
    std::vector<int32_t> named;
    for (const auto& error : row.record_errors) named.push_back(error.batch_index);
    EXPECT_THAT(named, ::testing::ElementsAre(1, 2));
    EXPECT_EQ((co_await produce(client, "append", make_batch(spec), 8)).error_code, ErrorCode::kNone);
  });
}

TEST_F(ProduceTest, C039ACompactedTopicTakesNoRecordWithoutAKey) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 1, {{"cleanup.policy", "compact"}});
    BatchSpec spec;
    spec.null_keys = {true};
    EXPECT_EQ((co_await produce(client, "t", make_batch(spec))).error_code, ErrorCode::kInvalidRecord);
    spec.timestamps = {1, 2, 3};
    spec.null_keys = {false, true, false};
    Row row = co_await produce(client, "t", make_batch(spec), 8);
    EXPECT_EQ(row.error_code, ErrorCode::kInvalidRecord);
    EXPECT_EQ(row.record_errors.at(0).batch_index, 1);
    EXPECT_TRUE((co_await stored(client, "t")).empty());
    BatchSpec tombstone;
    tombstone.null_values = true;
    EXPECT_EQ((co_await produce(client, "t", make_batch(tombstone))).error_code, ErrorCode::kNone);
    // All but base offset and leader epoch is as it was sent.
    Slice sent = make_batch(tombstone);
    Slice kept = co_await stored(client, "t");
    size_t magic_at = protocol::records::kMagicAt;
    EXPECT_EQ(kept.sub(magic_at, kept.size() - magic_at), sent.sub(magic_at, sent.size() - magic_at));
  });
}

TEST_F(ProduceTest, C040ABatchThatIsTooLargeFailsAloneAndTheSocketStays) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 2, {{"max.message.bytes", "1000"}});
    auto reply = co_await client.ask(produce_request("t", {{0, make_batch(std::string(2000, 'x'))},
                                                           {1, make_batch(std::string(100, 'x'))}}),
                                     9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kMessageTooLarge);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(1).error_code, ErrorCode::kNone);
    EXPECT_EQ((co_await produce(client, "t", make_batch(std::string(900, 'x')))).error_code,
              ErrorCode::kNone);
  });
}

TEST_F(ProduceTest, ACorruptBatchIsACorruptMessageAndNothingIsStored) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    Slice good = make_batch("hello");
    EXPECT_EQ((co_await produce(client, "t", with_byte(good, good.size() - 3, 'X'))).error_code,
              ErrorCode::kCorruptMessage);
    EXPECT_EQ((co_await produce(client, "t", with_byte(good, protocol::records::kMagicAt, 7))).error_code,
              ErrorCode::kCorruptMessage);
    EXPECT_TRUE((co_await stored(client, "t")).empty());
    EXPECT_EQ((co_await produce(client, "t", good)).base_offset, Offset(0));
  });
}

TEST_F(ProduceTest, OldFormatsAndWhatIsNoBatchAreInvalidRecords) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    // A message of magic 0 and one of magic 1: offset, size, CRC, magic, attributes...
    for (uint8_t magic : {0, 1}) {
      std::vector<uint8_t> message(40);
      message[11] = 28;
      message[16] = magic;
      EXPECT_EQ((co_await produce(client, "t", Slice::take(message))).error_code, ErrorCode::kInvalidRecord);
    }
    EXPECT_EQ((co_await produce(client, "t", Slice())).error_code, ErrorCode::kInvalidRecord);
    std::vector<uint8_t> two;
    for (int i = 0; i < 2; ++i) {
      Slice batch = make_batch("v");
      two.insert(two.end(), batch.view().begin(), batch.view().end());
    }
    EXPECT_EQ((co_await produce(client, "t", Slice::take(two))).error_code, ErrorCode::kInvalidRecord);
    BatchSpec control;
    control.options.control = true;
    EXPECT_EQ((co_await produce(client, "t", make_batch(control))).error_code, ErrorCode::kInvalidRecord);
    EXPECT_TRUE((co_await stored(client, "t")).empty());
  });
}

TEST_F(ProduceTest, UnknownPartitionsAreToldBesideTheKnownOnes) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 2);
    auto reply = co_await client.ask(
        produce_request(
            "t", {{0, make_batch("a")}, {2, make_batch("b")}, {-1, make_batch("c")}, {1, make_batch("d")}}),
        9);
    std::vector<ErrorCode> codes;
    for (const Row& row : reply.responses.at(0).partition_responses) codes.push_back(row.error_code);
    EXPECT_THAT(codes, ::testing::ElementsAre(ErrorCode::kNone, ErrorCode::kUnknownTopicOrPartition,
                                              ErrorCode::kUnknownTopicOrPartition, ErrorCode::kNone));
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

TEST_F(ProduceTest, TransactionsAreRefusedClearlyUntilTheyAreBuilt) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    protocol::InitProducerIdRequest init;
    init.transactional_id = "tx";
    EXPECT_EQ((co_await client.ask(init, 4)).error_code, ErrorCode::kUnsupportedVersion);
    init.transactional_id = "";
    EXPECT_EQ((co_await client.ask(init, 4)).error_code, ErrorCode::kInvalidRequest);
    init.transactional_id = std::nullopt;
    init.producer_id = ProducerId(5);
    EXPECT_EQ((co_await client.ask(init, 4)).error_code, ErrorCode::kInvalidRequest);
    BatchSpec spec;
    spec.options.transactional = true;
    spec.options.producer_id = ProducerId(5);
    spec.options.producer_epoch = ProducerEpoch(0);
    spec.options.base_sequence = Sequence(0);
    EXPECT_EQ((co_await produce(client, "t", make_batch(spec))).error_code,
              ErrorCode::kTransactionalIdAuthorizationFailed);
    ProduceRequest request = produce_request("t", {{0, make_batch(spec)}});
    request.transactional_id = "tx";
    auto reply = co_await client.ask(request, 9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kInvalidTxnState);
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

TEST_F(ProduceTest, TheTimeoutOfARequestIsKeptAndLeavesTheFateOpen) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    sim::StoreFaults faults;
    faults.put.slow = 1000;
    store_.set_faults(faults);
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
