// What clients are told that may do a part of what they ask for, and what they do not learn: as from Apache Kafka. What
// each API tells who may do nothing is in deny_all_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "broker/denied_client_testing.h"
#include "broker/handlers/handler_table.h"
#include "protocol/messages/alter_configs.h"
#include "protocol/messages/create_partitions.h"
#include "protocol/messages/delete_groups.h"
#include "protocol/messages/describe_cluster.h"
#include "protocol/messages/describe_configs.h"
#include "protocol/messages/describe_groups.h"
#include "protocol/messages/describe_log_dirs.h"
#include "protocol/messages/describe_topic_partitions.h"
#include "protocol/messages/find_coordinator.h"
#include "protocol/messages/incremental_alter_configs.h"
#include "protocol/messages/init_producer_id.h"
#include "protocol/messages/list_groups.h"
#include "protocol/messages/offset_commit.h"
#include "protocol/messages/offset_delete.h"
#include "protocol/messages/offset_fetch.h"
#include "protocol/messages/offset_for_leader_epoch.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;

class AuthorizationTest : public DeniedClientTest {
 protected:
  // Asks in the lowest and the highest version; `code_of` finds the code in the answer.
  template <class Request, class CodeOf>
  void expect_code(Request request, ErrorCode code, CodeOf code_of) {
    run([&]() -> Task<> {
      RawClient client = co_await connect();
      for (int16_t version : {Request::kMinVersion, Request::kMaxVersion}) {
        auto reply = co_await client.ask(request, version);
        EXPECT_EQ(code_of(reply), code) << "version " << version;
      }
    });
    std::optional<Access> access = HandlerTable::access_of(Request::kApiKey);
    EXPECT_TRUE(access.has_value());
    if (!access) return;
    EXPECT_TRUE(was_asked(access->operation, access->type))
        << "the column of the table is not what the handler asks";
  }

  // Since the last look.
  bool was_asked(Operation operation, ResourceType type) {
    auto asked = authorizer.take_asked();
    return std::ranges::find(asked, DenyEverything::Question(operation, type)) != asked.end();
  }
};

TEST_F(AuthorizationTest, MetadataDoesNotTellWhetherANameIsThere) {
  for (const char* name : {"secret", "absent"}) {
    expect_code(sim::metadata_request({name}), ErrorCode::kTopicAuthorizationFailed,
                [](const auto& reply) { return reply.topics.at(0).error_code; });
  }
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto named = co_await client.ask(sim::metadata_request({"secret"}), 12);
    EXPECT_TRUE(named.topics.at(0).topic_id.is_zero());
    auto by_id = sim::metadata_request({""});
    by_id.topics->at(0).name = std::nullopt;
    by_id.topics->at(0).topic_id = id;
    auto known = co_await client.ask(by_id, 12);
    EXPECT_EQ(known.topics.at(0).error_code, ErrorCode::kTopicAuthorizationFailed);
    EXPECT_FALSE(known.topics.at(0).name.has_value());
    auto all = sim::metadata_request({});
    all.topics = std::nullopt;
    auto listed = co_await client.ask(all, 12);
    EXPECT_TRUE(listed.topics.empty());
    EXPECT_EQ(listed.brokers.size(), 1u);
  });
}

TEST_F(AuthorizationTest, MetadataMakesNoTopicForWhoMayNotCreate) {
  authorizer.allow(Operation::kDescribe, ResourceType::kTopic);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto refused = co_await client.ask(sim::metadata_request({"fresh"}), 12);
    EXPECT_EQ(refused.topics.at(0).error_code, ErrorCode::kTopicAuthorizationFailed);
    authorizer.allow(Operation::kCreate, ResourceType::kTopic);
    auto made = co_await client.ask(sim::metadata_request({"fresh"}), 12);
    EXPECT_EQ(made.topics.at(0).error_code, ErrorCode::kNone);
  });
}

TEST_F(AuthorizationTest, AuthorizedOperationsAreThoseThatAreAllowed) {
  authorizer.allow(Operation::kDescribe, ResourceType::kTopic);
  authorizer.allow(Operation::kRead, ResourceType::kTopic);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto request = sim::metadata_request({"secret"});
    request.include_topic_authorized_operations = true;
    request.include_cluster_authorized_operations = true;
    auto reply = co_await client.ask(request, 10);
    EXPECT_EQ(reply.topics.at(0).topic_authorized_operations, 1 << 3 | 1 << 8);
    EXPECT_EQ(reply.cluster_authorized_operations, 0);
  });
}

