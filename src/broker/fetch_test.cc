// Fetch and ListOffsets against a whole broker. Cases of the areas "fetch" and "listoffsets".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::FetchResponse;
using protocol::ListOffsetsRequest;
using protocol::records::BatchHeader;
using runtime::Task;
using sim::BatchSpec;
using sim::FetchSpec;
using sim::make_batch;
using sim::RawClient;
using Row = FetchResponse::PartitionData;

class FetchTest : public sim::BrokerFixture {
 protected:
  Task<Uuid> create(RawClient& client, std::string topic, int32_t partitions = 1,
                    std::vector<std::pair<std::string, std::string>> configs = {}) {
    auto reply = co_await client.ask(sim::create_request(topic, partitions, std::move(configs)), 7);
    EXPECT_EQ(reply.topics.at(0).error_code, ErrorCode::kNone);
    co_return reply.topics.at(0).topic_id;
  }
  Task<> produce(RawClient& client, std::string topic, Slice batch, int32_t partition = 0) {
    auto reply = co_await client.ask(sim::produce_request(topic, {{partition, std::move(batch)}}), 9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
  }
  // `count` batches of one record each.
  Task<> produce_many(RawClient& client, std::string topic, int count, int32_t partition = 0) {
    for (int i = 0; i < count; ++i) co_await produce(client, topic, make_batch(std::to_string(i)), partition);
  }
  Task<Row> fetch(RawClient& client, FetchRequest request, int16_t version = 11) {
    auto reply = co_await client.ask(std::move(request), version);
    co_return reply.responses.at(0).partitions.at(0);
  }
  Task<> delete_records(RawClient& client, std::string topic, int64_t offset) {
    auto reply = co_await client.ask(sim::delete_records_request(topic, {{0, offset}}), 2);
    EXPECT_EQ(reply.topics.at(0).partitions.at(0).low_watermark, Offset(offset));
  }
  static size_t batches_in(const Row& row) {
    size_t count = 0;
    Slice bytes = row.records->joined();
    for (ByteView rest = bytes.view(); !rest.empty(); ++count) {
      auto batch = protocol::records::BatchView::first_of(rest);
      if (!batch) break;
      rest = rest.subspan(batch->bytes().size());
    }
    return count;
  }
};

TEST_F(FetchTest, C041DataComesAtOnceAndNothingComesByTheWaitInEveryVersion) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t", 3);
    co_await produce(client, "t", make_batch("v"));
    for (int16_t version = FetchRequest::kMinVersion; version <= FetchRequest::kMaxVersion; ++version) {
      FetchSpec spec;
      spec.max_wait_ms = 500;
      spec.partitions = {{0, 0}, {1, 0}, {2, 0}};
      MonotonicTime asked = world_.now();
      auto reply = co_await client.ask(sim::fetch_request("t", id, spec), version);
      EXPECT_LT(world_.now() - asked, 300ms) << version;
      EXPECT_EQ(reply.responses.at(0).partitions.size(), 3u) << version;
      EXPECT_EQ(batches_in(reply.responses.at(0).partitions.at(0)), 1u) << version;
      spec.partitions = {{0, 1}, {1, 0}};
      asked = world_.now();
      reply = co_await client.ask(sim::fetch_request("t", id, spec), version);
      EXPECT_GE(world_.now() - asked, 500ms) << version;
      EXPECT_LT(world_.now() - asked, 900ms) << version;
      for (const Row& row : reply.responses.at(0).partitions) {
        EXPECT_EQ(row.error_code, ErrorCode::kNone) << version;
        EXPECT_TRUE(row.records->empty()) << version;
      }
    }
  });
}

TEST_F(FetchTest, C041ARecordProducedDuringTheWaitWakesIt) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient waiting = co_await connect(0);
    RawClient producer = co_await connect(1);
    Uuid id = co_await create(producer, "t", 2);
    FetchSpec spec;
    spec.max_wait_ms = 30'000;
    spec.partitions = {{0, 0}, {1, 0}};
    MonotonicTime asked = world_.now();
    int32_t waited = co_await waiting.post(sim::fetch_request("t", id, spec), 11);
    co_await runtime::sleep_for(1s);
    co_await produce(producer, "t", make_batch("v"), 1);
    auto reply = co_await waiting.expect<FetchRequest>(waited, 11);
    EXPECT_LT(world_.now() - asked, 3s);
    EXPECT_TRUE(reply);
    if (reply) EXPECT_EQ(batches_in(reply->responses.at(0).partitions.at(1)), 1u);
  });
}

