// CreatePartitions: topics become wider, never narrower. Cases of the area "admin".
#include "protocol/messages/create_partitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/produce_testing.h"

namespace varve::broker {
namespace {

using protocol::CreatePartitionsRequest;
using protocol::CreatePartitionsResponse;
using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;
using Row = CreatePartitionsResponse::CreatePartitionsTopicResult;

class CreatePartitionsTest : public ProduceTest {
 protected:
  static CreatePartitionsRequest request_of(const std::string& topic, int32_t count) {
    CreatePartitionsRequest request;
    request.timeout_ms = 30'000;
    auto& row = request.topics.emplace_back();
    row.name = topic;
    row.count = count;
    row.assignments = std::nullopt;
    return request;
  }
  static Task<Row> widen(RawClient& client, CreatePartitionsRequest request, int16_t version = 3) {
    auto reply = co_await client.ask(std::move(request), version);
    EXPECT_EQ(reply.results.size(), 1u);
    co_return reply.results.at(0);
  }
  static Task<size_t> partitions_of(RawClient& client, std::string topic) {
    auto reply = co_await client.ask(sim::metadata_request({topic}, false), 9);
    co_return reply.topics.at(0).partitions.size();
  }
};

TEST_F(CreatePartitionsTest, C091OnlyMorePartitionsThanThereAreAreAWish) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 3);
    for (int32_t count : {2, 3, 0, -1}) {
      Row row = co_await widen(client, request_of("t", count));
      EXPECT_EQ(row.error_code, ErrorCode::kInvalidPartitions) << count;
      EXPECT_NE(row.error_message.value_or(""), "") << count;
    }
    for (const char* topic : {"nope", "a b", "", "__consumer_offsets"}) {
      EXPECT_EQ((co_await widen(client, request_of(topic, 3))).error_code,
                ErrorCode::kUnknownTopicOrPartition)
          << topic;
    }
    CreatePartitionsRequest validating = request_of("t", 6);
    validating.validate_only = true;
    EXPECT_EQ((co_await widen(client, validating)).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await partitions_of(client, "t"), 3u);
    Row done = co_await widen(client, request_of("t", 5));
    EXPECT_EQ(done.error_code, ErrorCode::kNone);
    EXPECT_EQ(done.error_message, std::nullopt);
    EXPECT_EQ(co_await partitions_of(client, "t"), 5u);
  });
}

TEST_F(CreatePartitionsTest, C091NewPartitionsWorkAtOnceAtEveryBrokerAndOldOnesKeepTheirRecords) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect(0);
    RawClient other = co_await connect(1);
    co_await create(client, "t", 1);
    co_await create(client, "between", 1);
    EXPECT_EQ((co_await produce(client, "t", sim::make_batch("old"))).error_code, ErrorCode::kNone);
    EXPECT_EQ((co_await widen(client, request_of("t", 3))).error_code, ErrorCode::kNone);
    // A broker that has not heard of it looks before it calls a partition unknown.
    auto produced = co_await other.ask(sim::produce_request("t", {{2, sim::make_batch("new")}}), 9);
    EXPECT_EQ(produced.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(produced.responses.at(0).partition_responses.at(0).base_offset, Offset(0));
    EXPECT_EQ(co_await partitions_of(other, "t"), 3u);
    EXPECT_EQ(records_of(co_await stored(other, "t", 2)), 1u);
    EXPECT_EQ(records_of(co_await stored(other, "t", 0)), 1u);
    EXPECT_EQ(records_of(co_await stored(other, "t", 1)), 0u);
    EXPECT_EQ(co_await partitions_of(client, "between"), 1u);
  });
}

TEST_F(CreatePartitionsTest, C091AfterAnAnswerThatNobodyKnewTheRetryHealsIt) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 3);
    sim::LogFaults faults;
    faults.append.request_lost = 1000;
    log_.set_faults(faults);
    CreatePartitionsRequest hasty = request_of("t", 5);
    hasty.timeout_ms = 500;
    EXPECT_EQ((co_await widen(client, hasty)).error_code, ErrorCode::kRequestTimedOut);
    log_.set_faults({});
    Row again = co_await widen(client, request_of("t", 5));
    // The first one may have come through meanwhile.
    EXPECT_TRUE(again.error_code == ErrorCode::kNone || again.error_code == ErrorCode::kInvalidPartitions);
    EXPECT_EQ(co_await partitions_of(client, "t"), 5u);
    auto produced = co_await client.ask(sim::produce_request("t", {{4, sim::make_batch("v")}}), 9);
    EXPECT_EQ(produced.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
  });
}

