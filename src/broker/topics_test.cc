// Topics as clients make, see and delete them: Metadata, CreateTopics, DeleteTopics. Cases of "metadata" and "admin".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/messages/delete_topics.h"
#include "protocol/messages/init_producer_id.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::CreateTopicsRequest;
using protocol::DeleteTopicsRequest;
using protocol::ErrorCode;
using protocol::MetadataRequest;
using runtime::Task;
using sim::create_request;
using sim::metadata_request;
using sim::RawClient;
using ::testing::HasSubstr;

class TopicsTest : public sim::BrokerFixture {
 protected:
  Task<ErrorCode> create(RawClient& client, CreateTopicsRequest request, int16_t version = 7) {
    auto reply = co_await client.ask(std::move(request), version);
    co_return reply.topics.at(0).error_code;
  }
  Task<std::vector<std::string>> names(RawClient& client) {
    MetadataRequest all;
    all.topics = std::nullopt;
    auto reply = co_await client.ask(all, 9);
    std::vector<std::string> result;
    for (const auto& topic : reply.topics) result.push_back(*topic.name);
    co_return result;
  }
};

TEST_F(TopicsTest, C018AskingForAnUnknownTopicMakesItWhereThatIsAllowed) {
  Settings settings = settings_of(0);
  settings.auto_create_partitions = 3;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto made = co_await client.ask(metadata_request({"t1"}), 4);
    EXPECT_EQ(made.topics.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(made.topics.at(0).partitions.size(), 3u);
    EXPECT_EQ(made.topics.at(0).partitions.at(0).leader_id, BrokerId(0));
    auto not_made = co_await client.ask(metadata_request({"t2"}, false), 4);
    EXPECT_EQ(not_made.topics.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
    auto bad = co_await client.ask(metadata_request({"bad name!"}), 4);
    EXPECT_EQ(bad.topics.at(0).error_code, ErrorCode::kInvalidTopicException);
    // Before version 4 there is no such flag, and asking makes.
    auto old = co_await client.ask(metadata_request({"t3"}), 1);
    EXPECT_EQ(old.topics.at(0).error_code, ErrorCode::kNone);
    EXPECT_THAT(co_await names(client), ::testing::ElementsAre("t1", "t3"));
    auto internal = co_await client.ask(metadata_request({"__consumer_offsets"}), 9);
    EXPECT_EQ(internal.topics.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
    EXPECT_TRUE(internal.topics.at(0).is_internal);
  });
}

TEST_F(TopicsTest, C018WithAutomaticCreationOffNothingIsMade) {
  Settings settings = settings_of(0);
  settings.auto_create_topics = false;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto reply = co_await client.ask(metadata_request({"t1"}), 9);
    EXPECT_EQ(reply.topics.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
    EXPECT_THAT(co_await names(client), ::testing::IsEmpty());
  });
}

TEST_F(TopicsTest, EveryVersionOfMetadataIsServed) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await create(client, create_request("t", 2)), ErrorCode::kNone);
    for (int16_t version = MetadataRequest::kMinVersion; version <= MetadataRequest::kMaxVersion; ++version) {
      auto named = co_await client.ask(metadata_request({"t"}), version);
      EXPECT_EQ(named.topics.at(0).partitions.size(), 2u) << version;
      EXPECT_EQ(named.brokers.at(0).host, "broker0") << version;
      EXPECT_EQ(named.brokers.at(0).port, kKafkaPort) << version;
      // Version 0 means all by an empty list, later ones none.
      auto empty = co_await client.ask(metadata_request({}), version);
      EXPECT_EQ(empty.topics.size(), version == 0 ? 1u : 0u) << version;
      if (version == 0) continue;
      MetadataRequest all;
      all.topics = std::nullopt;
      EXPECT_EQ((co_await client.ask(all, version)).topics.size(), 1u) << version;
    }
  });
}

TEST_F(TopicsTest, TopicsAreFoundByIdAndAnUnknownIdIsTold) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto created = co_await client.ask(create_request("t", 1), 7);
    auto made = co_await client.ask(metadata_request({"t"}), 12);
    EXPECT_EQ(made.topics.at(0).topic_id, created.topics.at(0).topic_id);
    EXPECT_FALSE(made.topics.at(0).topic_id.is_zero());
    MetadataRequest by_id;
    by_id.topics->resize(2);
    by_id.topics->at(0).name = std::nullopt;
    by_id.topics->at(0).topic_id = made.topics.at(0).topic_id;
    by_id.topics->at(1).name = "t";
    by_id.topics->at(1).topic_id.bytes[3] = 9;
    auto reply = co_await client.ask(by_id, 12);
    EXPECT_EQ(reply.topics.at(0).name, "t");
    EXPECT_EQ(reply.topics.at(1).error_code, ErrorCode::kUnknownTopicId);
    EXPECT_EQ(reply.topics.at(1).name, std::nullopt);
  });
}