TEST_F(FetchTest, MinBytesAreCountedOverAllPartitions) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    RawClient waiting = co_await connect();
    Uuid id = co_await create(client, "t", 4);
    size_t batch_bytes = make_batch(std::string(100, 'x')).size();
    FetchSpec spec;
    spec.max_wait_ms = 60'000;
    spec.min_bytes = static_cast<int32_t>(3 * batch_bytes);
    spec.partitions = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
    int32_t waited = co_await waiting.post(sim::fetch_request("t", id, spec), 11);
    MonotonicTime asked = world_.now();
    for (int32_t partition : {0, 1, 2}) {
      co_await runtime::sleep_for(1s);
      co_await produce(client, "t", make_batch(std::string(100, 'x')), partition);
    }
    auto reply = co_await waiting.expect<FetchRequest>(waited, 11);
    EXPECT_GE(world_.now() - asked, 3s);
    EXPECT_LT(world_.now() - asked, 10s);
    EXPECT_TRUE(reply);
    if (!reply) co_return;
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(batches_in(reply->responses.at(0).partitions.at(i)), 1u);
  });
}

TEST_F(FetchTest, C045AndC046SessionsWorkOverTheWire) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t", 3);
    for (int32_t partition : {0, 1, 2}) co_await produce(client, "t", make_batch("v"), partition);
    FetchSpec spec;
    spec.partitions = {{0, 1}, {1, 1}, {2, 1}};
    FetchRequest request = sim::fetch_request("t", id, spec);
    request.session_epoch = 0;
    auto opened = co_await client.ask(request, 13);
    EXPECT_NE(opened.session_id, 0);
    EXPECT_EQ(opened.responses.at(0).partitions.size(), 3u);
    // Epoch 1: partition 1 from 0 again; the rest has no news.
    spec.partitions = {{1, 0}};
    request = sim::fetch_request("t", id, spec);
    request.session_id = opened.session_id;
    request.session_epoch = 1;
    auto reply = co_await client.ask(request, 13);
    EXPECT_EQ(reply.responses.at(0).partitions.size(), 1u);
    EXPECT_EQ(reply.responses.at(0).partitions.at(0).partition_index, PartitionIndex(1));
    EXPECT_EQ(batches_in(reply.responses.at(0).partitions.at(0)), 1u);
    // Epoch 2 forgets partition 2, which then gets a record that nobody is told of.
    co_await produce(client, "t", make_batch("v"), 2);
    request = FetchRequest{};
    request.session_id = opened.session_id;
    request.session_epoch = 2;
    auto& forgotten = request.forgotten_topics_data.emplace_back();
    forgotten.topic_id = id;
    forgotten.partitions = {PartitionIndex(1), PartitionIndex(2)};
    reply = co_await client.ask(request, 13);
    EXPECT_TRUE(reply.responses.empty());
    request.forgotten_topics_data.clear();
    request.session_epoch = 9;
    EXPECT_EQ((co_await client.ask(request, 13)).error_code, ErrorCode::kInvalidFetchSessionEpoch);
    request.session_id = 12345;
    EXPECT_EQ((co_await client.ask(request, 13)).error_code, ErrorCode::kFetchSessionIdNotFound);
  });
}

