// What a client meets before anything else: ApiVersions, headers, connections. Cases of the area "proto".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/messages/api_versions.h"
#include "protocol/messages/describe_cluster.h"
#include "protocol/messages/find_coordinator.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::ApiVersionsRequest;
using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;

class ProtocolTest : public sim::BrokerFixture {
 protected:
  static std::vector<Slice> raw_frame(std::vector<uint8_t> bytes) {
    ByteWriter writer;
    writer.be(static_cast<uint32_t>(bytes.size()));
    writer.raw(bytes);
    return {Slice::take(writer.take())};
  }
  static ApiVersionsRequest api_versions() {
    ApiVersionsRequest request;
    request.client_software_name = "librdkafka";
    request.client_software_version = "2.3.0";
    return request;
  }
};

TEST_F(ProtocolTest, C001AnUnknownVersionOfApiVersionsIsAnsweredInVersion0AndTheSocketStaysOpen) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    // Version 9, header version 2 with an empty client id, strings "x" and "1", no tags.
    co_await client.send(raw_frame({0, 18, 0, 9, 0, 0, 0, 7, 0, 0, 0, 2, 'x', 2, '1', 0}));
    auto reply = co_await client.receive();
    // Correlation id, error 35, one entry: 18, 0 to the newest.
    EXPECT_TRUE(reply);
    if (!reply) co_return;
    EXPECT_THAT(to_hex(reply->view()), ::testing::StartsWith("00000007"
                                                             "0023"
                                                             "00000001"
                                                             "0012"
                                                             "0000"));
    EXPECT_EQ(reply->size(), 4u + 2 + 4 + 6);
    auto second = co_await client.ask(ApiVersionsRequest{}, 0);
    EXPECT_EQ(second.error_code, ErrorCode::kNone);
    EXPECT_EQ(second.api_keys.size(), 30u);
  });
}

TEST_F(ProtocolTest, C002TheFlexibleAnswerHasAHeaderWithoutTags) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int16_t version : {3, 4}) {
      int32_t id = co_await client.post(api_versions(), version);
      auto reply = co_await client.receive();
      EXPECT_TRUE(reply);
      if (!reply) co_return;
      auto body =
          protocol::decode_message<protocol::ApiVersionsResponse>(reply->sub(4, reply->size() - 4), version);
      EXPECT_TRUE(body);
      EXPECT_EQ(load_be<int32_t>(reply->data()), id);
      EXPECT_EQ(body->error_code, ErrorCode::kNone);
    }
  });
}

TEST_F(ProtocolTest, ASoftwareNameThatIsNoneIsRefusedButAnswered) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (const char* name : {"", "-x", "a b", "x."}) {
      ApiVersionsRequest request = api_versions();
      request.client_software_name = name;
      auto reply = co_await client.ask(request, 3);
      EXPECT_EQ(reply.error_code, ErrorCode::kInvalidRequest) << name;
      EXPECT_THAT(reply.api_keys, ::testing::IsEmpty()) << name;
    }
    EXPECT_EQ((co_await client.ask(ApiVersionsRequest{}, 2)).error_code, ErrorCode::kNone);
  });
}

TEST_F(ProtocolTest, C003RequestsWithoutAClientIdAndWithUnknownTagsAreRead) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    std::vector<std::vector<uint8_t>> requests = {
        // Metadata 9, client id null, no tags; body: null topics, three flags, no tags.
        {0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0, 0},
        // Client id of no bytes.
        {0, 3, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
        // Tag 99 with 3 bytes in the header and in the body.
        {0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 1, 99, 3, 1, 2, 3, 0, 0, 0, 0, 1, 99, 3, 1, 2, 3},
    };
    co_await client.send(raw_frame({0, 3, 0, 9, 0, 0, 0, 1, 0, 4, 't', 'e', 's', 't', 0, 0, 0, 0, 0, 0}));
    auto with_client_id = co_await client.receive();
    EXPECT_TRUE(with_client_id);
    if (!with_client_id) co_return;
    auto body =
        protocol::parse_response(*with_client_id, protocol::api_info(protocol::ApiKey::kMetadata), 9, 1);
    EXPECT_TRUE(body);
    if (!body) co_return;
    EXPECT_EQ(protocol::decode_message<protocol::MetadataResponse>(*body, 9)->brokers.size(), 1u);
    for (const auto& request : requests) {
      co_await client.send(raw_frame(request));
      auto reply = co_await client.receive();
      EXPECT_TRUE(reply);
      if (!reply) co_return;
      EXPECT_EQ(*reply, *with_client_id);
    }
  });
}

TEST_F(ProtocolTest, C014EveryApiIsListedOnceWithVersionsThatAreServed) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto reply = co_await client.ask(api_versions(), 4);
    std::set<int16_t> keys;
    for (const auto& api : reply.api_keys) {
      EXPECT_TRUE(keys.insert(api.api_key).second);
      EXPECT_LE(api.min_version, api.max_version);
      if (api.api_key == 0) EXPECT_EQ(api.min_version, 0) << "C006: old librdkafka compresses only then";
    }
    EXPECT_EQ(keys, (std::set<int16_t>{0,  1,  2,  3,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18,
                                       19, 20, 21, 22, 23, 32, 33, 35, 36, 37, 42, 44, 47, 60, 75}));
  });
}