TEST_F(TopicsTest, AuthorizedOperationsAreABitSetOnlyIfAskedFor) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto plain = co_await client.ask(metadata_request({"t"}), 9);
    EXPECT_EQ(plain.topics.at(0).topic_authorized_operations, INT32_MIN);
    EXPECT_EQ(plain.cluster_authorized_operations, INT32_MIN);
    MetadataRequest asking = metadata_request({"t"});
    asking.include_topic_authorized_operations = true;
    asking.include_cluster_authorized_operations = true;
    auto reply = co_await client.ask(asking, 9);
    EXPECT_EQ(reply.topics.at(0).topic_authorized_operations, 0xdf8);
    EXPECT_EQ(reply.cluster_authorized_operations, 0x1fa0);
  });
}

TEST_F(TopicsTest, LeadersAreInTheRackThatTheClientIdNames) {
  for (int32_t id : {0, 1, 2, 3}) {
    Settings settings = settings_of(id);
    settings.rack = id < 2 ? "a" : "b";
    add_broker(settings);
  }
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await create(client, create_request("t", 40)), ErrorCode::kNone);
    auto leaders = [&](std::string client_id) -> Task<std::set<int32_t>> {
      auto reply = co_await client.ask(metadata_request({"t"}), 9, client_id);
      std::set<int32_t> result;
      for (const auto& partition : reply.topics.at(0).partitions) result.insert(partition.leader_id.value());
      co_return result;
    };
    EXPECT_EQ(co_await leaders("app,diskless_az=a"), (std::set<int32_t>{0, 1}));
    EXPECT_EQ(co_await leaders("zone=b-consumer-1"), (std::set<int32_t>{2, 3}));
    EXPECT_EQ(co_await leaders("app"), (std::set<int32_t>{0, 1, 2, 3}));
  });
}

TEST_F(TopicsTest, C089NumbersAndNamesAreCheckedAsKafkaDoes) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    CreateTopicsRequest request = create_request("rf", 1);
    for (int16_t wrong : {3, 0, -2}) {
      request.topics[0].replication_factor = wrong;
      EXPECT_EQ(co_await create(client, request), ErrorCode::kInvalidReplicationFactor) << wrong;
    }
    for (int32_t wrong : {0, -2}) {
      EXPECT_EQ(co_await create(client, create_request("p", wrong)), ErrorCode::kInvalidPartitions) << wrong;
    }
    EXPECT_EQ(co_await create(client, create_request("p", 10'001)), ErrorCode::kPolicyViolation);
    for (const char* wrong : {"a b", "..", ".", "", "a/b", "_wal", "_data", "_log", "manifest.json"}) {
      EXPECT_EQ(co_await create(client, create_request(wrong, 1)), ErrorCode::kInvalidTopicException)
          << wrong;
    }
    EXPECT_EQ(co_await create(client, create_request(std::string(250, 'x'), 1)),
              ErrorCode::kInvalidTopicException);
    // Defaults are used, and told from version 5 on.
    auto defaults = co_await client.ask(create_request("defaults", -1), 5);
    EXPECT_EQ(defaults.topics.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(defaults.topics.at(0).num_partitions, 1);
    EXPECT_EQ(defaults.topics.at(0).replication_factor, 1);
    EXPECT_EQ(defaults.topics.at(0).configs->size(), 38u);
    CreateTopicsRequest twice = create_request("twice", 1);
    twice.topics.push_back(twice.topics[0]);
    twice.topics.push_back(create_request("once", 1).topics[0]);
    auto reply = co_await client.ask(twice, 7);
    EXPECT_EQ(reply.topics.size(), 2u);
    EXPECT_EQ(reply.topics.at(0).error_code, ErrorCode::kInvalidRequest);
    EXPECT_EQ(reply.topics.at(1).name, "once");
    EXPECT_EQ(reply.topics.at(1).error_code, ErrorCode::kNone);
  });
}

TEST_F(TopicsTest, ATopicMadeWithASettingThatDoesNothingYetIsWarnedAboutOnce) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto lines = [this] {
      std::vector<std::string> found;
      for (const std::string& line : warnings_.texts) {
        if (line.contains("without effect so far")) found.push_back(line);
      }
      return found;
    };
    EXPECT_EQ(co_await create(client, create_request("plain", 1, {{"max.message.bytes", "1000"}})),
              ErrorCode::kNone);
    EXPECT_EQ(co_await create(client, create_request("bad", 1, {{"retention.ms", "x"}})),
              ErrorCode::kInvalidConfig);
    EXPECT_THAT(lines(), ::testing::IsEmpty());
    CreateTopicsRequest request = create_request(
        "short", 1, {{"retention.ms", "1000"}, {"cleanup.policy", "compact"}, {"flush.ms", "7"}});
    EXPECT_EQ(co_await create(client, request), ErrorCode::kNone);
    EXPECT_THAT(lines(),
                ::testing::ElementsAre(::testing::AllOf(
                    HasSubstr("topic=short"), HasSubstr("cleanup.policy=compact retention.ms=1000"))));
  });
}

