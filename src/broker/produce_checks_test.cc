// What a whole broker answers to batches that are not as they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/produce_testing.h"
#include "protocol/messages/init_producer_id.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::ProduceRequest;
using protocol::SliceChain;
using protocol::records::BatchHeader;
using runtime::Task;
using sim::BatchSpec;
using sim::make_batch;
using sim::produce_request;
using sim::RawClient;
using Row = ProduceRow;

TEST_F(ProduceTest, C028ANegativeSequenceWithAProducerIdIsAnInvalidRecord) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto row = co_await produce(client, "t", sim::idempotent_batch(ProducerId(7), -5));
    EXPECT_EQ(row.error_code, ErrorCode::kInvalidRecord);
  });
}

TEST_F(ProduceTest, C028AFreshProducersFirstSequenceOtherThan0IsRefused) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto init = co_await client.ask(protocol::InitProducerIdRequest{.transactional_id = std::nullopt}, 4);
    for (int32_t sequence : {2147483647, 2147483646, 1}) {
      EXPECT_EQ((co_await produce(client, "t", sim::idempotent_batch(init.producer_id, sequence))).error_code,
                ErrorCode::kOutOfOrderSequenceNumber)
          << sequence;
    }
    EXPECT_EQ((co_await produce(client, "t", sim::idempotent_batch(init.producer_id, 0))).base_offset,
              Offset(0));
  });
}

TEST_F(ProduceTest, RecordsOfANegativeSizeAreNoRecords) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    ProduceRequest request = produce_request("t", {{0, Slice()}});
    request.topic_data[0].partition_data[0].records.reset();
    for (int16_t version = 3; version <= 8; ++version) {
      for (uint8_t last : {0xff, 0xfe, 0x00}) {
        // The size is the last of the request: -1 for null, -2, -256.
        SliceChain frame;
        for (Slice& part : protocol::request_frame(request, version, 7, "test"))
          frame.append(std::move(part));
        Slice bytes = frame.joined();
        bool is_sent = co_await client.send({with_byte(bytes, bytes.size() - 1, last)});
        EXPECT_TRUE(is_sent);
        auto reply = co_await client.expect<ProduceRequest>(7, version);
        EXPECT_TRUE(reply) << "version " << version << " closes the connection";
        if (!reply) co_return;
        EXPECT_EQ(reply->responses.at(0).partition_responses.at(0).error_code, ErrorCode::kInvalidRecord);
      }
    }
  });
}

TEST_F(ProduceTest, AProducerIdWithoutAnEpochIsAnInvalidRecord) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    BatchSpec spec;
    spec.options.producer_id = ProducerId(5);
    spec.options.base_sequence = Sequence(0);
    EXPECT_EQ((co_await produce(client, "t", make_batch(spec))).error_code, ErrorCode::kInvalidRecord);
  });
}

TEST_F(ProduceTest, ABatchOfNoProducerMayHoldAnyNegativeId) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    for (int64_t offset : {0, 1}) {
      EXPECT_EQ((co_await produce(client, "t", sim::idempotent_batch(ProducerId(-7), 3))).base_offset,
                Offset(offset));
    }
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

TEST_F(ProduceTest, C105BombsAndGarbageAreRefusedAndTheBrokerServesOn) {
  Settings settings = settings_of(0);
  settings.limits.decompressed_batch_bytes_max = settings.limits.decompressed_batch_bytes_free = 1'000'000;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    for (Codec codec : {Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
      BatchSpec bomb;
      bomb.timestamps.assign(20, 1'000);
      bomb.value = std::string(100'000, 'x');
      bomb.options.codec = codec;
      Slice batch = make_batch(bomb);
      EXPECT_LT(batch.size(), 200'000u);
      EXPECT_EQ((co_await produce(client, "t", batch)).error_code, ErrorCode::kMessageTooLarge);
      BatchSpec plain;
      plain.value = std::string(500, 'z');
      Slice good = make_batch(plain);
      std::vector<uint8_t> garbage(good.view().begin(), good.view().end());
      BatchHeader header = BatchHeader::decode(garbage);
      header.attributes = static_cast<int16_t>(codec);
      header.encode(garbage);
      protocol::records::seal(garbage);
      EXPECT_EQ((co_await produce(client, "t", Slice::take(garbage))).error_code, ErrorCode::kInvalidRecord);
    }
    EXPECT_EQ((co_await produce(client, "t", make_batch("v"))).base_offset, Offset(0));
  });
}

}  // namespace
}  // namespace varve::broker
