#include "client/connection.h"

#include <gtest/gtest.h>

#include "client/scripted_broker_testing.h"
#include "protocol/messages/heartbeat.h"
#include "protocol/messages/init_producer_id.h"
#include "protocol/messages/produce.h"

namespace varve::client {
namespace {

using protocol::ErrorCode;
using protocol::HeartbeatRequest;
using protocol::HeartbeatResponse;
using runtime::Task;

class ConnectionTest : public ScriptedTest {
 protected:
  Task<std::shared_ptr<Connection>> open(ConnectionOptions options = {}) {
    auto stream = co_await client_node_.process().network().connect({"broker0", ScriptedBroker::kPort},
                                                                    world_.now() + 10s);
    CHECK(stream, "{}", stream.error().message);
    co_return Connection::open(executor(), scope_, std::move(*stream), std::move(options));
  }
  // Answers each heartbeat with its generation as the throttle time.
  void echo() {
    broker_.on<HeartbeatRequest>([](const HeartbeatRequest& request, int16_t) {
      HeartbeatResponse response;
      response.throttle_time_ms = request.generation_id;
      return response;
    });
  }
  static HeartbeatRequest heartbeat(int32_t generation) {
    HeartbeatRequest request;
    request.generation_id = generation;
    return request;
  }
  static ClientErrc cause_of(const ClientResult<HeartbeatResponse>& result) {
    EXPECT_FALSE(result);
    return result ? ClientErrc::kStopped : result.error().cause;
  }