TEST_F(TopicsTest, C089AReplicationFactorUpToTheNumberOfBrokersIsTaken) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    CreateTopicsRequest request = create_request("rf2", 1);
    request.topics[0].replication_factor = 2;
    EXPECT_EQ(co_await create(client, request), ErrorCode::kNone);
  });
}

TEST_F(TopicsTest, C090ValidateOnlyChecksAsMuchAndMakesNothing) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await create(client, create_request("t", 1)), ErrorCode::kNone);
    auto validate = [&](CreateTopicsRequest request) -> Task<ErrorCode> {
      request.validate_only = true;
      co_return co_await create(client, std::move(request));
    };
    EXPECT_EQ(co_await validate(create_request("t", 1)), ErrorCode::kTopicAlreadyExists);
    CreateTopicsRequest without_value = create_request("t", 1, {{"retention.ms", "1"}});
    without_value.topics[0].configs[0].value = std::nullopt;
    EXPECT_EQ(co_await validate(without_value), ErrorCode::kTopicAlreadyExists);
    without_value.topics[0].name = "new";
    EXPECT_EQ(co_await validate(without_value), ErrorCode::kInvalidConfig);
    EXPECT_EQ(co_await validate(create_request("new", 1)), ErrorCode::kNone);
    EXPECT_EQ(co_await validate(create_request("new", 1, {{"foo.bar", "1"}})), ErrorCode::kInvalidConfig);
    EXPECT_EQ(co_await validate(create_request("new", 1, {{"retention.ms", "abc"}})),
              ErrorCode::kInvalidConfig);
    EXPECT_THAT(co_await names(client), ::testing::ElementsAre("t"));
  });
}

TEST_F(TopicsTest, CreateTopicsIsServedInEveryVersion) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int16_t version = CreateTopicsRequest::kMinVersion; version <= CreateTopicsRequest::kMaxVersion;
         ++version) {
      CreateTopicsRequest request =
          create_request("v" + std::to_string(version), 2, {{"retention.ms", "1000"}});
      request.topics[0].replication_factor = 1;
      EXPECT_EQ(co_await create(client, request, version), ErrorCode::kNone) << version;
      EXPECT_EQ(co_await create(client, request, version), ErrorCode::kTopicAlreadyExists) << version;
    }
    auto reply = co_await client.ask(create_request("bad", 1, {{"min.insync.replicas", "0"}}), 7);
    EXPECT_THAT(reply.topics.at(0).error_message.value_or(""), HasSubstr("min.insync.replicas=0"));
  });
}

TEST_F(TopicsTest, AnAssignmentOfReplicasIsCheckedAndMakesThePartitions) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto assigned = [](std::vector<std::pair<int32_t, std::vector<int32_t>>> partitions) {
      CreateTopicsRequest request = create_request("assigned", -1);
      for (auto& [index, brokers] : partitions) {
        auto& row = request.topics[0].assignments.emplace_back();
        row.partition_index = PartitionIndex(index);
        for (int32_t broker : brokers) row.broker_ids.push_back(BrokerId(broker));
      }
      return request;
    };
    EXPECT_EQ(co_await create(client, assigned({{0, {0}}, {2, {1}}})), ErrorCode::kInvalidReplicaAssignment);
    EXPECT_EQ(co_await create(client, assigned({{0, {0}}, {0, {1}}})), ErrorCode::kInvalidReplicaAssignment);
    EXPECT_EQ(co_await create(client, assigned({{0, {7}}})), ErrorCode::kInvalidReplicaAssignment);
    EXPECT_EQ(co_await create(client, assigned({{0, {0, 0}}})), ErrorCode::kInvalidReplicaAssignment);
    CreateTopicsRequest with_number = assigned({{0, {0}}});
    with_number.topics[0].num_partitions = 1;
    EXPECT_EQ(co_await create(client, with_number), ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await create(client, assigned({{1, {1}}, {0, {0}}})), ErrorCode::kNone);
    auto reply = co_await client.ask(metadata_request({"assigned"}), 9);
    EXPECT_EQ(reply.topics.at(0).partitions.size(), 2u);
  });
}