TEST_F(FetchTest, C047OffsetsOutsideTheLogAreOutOfRange) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t");
    co_await produce_many(client, "t", 5);
    co_await delete_records(client, "t", 2);
    auto at = [&](int64_t offset) -> Task<Row> {
      FetchSpec spec;
      spec.partitions = {{0, offset}};
      co_return co_await fetch(client, sim::fetch_request("t", id, spec));
    };
    for (int64_t outside : {1, 6, -1}) {
      EXPECT_EQ((co_await at(outside)).error_code, ErrorCode::kOffsetOutOfRange) << outside;
    }
    Row row = co_await at(2);
    EXPECT_EQ(row.error_code, ErrorCode::kNone);
    EXPECT_EQ(batches_in(row), 3u);
    EXPECT_EQ(row.log_start_offset, Offset(2));
    row = co_await at(5);
    EXPECT_EQ(row.error_code, ErrorCode::kNone);
    EXPECT_TRUE(row.records->empty());
    auto earliest = co_await client.ask(sim::list_offsets_request("t", 0, -2), 7);
    EXPECT_EQ(earliest.topics.at(0).partitions.at(0).offset, Offset(2));
    auto latest = co_await client.ask(sim::list_offsets_request("t", 0, -1), 7);
    EXPECT_EQ(latest.topics.at(0).partitions.at(0).offset, Offset(5));
  });
}

TEST_F(FetchTest, C051OldVersionsNameTopicsAndNewOnesGiveIds) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid a = co_await create(client, "a");
    Uuid b = co_await create(client, "b");
    co_await produce(client, "a", make_batch("of a"));
    co_await produce(client, "b", make_batch("of b"));
    for (int16_t version = FetchRequest::kMinVersion; version <= FetchRequest::kMaxVersion; ++version) {
      FetchRequest request = sim::fetch_request("a", a);
      request.topics.push_back(sim::fetch_request("b", b).topics[0]);
      auto reply = co_await client.ask(request, version);
      EXPECT_EQ(reply.responses.size(), 2u) << version;
      for (size_t i = 0; i < 2; ++i) {
        const auto& topic = reply.responses.at(i);
        EXPECT_EQ(topic.topic, version < 13 ? (i == 0 ? "a" : "b") : "") << version;
        EXPECT_EQ(topic.topic_id, version < 13 ? Uuid{} : (i == 0 ? a : b)) << version;
        Slice records = topic.partitions.at(0).records->joined();
        EXPECT_THAT(std::string(as_text(records.view())), ::testing::HasSubstr(i == 0 ? "of a" : "of b"));
      }
    }
  });
}

TEST_F(FetchTest, C051TwoTopicsInOneSessionAreServedByNameAndById) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid a = co_await create(client, "a");
    Uuid b = co_await create(client, "b");
    for (int16_t version = 7; version <= FetchRequest::kMaxVersion; ++version) {
      auto name = [version](const FetchResponse::FetchableTopicResponse& topic, const char* text, Uuid id) {
        return version < 13 ? topic.topic == text && topic.topic_id.is_zero()
                            : topic.topic.empty() && topic.topic_id == id;
      };
      // From the end on, so that the next request of the session brings the records produced meanwhile.
      int64_t end = version - 7;
      FetchSpec spec;
      spec.partitions = {{0, end}};
      FetchRequest full = sim::fetch_request("a", a, spec);
      full.topics.push_back(sim::fetch_request("b", b, spec).topics[0]);
      full.session_epoch = 0;
      auto opened = co_await client.ask(full, version);
      EXPECT_NE(opened.session_id, 0) << version;
      co_await produce(client, "a", make_batch("of a"));
      co_await produce(client, "b", make_batch("of b"));
      FetchRequest next;
      next.session_id = opened.session_id;
      next.session_epoch = 1;
      auto reply = co_await client.ask(next, version);
      EXPECT_EQ(reply.responses.size(), 2u) << version;
      for (const auto& topic : reply.responses) {
        bool is_a = name(topic, "a", a);
        EXPECT_TRUE(is_a || name(topic, "b", b)) << version;
        EXPECT_EQ(topic.partitions.at(0).error_code, ErrorCode::kNone) << version;
        Slice records = topic.partitions.at(0).records->joined();
        EXPECT_THAT(std::string(as_text(records.view())), ::testing::HasSubstr(is_a ? "of a" : "of b"))
            << version;
      }
    }
  });
}