TEST_F(AuthorizationTest, FindCoordinatorGivesTheCodeOfWhatIsLookedFor) {
  protocol::FindCoordinatorRequest request;
  request.key = "g";
  request.coordinator_keys = {"g"};
  auto code_of = [](const auto& reply) {
    return reply.coordinators.empty() ? reply.error_code : reply.coordinators.at(0).error_code;
  };
  expect_code(request, ErrorCode::kGroupAuthorizationFailed, code_of);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    request.key_type = 1;
    EXPECT_EQ(code_of(co_await client.ask(request, 4)), ErrorCode::kTransactionalIdAuthorizationFailed);
  });
}

TEST_F(AuthorizationTest, WhoMayCreateATopicMayNotLookAtItsConfigs) {
  authorizer.allow(Operation::kCreate, ResourceType::kTopic);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto reply = co_await client.ask(sim::create_request("fresh", 1), 7);
    EXPECT_EQ(reply.topics.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(reply.topics.at(0).topic_config_error_code,
              static_cast<int16_t>(ErrorCode::kTopicAuthorizationFailed));
    EXPECT_EQ(reply.topics.at(0).num_partitions, -1);
    EXPECT_FALSE(reply.topics.at(0).configs.has_value());
  });
}

TEST_F(AuthorizationTest, DeleteTopicsGivesEachTopicItsCodeWhetherItIsThereOrNot) {
  for (const char* name : {"secret", "absent"}) {
    auto request = sim::delete_request(name);
    request.topics.emplace_back().name = name;
    expect_code(request, ErrorCode::kTopicAuthorizationFailed,
                [](const auto& reply) { return reply.responses.at(0).error_code; });
  }
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    protocol::DeleteTopicsRequest by_id;
    by_id.timeout_ms = 30'000;
    by_id.topics.emplace_back().topic_id = id;
    auto hidden = co_await client.ask(by_id, 6);
    EXPECT_EQ(hidden.responses.at(0).error_code, ErrorCode::kTopicAuthorizationFailed);
    EXPECT_FALSE(hidden.responses.at(0).name.has_value());
    // Who may describe it learns which one it is, and whether a name is there.
    authorizer.allow(Operation::kDescribe, ResourceType::kTopic);
    auto named = co_await client.ask(by_id, 6);
    EXPECT_EQ(named.responses.at(0).error_code, ErrorCode::kTopicAuthorizationFailed);
    EXPECT_EQ(named.responses.at(0).name, "secret");
    auto absent = co_await client.ask(sim::delete_request("absent"), 5);
    EXPECT_EQ(absent.responses.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
    authorizer.allow(Operation::kDelete, ResourceType::kTopic);
    auto deleted = co_await client.ask(by_id, 6);
    EXPECT_EQ(deleted.responses.at(0).error_code, ErrorCode::kNone);
  });
}

TEST_F(AuthorizationTest, AProducerIdIsForWhoMayWrite) {
  auto code_of = [](const auto& reply) { return reply.error_code; };
  protocol::InitProducerIdRequest request;
  request.transactional_id = std::nullopt;
  expect_code(request, ErrorCode::kClusterAuthorizationFailed, code_of);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    protocol::InitProducerIdRequest transactional;
    transactional.transactional_id = "t";
    EXPECT_EQ((co_await client.ask(transactional, 4)).error_code,
              ErrorCode::kTransactionalIdAuthorizationFailed);
    authorizer.allow(Operation::kWrite, ResourceType::kTopic);
    EXPECT_EQ((co_await client.ask(request, 4)).error_code, ErrorCode::kNone);
  });
}

TEST_F(AuthorizationTest, CreatePartitionsGivesEachTopicItsCodeWhetherItIsThereOrNot) {
  for (const char* name : {"secret", "absent"}) {
    protocol::CreatePartitionsRequest request;
    request.timeout_ms = 10'000;
    request.topics.emplace_back().name = name;
    expect_code(request, ErrorCode::kTopicAuthorizationFailed,
                [](const auto& reply) { return reply.results.at(0).error_code; });
  }
}

TEST_F(AuthorizationTest, DeleteRecordsGivesEachPartitionItsCode) {
  for (const char* name : {"secret", "absent"}) {
    expect_code(sim::delete_records_request(name, {{0, 0}}), ErrorCode::kTopicAuthorizationFailed,
                [](const auto& reply) { return reply.topics.at(0).partitions.at(0).error_code; });
  }
}