TEST_F(TopicsTest, TopicsAreDeletedByNameAndById) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int16_t version = DeleteTopicsRequest::kMinVersion; version <= 5; ++version) {
      EXPECT_EQ(co_await create(client, create_request("t", 1)), ErrorCode::kNone);
      DeleteTopicsRequest request;
      request.timeout_ms = 30'000;
      request.topic_names = {"t", "nobody"};
      auto reply = co_await client.ask(request, version);
      EXPECT_EQ(reply.responses.at(0).error_code, ErrorCode::kNone) << version;
      EXPECT_EQ(reply.responses.at(1).error_code, ErrorCode::kUnknownTopicOrPartition) << version;
    }
    auto made = co_await client.ask(create_request("t", 1), 7);
    DeleteTopicsRequest by_id;
    by_id.timeout_ms = 30'000;
    by_id.topics.resize(3);
    by_id.topics[0].topic_id = made.topics.at(0).topic_id;
    by_id.topics[1].topic_id.bytes[0] = 1;
    by_id.topics[2].topic_id.bytes[0] = 2;
    by_id.topics[2].name = "x";
    auto reply = co_await client.ask(by_id, 6);
    EXPECT_EQ(reply.responses.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(reply.responses.at(0).name, "t");
    EXPECT_EQ(reply.responses.at(1).error_code, ErrorCode::kUnknownTopicId);
    EXPECT_EQ(reply.responses.at(2).error_code, ErrorCode::kInvalidRequest);
    EXPECT_THAT(co_await names(client), ::testing::IsEmpty());
  });
}

TEST_F(TopicsTest, WithoutAnyTimeNothingIsMadeOrDeleted) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await create(client, create_request("t", 1)), ErrorCode::kNone);
    for (int32_t timeout : {0, -1}) {
      CreateTopicsRequest made = create_request("u", 1);
      made.timeout_ms = timeout;
      EXPECT_EQ(co_await create(client, made), ErrorCode::kRequestTimedOut);
      DeleteTopicsRequest gone;
      gone.topic_names = {"t", "nobody", "twice", "twice"};
      gone.timeout_ms = timeout;
      auto reply = co_await client.ask(gone, 5);
      EXPECT_EQ(reply.responses.size(), 3u);
      EXPECT_EQ(reply.responses.at(0).error_code, ErrorCode::kRequestTimedOut);
      EXPECT_EQ(reply.responses.at(0).error_message, std::nullopt);
      EXPECT_EQ(reply.responses.at(1).error_code, ErrorCode::kRequestTimedOut);
      EXPECT_EQ(reply.responses.at(2).error_code, ErrorCode::kInvalidRequest);
    }
    EXPECT_THAT(co_await names(client), ::testing::ElementsAre("t"));
  });
}

TEST_F(TopicsTest, ATopicNamedTwiceIsDeletedNeitherTime) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto made = co_await client.ask(create_request("t", 1), 7);
    DeleteTopicsRequest request;
    request.timeout_ms = 30'000;
    EXPECT_EQ(co_await create(client, create_request("u", 1)), ErrorCode::kNone);
    request.topics.resize(3);
    request.topics[0].name = "t";
    request.topics[1].topic_id = made.topics.at(0).topic_id;
    request.topics[2].name = "u";
    auto reply = co_await client.ask(request, 6);
    EXPECT_EQ(reply.responses.size(), 2u);
    EXPECT_EQ(reply.responses.at(0).error_code, ErrorCode::kInvalidRequest);
    EXPECT_EQ(reply.responses.at(0).name, "t");
    EXPECT_EQ(reply.responses.at(0).topic_id, made.topics.at(0).topic_id);
    EXPECT_EQ(reply.responses.at(1).name, "u");
    EXPECT_EQ(reply.responses.at(1).error_code, ErrorCode::kNone);
    EXPECT_THAT(co_await names(client), ::testing::ElementsAre("t"));
  });
}