TEST_F(FetchTest, NoMoreFetchesWaitToBeWokenThanTheLimitAllowsAndTheRestAreAnsweredInTime) {
  Settings settings = settings_of(0);
  settings.limits.fetches_waiting_max = 2;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient producer = co_await connect();
    Uuid id = co_await create(producer, "t");
    FetchSpec spec;
    spec.max_wait_ms = 5'000;
    std::vector<RawClient> waiting;
    std::vector<int32_t> asked;
    for (int i = 0; i < 5; ++i) {
      waiting.push_back(co_await connect());
      asked.push_back(co_await waiting.back().post(sim::fetch_request("t", id, spec), 11));
    }
    co_await runtime::sleep_for(1s);
    MonotonicTime begin = world_.now();
    co_await produce(producer, "t", make_batch("v"));
    size_t woken = 0;
    for (size_t i = 0; i < waiting.size(); ++i) {
      auto reply = co_await waiting[i].expect<FetchRequest>(asked[i], 11);
      EXPECT_TRUE(reply);
      if (!reply) co_return;
      EXPECT_EQ(batches_in(reply->responses.at(0).partitions.at(0)), 1u) << i;
      if (world_.now() - begin < 2s) ++woken;
    }
    EXPECT_EQ(woken, 2u);
    EXPECT_LT(world_.now() - begin, 6s);
  });
}

TEST_F(FetchTest, UnknownTopicsPartitionsAndIdsAreTold) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t");
    FetchSpec spec;
    spec.partitions = {{1, 0}};
    EXPECT_EQ((co_await fetch(client, sim::fetch_request("t", id, spec))).error_code,
              ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ((co_await fetch(client, sim::fetch_request("t", id, spec), 13)).error_code,
              ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ((co_await fetch(client, sim::fetch_request("u", id))).error_code,
              ErrorCode::kUnknownTopicOrPartition);
    Uuid unknown;
    unknown.bytes[5] = 5;
    EXPECT_EQ((co_await fetch(client, sim::fetch_request("t", unknown), 13)).error_code,
              ErrorCode::kUnknownTopicId);
  });
}

TEST_F(FetchTest, BytesAreLimitedButTheFirstBatchIsWhole) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t", 2);
    for (int32_t partition : {0, 1}) {
      for (int i = 0; i < 5; ++i)
        co_await produce(client, "t", make_batch(std::string(10'000, 'x')), partition);
    }
    FetchSpec spec;
    spec.partitions = {{0, 0}, {1, 0}};
    spec.max_bytes = 1;
    auto reply = co_await client.ask(sim::fetch_request("t", id, spec), 11);
    EXPECT_EQ(batches_in(reply.responses.at(0).partitions.at(0)), 1u);
    EXPECT_EQ(batches_in(reply.responses.at(0).partitions.at(1)), 0u);
    spec.max_bytes = 50 << 20;
    spec.partition_bytes = 25'000;
    reply = co_await client.ask(sim::fetch_request("t", id, spec), 11);
    EXPECT_EQ(batches_in(reply.responses.at(0).partitions.at(0)), 2u);
    EXPECT_EQ(batches_in(reply.responses.at(0).partitions.at(1)), 2u);
  });
}

TEST_F(FetchTest, TheLeaderEpochOfTheLogIsKept) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t");
    co_await produce(client, "t", make_batch("v"));
    FetchRequest request = sim::fetch_request("t", id);
    request.topics[0].partitions[0].current_leader_epoch = 1;
    Row row = co_await fetch(client, request);
    EXPECT_EQ(row.error_code, ErrorCode::kNone);
    EXPECT_EQ(BatchHeader::decode(row.records->joined().view()).partition_leader_epoch, 1);
    request.topics[0].partitions[0].current_leader_epoch = 0;
    EXPECT_EQ((co_await fetch(client, request)).error_code, ErrorCode::kFencedLeaderEpoch);
    request.topics[0].partitions[0].current_leader_epoch = 2;
    EXPECT_EQ((co_await fetch(client, request)).error_code, ErrorCode::kUnknownLeaderEpoch);
  });
}