TEST_F(AuthorizationTest, OffsetForLeaderEpochIsForWhoMayDescribeTheTopicAndForBrokers) {
  protocol::OffsetForLeaderEpochRequest request;
  request.topics.emplace_back().topic = "secret";
  request.topics[0].partitions.emplace_back();
  auto code_of = [](const auto& reply) { return reply.topics.at(0).partitions.at(0).error_code; };
  expect_code(request, ErrorCode::kTopicAuthorizationFailed, code_of);
  authorizer.allow(Operation::kClusterAction, ResourceType::kCluster);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(code_of(co_await client.ask(request, 4)), ErrorCode::kNone);
  });
}

TEST_F(AuthorizationTest, DescribeTopicPartitionsDoesNotTellWhetherANameIsThere) {
  for (const char* name : {"secret", "absent"}) {
    protocol::DescribeTopicPartitionsRequest request;
    request.topics.emplace_back().name = name;
    expect_code(request, ErrorCode::kTopicAuthorizationFailed, [](const auto& reply) {
      EXPECT_TRUE(reply.topics.at(0).topic_id.is_zero());
      return reply.topics.at(0).error_code;
    });
  }
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_TRUE((co_await client.ask(protocol::DescribeTopicPartitionsRequest(), 0)).topics.empty());
  });
}

TEST_F(AuthorizationTest, DescribeLogDirsIsForWhoMayDescribeTheCluster) {
  protocol::DescribeLogDirsRequest request;
  request.topics = std::nullopt;
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int16_t version : {1, 5}) {
      auto reply = co_await client.ask(request, version);
      EXPECT_TRUE(reply.results.empty()) << version;
      if (version >= 3) EXPECT_EQ(reply.error_code, ErrorCode::kClusterAuthorizationFailed) << version;
    }
  });
  EXPECT_TRUE(was_asked(Operation::kDescribe, ResourceType::kCluster));
}

TEST_F(AuthorizationTest, ConfigsAreToldWithTheCodeOfTheirKindOfResource) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    protocol::DescribeConfigsRequest request;
    auto add = [&](int8_t type, const char* name) {
      auto& resource = request.resources.emplace_back();
      resource.resource_type = type;
      resource.resource_name = name;
    };
    for (const char* topic : {"secret", "absent"}) add(2, topic);
    for (int8_t type : {4, 8, 16}) add(type, "0");
    add(32, "g");
    auto reply = co_await client.ask(request, 4);
    EXPECT_EQ(reply.results.size(), 6u);
    for (const auto& row : reply.results) {
      ErrorCode expected = row.resource_type == 2    ? ErrorCode::kTopicAuthorizationFailed
                           : row.resource_type == 32 ? ErrorCode::kGroupAuthorizationFailed
                                                     : ErrorCode::kClusterAuthorizationFailed;
      EXPECT_EQ(row.error_code, expected) << int{row.resource_type};
      EXPECT_TRUE(row.configs.empty());
    }
  });
  EXPECT_TRUE(was_asked(Operation::kDescribeConfigs, ResourceType::kTopic));
}

TEST_F(AuthorizationTest, ConfigsAreNotChangedByWhoMayNot) {
  auto code_of = [](const auto& reply) { return reply.responses.at(0).error_code; };
  for (const char* name : {"secret", "absent"}) {
    protocol::AlterConfigsRequest full;
    full.resources.emplace_back().resource_type = 2;
    full.resources[0].resource_name = name;
    expect_code(full, ErrorCode::kTopicAuthorizationFailed, code_of);
    protocol::IncrementalAlterConfigsRequest incremental;
    incremental.resources.emplace_back().resource_type = 2;
    incremental.resources[0].resource_name = name;
    expect_code(incremental, ErrorCode::kTopicAuthorizationFailed, code_of);
  }
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    protocol::IncrementalAlterConfigsRequest request;
    for (int8_t type : {4, 8, 16, 32}) {
      auto& resource = request.resources.emplace_back();
      resource.resource_type = type;
      resource.resource_name = "0";
    }
    auto reply = co_await client.ask(request, 1);
    for (size_t i : {0, 1, 2}) {
      EXPECT_EQ(reply.responses.at(i).error_code, ErrorCode::kClusterAuthorizationFailed);
    }
    EXPECT_EQ(reply.responses.at(3).error_code, ErrorCode::kGroupAuthorizationFailed);
  });
}