TEST_F(TopicsTest, WithAdminApisOffTopicsAreNeitherMadeNorDeleted) {
  start_closed_broker();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await create(client, create_request("t", 1)), ErrorCode::kClusterAuthorizationFailed);
    DeleteTopicsRequest request;
    request.timeout_ms = 30'000;
    request.topic_names = {"t"};
    auto reply = co_await client.ask(request, 5);
    EXPECT_EQ(reply.responses.at(0).error_code, ErrorCode::kClusterAuthorizationFailed);
  });
}

TEST_F(TopicsTest, ATimeoutThatIsOverDoesNothing) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    CreateTopicsRequest made = create_request("t", 1);
    for (int32_t over : {0, -1}) {
      made.timeout_ms = over;
      EXPECT_EQ(co_await create(client, made), ErrorCode::kRequestTimedOut);
    }
    EXPECT_THAT(co_await names(client), ::testing::IsEmpty());
    EXPECT_EQ(co_await create(client, create_request("t", 1)), ErrorCode::kNone);
    DeleteTopicsRequest request = sim::delete_request("t");
    request.timeout_ms = 0;
    auto reply = co_await client.ask(request, 5);
    EXPECT_EQ(reply.responses.at(0).error_code, ErrorCode::kRequestTimedOut);
    EXPECT_THAT(co_await names(client), ::testing::ElementsAre("t"));
  });
}

TEST_F(TopicsTest, C116NamesThatBeginAlikeStayApart) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await create(client, create_request("a.b_c-1", 1)), ErrorCode::kNone);
    EXPECT_EQ(co_await create(client, create_request("a.b_c-10", 1)), ErrorCode::kNone);
    EXPECT_EQ(co_await create(client, create_request("a_b.c-1", 1)), ErrorCode::kInvalidTopicException);
    DeleteTopicsRequest request;
    request.timeout_ms = 30'000;
    request.topic_names = {"a.b_c-1"};
    co_await client.ask(request, 5);
    EXPECT_THAT(co_await names(client), ::testing::ElementsAre("a.b_c-10"));
  });
}

TEST_F(TopicsTest, WhatOneBrokerAcknowledgedEveryOtherKnows) {
  start_brokers(3);
  slow_log(2s);
  run([&]() -> Task<> {
    RawClient maker = co_await connect(0);
    RawClient asker = co_await connect(1);
    RawClient lister = co_await connect(2);
    for (int i = 0; i < 10; ++i) {
      std::string name = "t" + std::to_string(i);
      EXPECT_EQ(co_await create(maker, create_request(name, 1)), ErrorCode::kNone);
      auto known = co_await asker.ask(metadata_request({name}, false), 9);
      EXPECT_EQ(known.topics.at(0).error_code, ErrorCode::kNone) << name;
      EXPECT_EQ((co_await names(lister)).size(), static_cast<size_t>(i) + 1);
    }
  });
}

TEST_F(TopicsTest, ABrokerWithoutTheLogNeverSaysThatATopicIsUnknown) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await create(client, create_request("known", 1)), ErrorCode::kNone);
    sim::LogFaults faults;
    faults.append.request_lost = 1000;
    faults.read.request_lost = 1000;
    faults.other.request_lost = 1000;
    log_.set_faults(faults);
    auto reply = co_await client.ask(metadata_request({"t"}, false), 9);
    EXPECT_EQ(reply.topics.at(0).error_code, ErrorCode::kLeaderNotAvailable);
    auto produced = co_await client.ask(sim::produce_request("t", {{0, sim::make_batch("v")}}), 9);
    EXPECT_EQ(produced.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNotLeaderOrFollower);
    auto listed = co_await client.ask(sim::list_offsets_request("t", 0, -1), 7);
    EXPECT_EQ(listed.topics.at(0).partitions.at(0).error_code, ErrorCode::kNotLeaderOrFollower);
    EXPECT_EQ(co_await create(client, create_request("t", 1)), ErrorCode::kRequestTimedOut);
    EXPECT_EQ(co_await create(client, create_request("known", 1)), ErrorCode::kRequestTimedOut)
        << "it may have been deleted";
    DeleteTopicsRequest request;
    request.timeout_ms = 30'000;
    request.topic_names = {"t", "known"};
    auto deleted = co_await client.ask(request, 5);
    EXPECT_EQ(deleted.responses.at(0).error_code, ErrorCode::kRequestTimedOut);
    EXPECT_EQ(deleted.responses.at(1).error_code, ErrorCode::kRequestTimedOut);
    auto init = co_await client.ask(protocol::InitProducerIdRequest{.transactional_id = std::nullopt}, 4);
    EXPECT_EQ(init.error_code, ErrorCode::kCoordinatorLoadInProgress);
  });
}

}  // namespace
}  // namespace varve::broker
