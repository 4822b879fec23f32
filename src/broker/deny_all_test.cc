// A client that may do nothing: what each API of the table tells it, in each of its versions.
#include <gtest/gtest.h>

#include <functional>

#include "broker/denied_client_testing.h"
#include "broker/handlers/handler_table.h"
#include "protocol/api_table.h"
#include "protocol/messages/alter_configs.h"
#include "protocol/messages/create_partitions.h"
#include "protocol/messages/delete_groups.h"
#include "protocol/messages/describe_cluster.h"
#include "protocol/messages/describe_configs.h"
#include "protocol/messages/describe_groups.h"
#include "protocol/messages/describe_log_dirs.h"
#include "protocol/messages/describe_topic_partitions.h"
#include "protocol/messages/find_coordinator.h"
#include "protocol/messages/heartbeat.h"
#include "protocol/messages/incremental_alter_configs.h"
#include "protocol/messages/init_producer_id.h"
#include "protocol/messages/join_group.h"
#include "protocol/messages/leave_group.h"
#include "protocol/messages/list_groups.h"
#include "protocol/messages/offset_commit.h"
#include "protocol/messages/offset_delete.h"
#include "protocol/messages/offset_fetch.h"
#include "protocol/messages/offset_for_leader_epoch.h"
#include "protocol/messages/sasl_authenticate.h"
#include "protocol/messages/sasl_handshake.h"
#include "protocol/messages/sync_group.h"

namespace varve::broker {
namespace {

using protocol::ApiKey;
using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;

constexpr int8_t kTopicResource = 2;

class DenyAllTest : public DeniedClientTest {
 protected:
  DenyAllTest() {
    add_records();
    add_topics();
    add_configs();
    add_cluster();
    add_groups();
    add_offsets();
  }

  // One API's request, and what is to come of it; `code_of` finds the code in an answer and looks at what else it says.
  template <class Request, class CodeOf>
  void add(Request request, ErrorCode code, CodeOf code_of) {
    cases_[Request::kApiKey] = [this, request, code, code_of] { expect_code(request, code, code_of); };
  }

  template <class Request, class CodeOf>
  void expect_code(const Request& request, ErrorCode code, CodeOf code_of) {
    for (int16_t version = Request::kMinVersion; version <= Request::kMaxVersion; ++version) {
      authorizer.take_asked();
      run([&]() -> Task<> {
        RawClient client = co_await connect();
        auto reply = co_await client.ask(request, version);
        EXPECT_EQ(code_of(reply, version), code) << "version " << version;
      });
      std::vector<DenyEverything::Question> asked = authorizer.take_asked();
      std::optional<Access> access = HandlerTable::access_of(Request::kApiKey);
      if (!access) {
        EXPECT_TRUE(asked.empty()) << "the column of the table says that nobody is asked";
        continue;
      }
      EXPECT_FALSE(asked.empty()) << "version " << version << " asks nobody";
      if (asked.empty()) continue;
      EXPECT_TRUE(asked.front() == DenyEverything::Question(access->operation, access->type))
          << "version " << version << ": the column of the table is not what the handler asks first";
    }
  }

  void add_records();
  void add_topics();
  void add_configs();
  void add_cluster();
  void add_groups();
  void add_offsets();

  std::map<ApiKey, std::function<void()>> cases_;
};

void DenyAllTest::add_records() {
  auto produce = sim::produce_request("secret", {{0, sim::make_batch("v")}});
  produce.topic_data[0].topic_id = id;
  add(produce, ErrorCode::kTopicAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.responses.at(0).partition_responses.at(0).error_code; });
  add(sim::fetch_request("secret", id), ErrorCode::kTopicAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.responses.at(0).partitions.at(0).error_code; });
  auto of_partition = [](const auto& reply, int16_t) {
    return reply.topics.at(0).partitions.at(0).error_code;
  };
  add(sim::list_offsets_request("secret", 0, -1), ErrorCode::kTopicAuthorizationFailed, of_partition);
  add(sim::delete_records_request("secret", {{0, 0}}), ErrorCode::kTopicAuthorizationFailed, of_partition);
  protocol::OffsetForLeaderEpochRequest epoch;
  epoch.topics.emplace_back().topic = "secret";
  epoch.topics[0].partitions.emplace_back();
  add(epoch, ErrorCode::kTopicAuthorizationFailed, of_partition);
  protocol::InitProducerIdRequest producer;
  producer.transactional_id = std::nullopt;
  add(producer, ErrorCode::kClusterAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.error_code; });
}

void DenyAllTest::add_topics() {
  auto of_topic = [](const auto& reply, int16_t) { return reply.topics.at(0).error_code; };
  add(sim::metadata_request({"secret"}), ErrorCode::kTopicAuthorizationFailed, of_topic);
  add(sim::create_request("fresh", 1), ErrorCode::kTopicAuthorizationFailed, of_topic);
  protocol::DescribeTopicPartitionsRequest describe;
  describe.topics.emplace_back().name = "secret";
  add(describe, ErrorCode::kTopicAuthorizationFailed, of_topic);
  auto remove = sim::delete_request("secret");
  remove.topics.emplace_back().name = "secret";
  add(remove, ErrorCode::kTopicAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.responses.at(0).error_code; });
  protocol::CreatePartitionsRequest widen;
  widen.timeout_ms = 10'000;
  widen.topics.emplace_back().name = "secret";
  add(widen, ErrorCode::kTopicAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.results.at(0).error_code; });
}