TEST_F(AuthorizationTest, DescribeClusterTellsOfNoOperations) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    protocol::DescribeClusterRequest request;
    request.include_cluster_authorized_operations = true;
    auto hidden = co_await client.ask(request, 1);
    EXPECT_EQ(hidden.error_code, ErrorCode::kNone);
    EXPECT_EQ(hidden.cluster_authorized_operations, 0);
    authorizer.allow(Operation::kDescribe, ResourceType::kCluster);
    EXPECT_EQ((co_await client.ask(request, 1)).cluster_authorized_operations, 1 << 8);
  });
}

TEST_F(AuthorizationTest, OffsetCommitGivesTheGroupsCodeOrEachTopics) {
  protocol::OffsetCommitRequest request;
  request.group_id = "g";
  auto& topic = request.topics.emplace_back();
  topic.name = "secret";
  topic.topic_id = id;
  topic.partitions.emplace_back();
  auto code_of = [](const auto& reply) { return reply.topics.at(0).partitions.at(0).error_code; };
  expect_code(request, ErrorCode::kGroupAuthorizationFailed, code_of);
  authorizer.allow(Operation::kRead, ResourceType::kGroup);
  expect_code(request, ErrorCode::kTopicAuthorizationFailed, code_of);
}

TEST_F(AuthorizationTest, OffsetFetchGivesTheGroupsCodeOrEachTopics) {
  protocol::OffsetFetchRequest request;
  request.group_id = "g";
  request.topics->emplace_back().name = "secret";
  request.topics->at(0).partition_indexes = {PartitionIndex(0)};
  auto& group = request.groups.emplace_back();
  group.group_id = "g";
  auto& topic = group.topics->emplace_back();
  topic.name = "secret";
  topic.topic_id = id;
  topic.partition_indexes = {PartitionIndex(0)};
  expect_code(request, ErrorCode::kGroupAuthorizationFailed, [](const auto& reply) {
    if (reply.groups.empty()) return reply.topics.at(0).partitions.at(0).error_code;
    return reply.groups.at(0).error_code;
  });
  authorizer.allow(Operation::kDescribe, ResourceType::kGroup);
  expect_code(request, ErrorCode::kTopicAuthorizationFailed, [](const auto& reply) {
    if (reply.groups.empty()) return reply.topics.at(0).partitions.at(0).error_code;
    return reply.groups.at(0).topics.at(0).partitions.at(0).error_code;
  });
}

TEST_F(AuthorizationTest, GroupsAreDescribedListedAndDeletedByWhoMay) {
  protocol::DescribeGroupsRequest describe;
  describe.groups = {"g"};
  expect_code(describe, ErrorCode::kGroupAuthorizationFailed,
              [](const auto& reply) { return reply.groups.at(0).error_code; });
  protocol::DeleteGroupsRequest remove;
  remove.groups_names = {"g"};
  expect_code(remove, ErrorCode::kGroupAuthorizationFailed,
              [](const auto& reply) { return reply.results.at(0).error_code; });
  protocol::OffsetDeleteRequest forget;
  forget.group_id = "g";
  expect_code(forget, ErrorCode::kGroupAuthorizationFailed,
              [](const auto& reply) { return reply.error_code; });
  authorizer.allow(Operation::kRead, ResourceType::kGroup);
  authorizer.allow(Operation::kRead, ResourceType::kTopic);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    protocol::OffsetCommitRequest commit;
    commit.group_id = "g";
    auto& topic = commit.topics.emplace_back();
    topic.name = "secret";
    topic.partitions.emplace_back();
    auto stored = co_await client.ask(commit, 8);
    EXPECT_EQ(stored.topics.at(0).partitions.at(0).error_code, ErrorCode::kNone);
    authorizer.deny_again();
    EXPECT_TRUE((co_await client.ask(protocol::ListGroupsRequest{}, 5)).groups.empty());
    authorizer.allow(Operation::kDescribe, ResourceType::kGroup);
    EXPECT_EQ((co_await client.ask(protocol::ListGroupsRequest{}, 5)).groups.size(), 1u);
    authorizer.allow(Operation::kDelete, ResourceType::kGroup);
    auto& rows = forget.topics.emplace_back();
    rows.name = "secret";
    rows.partitions.emplace_back();
    auto hidden = co_await client.ask(forget, 0);
    EXPECT_EQ(hidden.topics.at(0).partitions.at(0).error_code, ErrorCode::kTopicAuthorizationFailed);
  });
  authorizer.take_asked();
  expect_code(protocol::ListGroupsRequest{}, ErrorCode::kNone,
              [](const auto& reply) { return reply.error_code; });
}

}  // namespace
}  // namespace varve::broker