// Kafka up to 3.9 refused versions before 10 on topics that are configured to zstd; 4.4 serves them.
TEST_F(FetchTest, C033ZstdIsServedInEveryVersionOfFetch) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (const char* type : {"zstd", "producer"}) {
      Uuid id = co_await create(client, type, 1, {{"compression.type", type}});
      BatchSpec spec;
      spec.options.codec = Codec::kZstd;
      co_await produce(client, type, make_batch(spec));
      for (int16_t version = FetchRequest::kMinVersion; version <= FetchRequest::kMaxVersion; ++version) {
        Row row = co_await fetch(client, sim::fetch_request(type, id), version);
        EXPECT_EQ(row.error_code, ErrorCode::kNone) << version;
        EXPECT_EQ(BatchHeader::decode(row.records->joined().view()).codec(), Codec::kZstd) << version;
      }
    }
  });
}

TEST_F(FetchTest, C056ATimeAfterTheLastRecordAndAnEmptyTopicGiveNoOffsetAndNoError) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "full");
    co_await create(client, "empty");
    co_await create(client, "expired");
    co_await produce_many(client, "full", 3);
    co_await produce_many(client, "expired", 3);
    co_await delete_records(client, "expired", 3);
    for (const char* topic : {"full", "empty", "expired"}) {
      auto reply = co_await client.ask(sim::list_offsets_request(topic, 0, 2'000), 7);
      const auto& row = reply.topics.at(0).partitions.at(0);
      EXPECT_EQ(row.error_code, ErrorCode::kNone) << topic;
      EXPECT_EQ(row.offset, Offset(-1)) << topic;
      EXPECT_EQ(row.timestamp, -1) << topic;
    }
  });
}

TEST_F(FetchTest, C057TheRecordOfATimeIsFoundInsideABatch) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (Codec codec : kAllCodecs) {
      std::string topic = "t" + std::to_string(static_cast<int>(codec));
      co_await create(client, topic);
      BatchSpec spec;
      spec.timestamps = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
      spec.options.codec = codec;
      co_await produce(client, topic, make_batch(spec));
      auto reply = co_await client.ask(sim::list_offsets_request(topic, 0, 7), 7);
      EXPECT_EQ(reply.topics.at(0).partitions.at(0).offset, Offset(6));
      EXPECT_EQ(reply.topics.at(0).partitions.at(0).timestamp, 7);
    }
  });
}

TEST_F(FetchTest, C060EveryVersionOfListOffsetsIsServed) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await produce_many(client, "t", 5);
    for (int16_t version = ListOffsetsRequest::kMinVersion; version <= ListOffsetsRequest::kMaxVersion;
         ++version) {
      auto latest = co_await client.ask(sim::list_offsets_request("t", 0, -1), version);
      const auto& row = latest.topics.at(0).partitions.at(0);
      EXPECT_EQ(row.error_code, ErrorCode::kNone) << version;
      if (version == 0) {
        EXPECT_THAT(row.old_style_offsets, ::testing::ElementsAre(5));
      } else {
        EXPECT_EQ(row.offset, Offset(5)) << version;
      }
      if (version >= 4) EXPECT_EQ(row.leader_epoch, 1) << version;
    }
  });
}

TEST_F(FetchTest, SpecialTimesAreKnownInTheirVersionsOnly) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    BatchSpec spec;
    spec.timestamps = {5, 9, 7};
    co_await produce(client, "t", make_batch(spec));
    struct Case {
      int64_t time;
      int16_t first_version;
      int64_t offset;
    };
    for (Case special : {Case{-3, 7, 1}, Case{-4, 8, 0}, Case{-5, 9, -1}}) {
      int16_t before = static_cast<int16_t>(special.first_version - 1);
      auto refused = co_await client.ask(sim::list_offsets_request("t", 0, special.time), before);
      EXPECT_EQ(refused.topics.at(0).partitions.at(0).error_code, ErrorCode::kUnsupportedVersion)
          << special.time;
      auto found =
          co_await client.ask(sim::list_offsets_request("t", 0, special.time), special.first_version);
      EXPECT_EQ(found.topics.at(0).partitions.at(0).error_code, ErrorCode::kNone) << special.time;
      EXPECT_EQ(found.topics.at(0).partitions.at(0).offset, Offset(special.offset)) << special.time;
    }
  });
}

}  // namespace
}  // namespace varve::broker