void DenyAllTest::add_configs() {
  auto with_topic = [](auto request) {
    auto& resource = request.resources.emplace_back();
    resource.resource_type = kTopicResource;
    resource.resource_name = "secret";
    return request;
  };
  auto of_response = [](const auto& reply, int16_t) { return reply.responses.at(0).error_code; };
  add(with_topic(protocol::AlterConfigsRequest()), ErrorCode::kTopicAuthorizationFailed, of_response);
  add(with_topic(protocol::IncrementalAlterConfigsRequest()), ErrorCode::kTopicAuthorizationFailed,
      of_response);
  add(with_topic(protocol::DescribeConfigsRequest()), ErrorCode::kTopicAuthorizationFailed,
      [](const auto& reply, int16_t) {
        EXPECT_TRUE(reply.results.at(0).configs.empty());
        return reply.results.at(0).error_code;
      });
}

void DenyAllTest::add_cluster() {
  // For everybody: without it no client learns how to ask for anything.
  protocol::ApiVersionsRequest versions;
  versions.client_software_name = "test";
  versions.client_software_version = "1";
  add(versions, ErrorCode::kNone, [](const auto& reply, int16_t) {
    EXPECT_EQ(reply.api_keys.size(), protocol::known_apis().size());
    return reply.error_code;
  });
  // For everybody, as in Kafka; what the client may do to the cluster is nothing.
  protocol::DescribeClusterRequest cluster;
  cluster.include_cluster_authorized_operations = true;
  add(cluster, ErrorCode::kNone, [](const auto& reply, int16_t) {
    EXPECT_EQ(reply.cluster_authorized_operations, 0);
    return reply.error_code;
  });
  protocol::DescribeLogDirsRequest dirs;
  dirs.topics = std::nullopt;
  add(dirs, ErrorCode::kClusterAuthorizationFailed, [](const auto& reply, int16_t version) {
    EXPECT_TRUE(reply.results.empty());
    // Before 3 there is no field for it.
    return version < 3 ? ErrorCode::kClusterAuthorizationFailed : reply.error_code;
  });
  // Nobody is asked who a client is, on a listener without SASL.
  auto code_of = [](const auto& reply, int16_t) { return reply.error_code; };
  add(protocol::SaslHandshakeRequest(), ErrorCode::kIllegalSaslState, code_of);
  add(protocol::SaslAuthenticateRequest(), ErrorCode::kIllegalSaslState, code_of);
}

void DenyAllTest::add_groups() {
  auto code_of = [](const auto& reply, int16_t) { return reply.error_code; };
  protocol::FindCoordinatorRequest find;
  find.key = "g";
  find.coordinator_keys = {"g"};
  add(find, ErrorCode::kGroupAuthorizationFailed, [](const auto& reply, int16_t version) {
    return version < 4 ? reply.error_code : reply.coordinators.at(0).error_code;
  });
  protocol::JoinGroupRequest join;
  join.group_id = "g";
  add(join, ErrorCode::kGroupAuthorizationFailed, code_of);
  protocol::SyncGroupRequest sync;
  sync.group_id = "g";
  sync.protocol_type = sync.protocol_name = "p";
  add(sync, ErrorCode::kGroupAuthorizationFailed, code_of);
  protocol::HeartbeatRequest heartbeat;
  heartbeat.group_id = "g";
  add(heartbeat, ErrorCode::kGroupAuthorizationFailed, code_of);
  protocol::LeaveGroupRequest leave;
  leave.group_id = "g";
  add(leave, ErrorCode::kGroupAuthorizationFailed, code_of);
  protocol::DescribeGroupsRequest describe;
  describe.groups = {"g"};
  add(describe, ErrorCode::kGroupAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.groups.at(0).error_code; });
  protocol::DeleteGroupsRequest remove;
  remove.groups_names = {"g"};
  add(remove, ErrorCode::kGroupAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.results.at(0).error_code; });
  // No error, as in Kafka, but no group either.
  add(protocol::ListGroupsRequest(), ErrorCode::kNone, [](const auto& reply, int16_t) {
    EXPECT_TRUE(reply.groups.empty());
    return reply.error_code;
  });
}

void DenyAllTest::add_offsets() {
  protocol::OffsetCommitRequest commit;
  commit.group_id = "g";
  auto& committed = commit.topics.emplace_back();
  committed.name = "secret";
  committed.topic_id = id;
  committed.partitions.emplace_back();
  add(commit, ErrorCode::kGroupAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.topics.at(0).partitions.at(0).error_code; });
  protocol::OffsetFetchRequest fetch;
  fetch.group_id = "g";
  fetch.topics->emplace_back().name = "secret";
  fetch.topics->at(0).partition_indexes = {PartitionIndex(0)};
  auto& group = fetch.groups.emplace_back();
  group.group_id = "g";
  auto& topic = group.topics->emplace_back();
  topic.name = "secret";
  topic.topic_id = id;
  topic.partition_indexes = {PartitionIndex(0)};
  add(fetch, ErrorCode::kGroupAuthorizationFailed, [](const auto& reply, int16_t version) {
    if (version < 2) return reply.topics.at(0).partitions.at(0).error_code;
    return version < 8 ? reply.error_code : reply.groups.at(0).error_code;
  });
  protocol::OffsetDeleteRequest forget;
  forget.group_id = "g";
  add(forget, ErrorCode::kGroupAuthorizationFailed,
      [](const auto& reply, int16_t) { return reply.error_code; });
}

TEST_F(DenyAllTest, EachApiGivesItsRightError) {
  for (const protocol::ApiInfo& api : protocol::known_apis()) {
    SCOPED_TRACE(api.name);
    auto found = cases_.find(api.key);
    if (found == cases_.end()) {
      ADD_FAILURE() << "a new API needs its request and its error here";
      continue;
    }
    found->second();
  }
  EXPECT_EQ(cases_.size(), protocol::known_apis().size());
}

}  // namespace
}  // namespace varve::broker