TEST_F(CreatePartitionsTest, AssignmentsMustCoverWhatIsAddedWithBrokersThatLive) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 1);
    auto assigned = [](std::vector<std::vector<int32_t>> partitions) {
      CreatePartitionsRequest request = request_of("t", 3);
      request.topics[0].assignments.emplace();
      for (const auto& brokers : partitions) {
        auto& row = request.topics[0].assignments->emplace_back();
        for (int32_t broker : brokers) row.broker_ids.push_back(BrokerId(broker));
      }
      return request;
    };
    const std::vector<std::vector<std::vector<int32_t>>> kWrong = {
        {}, {{0}}, {{0}, {1}, {0}}, {{0}, {7}}, {{0}, {}}, {{0, 0}, {1, 1}}, {{0, 1}, {0}}};
    for (const auto& wrong : kWrong) {
      EXPECT_EQ((co_await widen(client, assigned(wrong))).error_code, ErrorCode::kInvalidReplicaAssignment);
    }
    EXPECT_EQ(co_await partitions_of(client, "t"), 1u);
    EXPECT_EQ((co_await widen(client, assigned({{1}, {0}}))).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await partitions_of(client, "t"), 3u);
  });
}

TEST_F(CreatePartitionsTest, LimitsRepeatsAndTimeoutsAreToldAndTakeNoOtherTopicWithThem) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 1);
    co_await create(client, "u", 1);
    for (int32_t count : {10'001, 2'000'000'000}) {
      EXPECT_EQ((co_await widen(client, request_of("t", count))).error_code, ErrorCode::kPolicyViolation);
    }
    CreatePartitionsRequest twice = request_of("t", 2);
    twice.topics.push_back(twice.topics[0]);
    twice.topics.push_back(request_of("u", 2).topics[0]);
    auto reply = co_await client.ask(twice, 3);
    EXPECT_EQ(reply.results.size(), 2u);
    EXPECT_EQ(reply.results.at(0).error_code, ErrorCode::kInvalidRequest);
    EXPECT_EQ(reply.results.at(1).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await partitions_of(client, "t"), 1u);
    EXPECT_EQ(co_await partitions_of(client, "u"), 2u);
    for (int32_t over : {0, -1}) {
      CreatePartitionsRequest late = request_of("t", 2);
      late.timeout_ms = over;
      EXPECT_EQ((co_await widen(client, late)).error_code, ErrorCode::kRequestTimedOut);
    }
    EXPECT_EQ(co_await partitions_of(client, "t"), 1u);
    EXPECT_EQ((co_await client.ask(CreatePartitionsRequest(), 3)).results.size(), 0u);
  });
}

TEST_F(CreatePartitionsTest, EveryVersionIsServedAndTheSwitchForAdminApisHolds) {
  start_brokers(1);
  start_closed_broker();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 1);
    int32_t count = 1;
    for (int16_t version = CreatePartitionsRequest::kMinVersion;
         version <= CreatePartitionsRequest::kMaxVersion; ++version) {
      ++count;
      EXPECT_EQ((co_await widen(client, request_of("t", count), version)).error_code, ErrorCode::kNone)
          << version;
    }
    EXPECT_EQ(co_await partitions_of(client, "t"), 5u);
    RawClient refused = co_await connect(1);
    EXPECT_EQ((co_await widen(refused, request_of("t", 9))).error_code,
              ErrorCode::kClusterAuthorizationFailed);
  });
}

// What one broker has slowly written must not undo what another one has done.
TEST_F(CreatePartitionsTest, C136TopicsThatAreMadeWidenedAndDeletedAgainAndAgainEndAsTheyWereLeft) {
  start_brokers(2);
  slow_log(200ms);
  run([&]() -> Task<> {
    RawClient one = co_await connect(0);
    RawClient two = co_await connect(1);
    for (int i = 0; i < 100; ++i) {
      std::string name = "t" + std::to_string(i);
      int32_t other = co_await two.post(sim::create_request("other" + std::to_string(i), 1), 7);
      co_await create(one, name);
      EXPECT_EQ((co_await widen(one, request_of(name, 2))).error_code, ErrorCode::kNone);
      EXPECT_EQ(co_await partitions_of(one, name), 2u);
      auto gone = co_await one.ask(sim::delete_request(name), 5);
      EXPECT_EQ(gone.responses.at(0).error_code, ErrorCode::kNone);
      co_await two.expect<protocol::CreateTopicsRequest>(other, 7);
    }
  });
  auto names_at = [this](size_t broker) {
    std::set<std::string> names;
    run([&]() -> Task<> {
      RawClient client = co_await connect(broker);
      protocol::MetadataRequest all;
      all.topics = std::nullopt;
      for (const auto& topic : (co_await client.ask(all, 9)).topics) names.insert(*topic.name);
    });
    return names;
  };
  std::set<std::string> left;
  for (int i = 0; i < 100; ++i) left.insert("other" + std::to_string(i));
  EXPECT_EQ(names_at(0), left);
  EXPECT_EQ(names_at(1), left);
  brokers_[0]->crash();
  brokers_[0]->boot();
  wait_until_serving();
  EXPECT_EQ(names_at(0), left);
}

}  // namespace
}  // namespace varve::broker