TEST_F(ProtocolTest, C016EveryBrokerNamesTheSameCoordinatorAndMetadataHasItsRow) {
  start_brokers(3);
  auto ask_all = [&](std::set<int32_t>& named) -> Task<> {
    for (int key = 0; key < 20; ++key) {
      std::string group = "g" + std::to_string(key);
      std::optional<protocol::FindCoordinatorResponse> first;
      for (size_t broker = 0; broker < 3; ++broker) {
        if (!brokers_[broker]->node().is_up()) continue;
        RawClient client = co_await connect(broker);
        auto metadata = co_await client.ask(sim::metadata_request({}), 9);
        auto one = co_await client.ask(protocol::FindCoordinatorRequest{.key = group}, 2);
        EXPECT_EQ(one.error_code, ErrorCode::kNone);
        EXPECT_TRUE(std::ranges::any_of(metadata.brokers, [&](const auto& row) {
          return row.node_id == one.node_id && row.host == one.host && row.port == one.port;
        })) << group;
        if (!first) first = one;
        EXPECT_EQ(one, *first) << group << " by broker " << broker;
        named.insert(one.node_id.value());
        // Version 4 and later: an entry a key.
        auto many =
            co_await client.ask(protocol::FindCoordinatorRequest{.coordinator_keys = {group, "h"}}, 4);
        EXPECT_EQ(many.coordinators.size(), 2u);
        EXPECT_EQ(many.coordinators.at(0).key, group);
        EXPECT_EQ(many.coordinators.at(0).node_id, one.node_id);
        EXPECT_EQ(many.coordinators.at(1).key, "h");
        EXPECT_EQ(many.coordinators.at(1).error_code, ErrorCode::kNone);
      }
    }
  };
  std::set<int32_t> named;
  run([&] { return ask_all(named); });
  EXPECT_EQ(named, (std::set<int32_t>{0, 1, 2})) << "keys spread";
  // A broker that is gone for longer than its session is nobody's coordinator.
  brokers_[1]->crash();
  world_.run_for(60s);
  named.clear();
  run([&] { return ask_all(named); });
  EXPECT_EQ(named, (std::set<int32_t>{0, 2}));
}

TEST_F(ProtocolTest, EveryVersionOfFindCoordinatorIsServedForGroupsAndTransactionsOnly) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int16_t version = protocol::FindCoordinatorRequest::kMinVersion;
         version <= protocol::FindCoordinatorRequest::kMaxVersion; ++version) {
      for (int8_t type : {0, 1, 2, 9}) {
        if (version == 0 && type != 0) continue;
        protocol::FindCoordinatorRequest request{.key = "k", .key_type = type, .coordinator_keys = {"k"}};
        auto reply = co_await client.ask(request, version);
        ErrorCode error = version < 4 ? reply.error_code : reply.coordinators.at(0).error_code;
        BrokerId node = version < 4 ? reply.node_id : reply.coordinators.at(0).node_id;
        EXPECT_EQ(error, type < 2 ? ErrorCode::kNone : ErrorCode::kInvalidRequest) << version;
        EXPECT_EQ(node, BrokerId(type < 2 ? 0 : -1)) << version;
      }
    }
  });
}

TEST_F(ProtocolTest, AMalformedBodyClosesTheConnectionAfterTheRepliesBeforeIt) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    int32_t id = co_await client.post(sim::metadata_request({"t"}), 9);
    co_await client.send(raw_frame({0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0, 0x7f}));
    EXPECT_TRUE(co_await client.expect<protocol::MetadataRequest>(id, 9));
    EXPECT_TRUE(co_await client.is_closed());
    // Others are not touched.
    RawClient other = co_await connect();
    EXPECT_EQ((co_await other.ask(ApiVersionsRequest{}, 0)).error_code, ErrorCode::kNone);
  });
}

TEST_F(ProtocolTest, C022TheClusterIsDescribedAsInMetadata) {
  start_brokers(3);
  run([&]() -> Task<> {
    RawClient client = co_await connect(1);
    auto metadata = co_await client.ask(sim::metadata_request({}), 10);
    for (int16_t version : {0, 1, 2}) {
      protocol::DescribeClusterRequest request;
      auto plain = co_await client.ask(request, version);
      EXPECT_EQ(plain.error_code, ErrorCode::kNone);
      EXPECT_FALSE(plain.cluster_id.empty());
      EXPECT_EQ(plain.cluster_id, metadata.cluster_id);
      EXPECT_EQ(plain.controller_id, metadata.controller_id);
      EXPECT_EQ(plain.brokers.size(), 3u);
      EXPECT_TRUE(std::ranges::any_of(
          plain.brokers, [&](const auto& broker) { return broker.broker_id == plain.controller_id; }));
      EXPECT_EQ(plain.cluster_authorized_operations, INT32_MIN);
      request.include_cluster_authorized_operations = true;
      auto with_operations = co_await client.ask(request, version);
      EXPECT_GT(with_operations.cluster_authorized_operations, 0);
    }
    protocol::DescribeClusterRequest controllers;
    controllers.endpoint_type = 2;
    EXPECT_EQ((co_await client.ask(controllers, 1)).error_code, ErrorCode::kMismatchedEndpointType);
  });
}

}  // namespace
}  // namespace varve::broker
