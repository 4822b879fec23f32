// SaslHandshake and SaslAuthenticate where no listener has SASL: answered as Apache Kafka does, and nothing is told of
// what the client brought.
#include <gtest/gtest.h>

#include <algorithm>

#include "protocol/messages/api_versions.h"
#include "protocol/messages/sasl_authenticate.h"
#include "protocol/messages/sasl_handshake.h"
#include "sim/broker_fixture.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::SaslAuthenticateRequest;
using protocol::SaslHandshakeRequest;
using runtime::Task;
using sim::RawClient;

constexpr std::string_view kToken("\0nobody\0hunter2", 15);

class SaslTest : public sim::BrokerFixture {
 protected:
  static SaslHandshakeRequest handshake(std::string mechanism) {
    SaslHandshakeRequest request;
    request.mechanism = std::move(mechanism);
    return request;
  }
  static SaslAuthenticateRequest authenticate() {
    SaslAuthenticateRequest request;
    request.auth_bytes = Slice::copy_of(as_bytes(kToken));
    return request;
  }
  bool has_line_with(std::string_view text) const {
    return std::ranges::any_of(warnings_.texts, [&](const std::string& line) { return line.contains(text); });
  }
};

TEST_F(SaslTest, AHandshakeIsOutOfPlaceAndNamesNoMechanisms) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int16_t version : {0, 1}) {
      for (const char* mechanism : {"PLAIN", "SCRAM-SHA-256", "", "none such"}) {
        auto reply = co_await client.ask(handshake(mechanism), version);
        EXPECT_EQ(reply.error_code, ErrorCode::kIllegalSaslState) << version << " " << mechanism;
        EXPECT_TRUE(reply.mechanisms.empty());
      }
    }
  });
}

TEST_F(SaslTest, WhoAuthenticatesIsToldThatItIsOutOfPlaceAndKeepsTheConnection) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int16_t version : {0, 1, 2}) {
      auto reply = co_await client.ask(authenticate(), version);
      EXPECT_EQ(reply.error_code, ErrorCode::kIllegalSaslState) << version;
      EXPECT_TRUE(reply.error_message.has_value());
      EXPECT_EQ(reply.auth_bytes.size(), 0u);
      EXPECT_EQ(reply.session_lifetime_ms, 0);
    }
    EXPECT_EQ((co_await client.ask(protocol::ApiVersionsRequest(), 0)).error_code, ErrorCode::kNone);
  });
}

TEST_F(SaslTest, WhatAClientAuthenticatesWithIsInNoLineOfTheLog) {
  Settings settings = settings_of(0);
  settings.trace_kafka = true;
  add_broker(settings);
  wait_until_serving();
  logger_.set_level(LogLevel::kDebug);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.ask(authenticate(), 2);
    // Says that it brings a byte more than it does: a malformed request, which is told of in its own way.
    std::string frame("\0\0\0\x1d\0\x24\0\0\0\0\0\x09\xff\xff\0\0\0\x10", 18);
    frame += kToken;
    co_await client.send({Slice::copy_of(as_bytes(frame))});
    EXPECT_TRUE(co_await client.is_closed());
  });
  EXPECT_TRUE(has_line_with("auth_bytes=<15 bytes>"));
  EXPECT_TRUE(has_line_with("malformed SaslAuthenticate request"));
  EXPECT_FALSE(has_line_with("hunter2"));
}

}  // namespace
}  // namespace varve::broker