  runtime::TaskScope scope_;
};

TEST_F(ConnectionTest, ManyRequestsAreUnderWayAndEachGetsItsOwnReply) {
  echo();
  run([&]() -> Task<> {
    auto connection = co_await open();
    std::vector<Connection::Posted> posted;
    for (int32_t i = 0; i < 50; ++i) posted.push_back(connection->post(heartbeat(i), 4));
    for (int32_t i = 49; i >= 0; --i) {
      auto reply = co_await Connection::reply<HeartbeatRequest>(connection, posted[static_cast<size_t>(i)], 4,
                                                                world_.now() + 10s);
      EXPECT_TRUE(reply);
      if (reply) EXPECT_EQ(reply->throttle_time_ms, i);
    }
    connection->close();
  });
}

TEST_F(ConnectionTest, ALateReplyEndsTheConnectionForAllWhoWait) {
  broker_.on<HeartbeatRequest>([](const auto&, int16_t) { return std::nullopt; });
  run([&]() -> Task<> {
    auto connection = co_await open();
    auto second = connection->post(heartbeat(1), 4);
    MonotonicTime begun = world_.now();
    auto first = co_await Connection::ask(connection, heartbeat(2), 4, begun + 3s);
    EXPECT_EQ(cause_of(first), ClientErrc::kTimeout);
    EXPECT_GE(world_.now() - begun, 3s);
    EXPECT_TRUE(connection->is_closed());
    auto other = co_await Connection::reply<HeartbeatRequest>(connection, second, 4, world_.now() + 10s);
    EXPECT_EQ(cause_of(other), ClientErrc::kTimeout);
    auto after = co_await Connection::ask(connection, heartbeat(3), 4, world_.now() + 10s);
    EXPECT_EQ(cause_of(after), ClientErrc::kDisconnected);
  });
}

TEST_F(ConnectionTest, ABrokerThatGoesAwayIsAnErrorOfAllWhoWait) {
  broker_.on<HeartbeatRequest>([this](const auto&, int16_t) {
    broker_.cut_connections();
    return std::nullopt;
  });
  run([&]() -> Task<> {
    auto connection = co_await open();
    auto reply = co_await Connection::ask(connection, heartbeat(1), 4, world_.now() + 60s);
    EXPECT_EQ(cause_of(reply), ClientErrc::kDisconnected);
    EXPECT_TRUE(reply.error().is_retriable());
    EXPECT_TRUE(reply.error().leaves_doubt());
  });
}

TEST_F(ConnectionTest, AnAnswerThatCannotBeReadEndsTheConnection) {
  broker_.on_frame(protocol::ApiKey::kHeartbeat, [](const Slice&, int16_t version, int32_t correlation) {
    HeartbeatResponse response;
    return protocol::response_frame(response, version, correlation + 7);  // of another request
  });
  run([&]() -> Task<> {
    auto connection = co_await open();
    auto reply = co_await Connection::ask(connection, heartbeat(1), 4, world_.now() + 60s);
    EXPECT_EQ(cause_of(reply), ClientErrc::kMalformed);
    EXPECT_FALSE(reply.error().is_retriable());
    EXPECT_TRUE(connection->is_closed());
  });
}

TEST_F(ConnectionTest, AnAnswerAboveTheLimitTakesNoMemory) {
  broker_.on_frame(protocol::ApiKey::kHeartbeat, [](const Slice&, int16_t, int32_t) {
    return std::vector<Slice>{Slice::take({0x7f, 0xff, 0xff, 0xff, 0, 0})};
  });
  run([&]() -> Task<> {
    auto connection = co_await open();
    auto reply = co_await Connection::ask(connection, heartbeat(1), 4, world_.now() + 60s);
    EXPECT_EQ(cause_of(reply), ClientErrc::kOverLimit);
  });
}

TEST_F(ConnectionTest, RequestsAboveTheLimitAreRefusedAtOnce) {
  echo();
  run([&]() -> Task<> {
    auto connection = co_await open({.client_id = "c", .requests_open_max = 4});
    // A queued request counts as one that is to be sent and one that is to be answered.
    auto first = connection->post(heartbeat(1), 4);
    auto second = connection->post(heartbeat(2), 4);
    auto third = co_await Connection::ask(connection, heartbeat(3), 4, world_.now() + 60s);
    EXPECT_EQ(cause_of(third), ClientErrc::kOverLimit);
    EXPECT_FALSE(connection->is_closed());
    auto reply = co_await Connection::reply<HeartbeatRequest>(connection, second, 4, world_.now() + 60s);
    EXPECT_TRUE(reply);
    connection->close();
  });
}

TEST_F(ConnectionTest, VersionsAreThoseThatBothSidesKnow) {
  broker_.on<protocol::ApiVersionsRequest>([](const auto&, int16_t) {
    protocol::ApiVersionsResponse response;
    response.api_keys.emplace_back() = {.api_key = 0, .min_version = 0, .max_version = 9};
    response.api_keys.emplace_back() = {.api_key = 22, .min_version = 90, .max_version = 99};
    return response;
  });
  run([&]() -> Task<> {
    auto connection = co_await open();
    EXPECT_TRUE(co_await Connection::negotiate(connection, world_.now() + 10s));
    auto produce = connection->versions_of<protocol::ProduceRequest>();
    EXPECT_TRUE(produce);
    EXPECT_EQ(produce->low, 3);
    EXPECT_EQ(produce->high, 9);
    EXPECT_EQ(connection->versions_of<protocol::ProduceRequest>({.low = 0, .high = 7})->high, 7);
    auto newer = connection->versions_of<protocol::ProduceRequest>({.low = 10});
    EXPECT_EQ(newer.error().cause, ClientErrc::kUnsupported);
    EXPECT_FALSE(connection->versions_of<protocol::InitProducerIdRequest>());
    EXPECT_FALSE(connection->versions_of<HeartbeatRequest>());
    connection->close();
  });
}

TEST_F(ConnectionTest, ABrokerThatKnowsOnlyOldApiVersionsIsAskedAgain) {
  std::vector<int16_t> versions;
  broker_.on_frame(protocol::ApiKey::kApiVersions, [&](const Slice&, int16_t version, int32_t correlation) {
    versions.push_back(version);
    protocol::ApiVersionsResponse response;
    response.api_keys.emplace_back() = {.api_key = 18, .min_version = 0, .max_version = 1};
    if (version <= 1) {
      response.api_keys.emplace_back() = {.api_key = 12, .min_version = 0, .max_version = 2};
      return protocol::response_frame(response, version, correlation);
    }
    response.error_code = ErrorCode::kUnsupportedVersion;
    return protocol::response_frame(response, 0, correlation);
  });
  run([&]() -> Task<> {
    auto connection = co_await open();
    EXPECT_TRUE(co_await Connection::negotiate(connection, world_.now() + 10s));
    EXPECT_EQ(connection->versions_of<HeartbeatRequest>()->high, 2);
    connection->close();
  });
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions[0], protocol::ApiVersionsRequest::kMaxVersion);
  EXPECT_EQ(versions[1], 1);
}

}  // namespace
}  // namespace varve::client
