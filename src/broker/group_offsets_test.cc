// Committed offsets, and what administrators ask of groups. Cases of the area "groups".
#include <gmock/gmock.h>

#include "broker/groups_testing.h"

namespace varve::broker {
namespace {

using sim::RawClient;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Offsets = std::map<std::string, int64_t>;

class GroupOffsetsTest : public GroupsTest {
 protected:
  GroupOffsetsTest() { start_brokers(1); }

  static protocol::OffsetFetchRequest fetch_request(const std::string& topic, int32_t partition,
                                                    Uuid id = {}) {
    protocol::OffsetFetchRequest request;
    request.group_id = "g";
    auto& old = request.topics->emplace_back();
    old.name = topic;
    old.partition_indexes = {PartitionIndex(partition)};
    auto& group = request.groups.emplace_back();
    group.group_id = "g";
    auto& row = group.topics->emplace_back();
    row.name = topic;
    row.topic_id = id;
    row.partition_indexes = {PartitionIndex(partition)};
    return request;
  }
  static protocol::OffsetDeleteRequest delete_request(const std::vector<std::string>& topics,
                                                      std::string group = "g") {
    protocol::OffsetDeleteRequest request;
    request.group_id = std::move(group);
    for (const std::string& topic : topics) {
      auto& rows = request.topics.emplace_back();
      rows.name = topic;
      rows.partitions.emplace_back().partition_index = PartitionIndex(0);
    }
    return request;
  }
  Task<std::vector<std::string>> listed(RawClient& client, std::vector<std::string> states = {},
                                        std::vector<std::string> types = {}, int16_t version = 5) {
    protocol::ListGroupsRequest request;
    request.states_filter = std::move(states);
    request.types_filter = std::move(types);
    auto reply = co_await client.ask(request, version);
    EXPECT_EQ(reply.error_code, ErrorCode::kNone);
    std::vector<std::string> groups;
    for (const auto& row : reply.groups) {
      groups.push_back(row.group_id + "," + row.protocol_type + "," + row.group_state + "," + row.group_type);
    }
    co_return groups;
  }
};

TEST_F(GroupOffsetsTest, EveryVersionCommitsAndFetches) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t");
    for (int16_t version = 2; version <= 10; ++version) {
      auto request = commit_request({.offset = 100 + version, .metadata = "note"});
      request.topics.at(0).topic_id = id;
      request.topics.at(0).partitions.at(0).committed_leader_epoch = 1;
      auto reply = co_await client.ask(request, version);
      EXPECT_EQ(reply.topics.at(0).partitions.at(0).error_code, ErrorCode::kNone) << version;
      EXPECT_EQ(version < 10 ? reply.topics.at(0).name : "t", "t");
      EXPECT_EQ(co_await committed(client), (Offsets{{"t:0", 100 + version}}));
    }
    for (int16_t version = 1; version <= 10; ++version) {
      auto reply = co_await client.ask(fetch_request("t", 0, id), version);
      auto check = [&](const auto& row) {
        EXPECT_EQ(row.error_code, ErrorCode::kNone) << version;
        EXPECT_EQ(row.committed_offset, Offset(110)) << version;
        EXPECT_EQ(row.metadata, "note") << version;
        EXPECT_EQ(row.committed_leader_epoch, version >= 5 ? 1 : -1) << version;
      };
      if (version < 8) {
        check(reply.topics.at(0).partitions.at(0));
      } else {
        check(reply.groups.at(0).topics.at(0).partitions.at(0));
      }
    }
  });
}

TEST_F(GroupOffsetsTest, WithoutACommitTheOffsetIsMinusOneAndNoError) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Uuid id = co_await create(client, "t");
    for (std::string group : {"unknown", "known"}) {
      if (group == "known") co_await commit(client, {.group = group, .partition = 1, .offset = 5});
      for (auto [topic, partition] :
           std::vector<std::pair<std::string, int>>{{"t", 0}, {"t", 99}, {"u", 0}}) {
        auto request = fetch_request(topic, partition, id);
        request.group_id = request.groups.at(0).group_id = group;
        request.require_stable = true;
        auto old = co_await client.ask(request, 7);
        EXPECT_EQ(old.error_code, ErrorCode::kNone);
        const auto& row = old.topics.at(0).partitions.at(0);
        EXPECT_EQ(row.committed_offset, Offset(-1));
        EXPECT_EQ(row.metadata, "");
        EXPECT_EQ(row.error_code, ErrorCode::kNone);
        auto fresh = co_await client.ask(request, 9);
        EXPECT_EQ(fresh.groups.at(0).topics.at(0).partitions.at(0).committed_offset, Offset(-1));
      }
    }
    Uuid unknown;
    unknown.bytes[0] = 1;
    auto by_id = co_await client.ask(fetch_request("", 0, unknown), 10);
    EXPECT_EQ(by_id.groups.at(0).topics.at(0).partitions.at(0).error_code, ErrorCode::kUnknownTopicId);
    auto commit_by_id = commit_request({});
    commit_by_id.topics.at(0).topic_id = unknown;
    auto refused = co_await client.ask(commit_by_id, 10);
    EXPECT_EQ(refused.topics.at(0).partitions.at(0).error_code, ErrorCode::kUnknownTopicId);
  });
}

TEST_F(GroupOffsetsTest, ManyGroupsAndAllTopicsAreFetchedAtOnce) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await create(client, "u");
    co_await commit(client, {.group = "a", .offset = 1});
    auto both = commit_request({.group = "b", .offset = 2});
    both.topics.push_back(both.topics.at(0));
    both.topics.at(1).name = "u";
    co_await client.ask(both, 8);
    protocol::OffsetFetchRequest request;
    for (const char* group : {"a", "b", "c"}) {
      auto& row = request.groups.emplace_back();
      row.group_id = group;
      row.topics = std::nullopt;
    }
    auto reply = co_await client.ask(request, 8);
    EXPECT_EQ(reply.groups.at(0).topics.size(), 1u);
    EXPECT_EQ(reply.groups.at(1).topics.size(), 2u);
    EXPECT_EQ(reply.groups.at(2).topics.size(), 0u);
    EXPECT_EQ(reply.groups.at(2).error_code, ErrorCode::kNone);
    protocol::OffsetFetchRequest old;
    old.group_id = "b";
    old.topics = std::nullopt;
    EXPECT_EQ((co_await client.ask(old, 2)).topics.size(), 2u);
  });
}

TEST_F(GroupOffsetsTest, UnknownTopicsAndPartitionsFailByThemselves) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto request = commit_request({.offset = 4});
    auto& rows = request.topics.at(0).partitions;
    rows.push_back(rows.at(0));
    rows.at(1).partition_index = PartitionIndex(3);
    rows.push_back(rows.at(0));
    rows.at(2).partition_index = PartitionIndex(-1);
    request.topics.push_back(request.topics.at(0));
    request.topics.at(1).name = "unknown";
    auto reply = co_await client.ask(request, 8);
    std::map<std::string, ErrorCode> codes;
    for (const auto& topic : reply.topics) {
      for (const auto& row : topic.partitions) {
        codes[topic.name + ":" + std::to_string(row.partition_index.value())] = row.error_code;
      }
    }
    EXPECT_EQ(codes.at("t:0"), ErrorCode::kNone);
    EXPECT_EQ(codes.at("t:3"), ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ(codes.at("t:-1"), ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ(codes.at("unknown:0"), ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ(co_await committed(client), (Offsets{{"t:0", 4}}));
  });
}

TEST_F(GroupOffsetsTest, C076MetadataThatIsTooLongFailsByItself) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto request = commit_request({.offset = 1, .metadata = std::string(4097, 'x')});
    auto& rows = request.topics.at(0).partitions;
    rows.push_back(rows.at(0));
    rows.at(1).partition_index = PartitionIndex(1);
    rows.at(1).committed_metadata = "ten bytes!";
    rows.push_back(rows.at(0));
    rows.at(2).partition_index = PartitionIndex(2);
    rows.at(2).committed_metadata = std::nullopt;
    auto reply = co_await client.ask(request, 8);
    EXPECT_EQ(reply.topics.at(0).partitions.at(0).error_code, ErrorCode::kOffsetMetadataTooLarge);
    EXPECT_EQ(reply.topics.at(0).partitions.at(1).error_code, ErrorCode::kNone);
    EXPECT_EQ(reply.topics.at(0).partitions.at(2).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await committed(client), (Offsets{{"t:1", 1}, {"t:2", 1}}));
    auto fetch = fetch_request("t", 2);
    fetch.require_stable = true;
    EXPECT_EQ((co_await client.ask(fetch, 7)).topics.at(0).partitions.at(0).metadata, "");
    // Kafka counts characters: 4,096 of two bytes each are as many as it takes.
    std::string letters;
    for (int i = 0; i < 4096; ++i) letters += "ü";
    EXPECT_EQ(co_await commit(client, {.offset = 2, .metadata = letters}), ErrorCode::kNone);
    EXPECT_EQ(co_await commit(client, {.offset = 3, .metadata = letters + "x"}),
              ErrorCode::kOffsetMetadataTooLarge);
  });
}

TEST_F(GroupOffsetsTest, CommitsAreForMembersOrForGroupsWithoutAny) {
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    RawClient simple = co_await connect();
    co_await create(a.client, "t");
    GroupMember nobody{.client = co_await connect(), .id = "nobody"};
    nobody.generation = 3;
    EXPECT_EQ(co_await commit_as(nobody, {.group = "unknown"}), ErrorCode::kIllegalGeneration);
    EXPECT_EQ(co_await commit_as(nobody, {.group = "unknown", .version = 9}), ErrorCode::kGroupIdNotFound);
    EXPECT_EQ(co_await commit(simple, {.offset = 1}), ErrorCode::kNone);
    EXPECT_EQ(co_await commit_as(nobody, {}), ErrorCode::kUnknownMemberId);
    co_await stabilize({&a});
    EXPECT_EQ(co_await commit(simple, {.offset = 2}), ErrorCode::kUnknownMemberId);
    EXPECT_EQ(co_await commit_as(nobody, {.offset = 3}), ErrorCode::kUnknownMemberId);
    EXPECT_EQ(co_await commit_as(a, {.offset = 4}), ErrorCode::kNone);
    a.generation += 1;
    EXPECT_EQ(co_await commit_as(a, {.offset = 5}), ErrorCode::kIllegalGeneration);
    EXPECT_EQ(co_await committed(simple), (Offsets{{"t:0", 4}}));
    a.generation -= 1;
    EXPECT_EQ(co_await leave(a), ErrorCode::kNone);
    EXPECT_EQ(co_await commit(simple, {.offset = 6}), ErrorCode::kNone);
    EXPECT_EQ(co_await committed(simple), (Offsets{{"t:0", 6}}));
  });
}

TEST_F(GroupOffsetsTest, DuringARebalanceOldCommitsAreTakenAndNewOnesWait) {
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member();
    co_await create(a.client, "t");
    co_await stabilize({&a});
    auto request = join_request("g");
    auto given = co_await b.client.ask(request, 9);
    request.member_id = b.id = given.member_id;
    int32_t joining = co_await b.client.post(request, 9);
    while (co_await heartbeat(a) != ErrorCode::kRebalanceInProgress) co_await runtime::sleep_for(100ms);
    EXPECT_EQ(co_await commit_as(a, {.offset = 1}), ErrorCode::kNone);
    auto joined = co_await join_all({&a});
    co_await b.client.expect<protocol::JoinGroupRequest>(joining, 9);
    EXPECT_EQ(co_await commit_as(a, {.offset = 2}), ErrorCode::kRebalanceInProgress);
  });
}

TEST_F(GroupOffsetsTest, ACommitOfManyPartitionsIsMoreThanOneEntry) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "wide", 300);
    protocol::OffsetCommitRequest request;
    request.group_id = "g";
    auto& topic = request.topics.emplace_back();
    topic.name = "wide";
    for (int i = 0; i < 300; ++i) {
      auto& row = topic.partitions.emplace_back();
      row.partition_index = PartitionIndex(i);
      row.committed_offset = Offset(i);
      row.committed_metadata = std::string(4096, 'm');
    }
    auto reply = co_await client.ask(request, 8);
    for (const auto& row : reply.topics.at(0).partitions) EXPECT_EQ(row.error_code, ErrorCode::kNone);
    EXPECT_EQ((co_await committed(client)).size(), 300u);
    EXPECT_EQ((co_await committed(client)).at("wide:299"), 299);
  });
}

TEST_F(GroupOffsetsTest, C116OddNamesOfGroupsAreData) {
  std::vector<std::string> names = {"g+1", "a/b", "x:y", "p%20q",     "sp ace",
                                    "ünï", "..",  "",    "new\nline", std::string(300, 'g')};
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    int64_t offset = 0;
    for (const std::string& name : names) {
      EXPECT_EQ(co_await commit(client, {.group = name, .offset = ++offset}), ErrorCode::kNone) << name;
    }
  });
  restart();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ((co_await listed(client)).size(), names.size());
    EXPECT_EQ((co_await remove(client, "a/b")).error_code, ErrorCode::kNone);
    int64_t offset = 0;
    for (const std::string& name : names) {
      ++offset;
      Offsets expected = name == "a/b" ? Offsets{} : Offsets{{"t:0", offset}};
      EXPECT_EQ(co_await committed(client, name), expected) << name;
    }
  });
}

TEST_F(GroupOffsetsTest, C071ADeletedGroupDoesNotComeBack) {
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    co_await create(a.client, "t");
    co_await commit(a.client, {.group = "gone", .offset = 1});
    co_await stabilize({&a}, "live");
    EXPECT_EQ((co_await remove(a.client, "gone")).error_code, ErrorCode::kNone);
    EXPECT_EQ((co_await remove(a.client, "live")).error_code, ErrorCode::kNonEmptyGroup);
    EXPECT_EQ((co_await remove(a.client, "unknown")).error_code, ErrorCode::kGroupIdNotFound);
    EXPECT_EQ((co_await remove(a.client, "gone")).error_code, ErrorCode::kGroupIdNotFound);
  });
  restart();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_THAT(co_await listed(client), ElementsAre("live,consumer,Stable,classic"));
    EXPECT_EQ((co_await describe(client, "gone")).group_state, "Dead");
    EXPECT_THAT(co_await committed(client, "gone"), IsEmpty());
  });
}

TEST_F(GroupOffsetsTest, C072DescribingGroupsInEveryStateAndVersion) {
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member();
    co_await create(a.client, "t");
    for (int16_t version = 0; version <= 6; ++version) {
      auto unknown = co_await describe(a.client, "unknown", version);
      EXPECT_EQ(unknown.error_code, version < 6 ? ErrorCode::kNone : ErrorCode::kGroupIdNotFound);
      EXPECT_EQ(unknown.group_state, "Dead");
      EXPECT_EQ(unknown.error_message,
                version < 6 ? std::nullopt : std::optional<std::string>("Group unknown not found."));
      EXPECT_THAT(unknown.members, IsEmpty());
    }
    co_await commit(a.client, {.group = "simple", .offset = 1});
    auto simple = co_await describe(a.client, "simple");
    EXPECT_EQ(simple.group_state, "Empty");
    EXPECT_EQ(simple.protocol_type, "");
    co_await stabilize({&a});
    for (int16_t version = 0; version <= 6; ++version) {
      auto live = co_await describe(a.client, "g", version);
      EXPECT_EQ(live.group_state, "Stable");
      EXPECT_EQ(live.protocol_data, "range");
      const auto& member = live.members.at(0);
      EXPECT_EQ(member.member_id, a.id);
      EXPECT_EQ(member.client_id, "test");
      EXPECT_EQ(member.client_host.substr(0, 1), "/");
      EXPECT_GT(member.client_host.size(), 1u);
      EXPECT_EQ(text_of(member.member_metadata), subscription_to("t"));
      EXPECT_EQ(text_of(member.member_assignment), "place 0");
      EXPECT_EQ(live.authorized_operations, INT32_MIN);
    }
    protocol::DescribeGroupsRequest with_operations;
    with_operations.groups = {"g"};
    with_operations.include_authorized_operations = true;
    EXPECT_EQ((co_await a.client.ask(with_operations, 3)).groups.at(0).authorized_operations,
              1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11);
    co_await b.client.post(join_request("g"), 3);
    while (co_await heartbeat(a) != ErrorCode::kRebalanceInProgress) co_await runtime::sleep_for(100ms);
    auto rebalancing = co_await describe(a.client);
    EXPECT_EQ(rebalancing.group_state, "PreparingRebalance");
    EXPECT_EQ(rebalancing.protocol_data, "");
    EXPECT_EQ(rebalancing.members.size(), 2u);
    EXPECT_TRUE(rebalancing.members.at(0).member_metadata.empty());
    co_await leave(a);
  });
}

TEST_F(GroupOffsetsTest, C073ListedGroupsHaveTheirStateAndTypeAlsoAfterARestart) {
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member();
    co_await create(a.client, "t");
    co_await stabilize({&a}, "stable");
    co_await stabilize({&b}, "empty");
    co_await leave(b, "empty");
    auto connect_type = join_request("connect");
    connect_type.protocol_type = "connect";
    auto joined = co_await b.client.ask(connect_type, 3);
    protocol::LeaveGroupRequest leave_connect;
    leave_connect.group_id = "connect";
    leave_connect.member_id = joined.member_id;
    co_await b.client.ask(leave_connect, 0);
    co_await commit(a.client, {.group = "simple", .offset = 1});
  });
  for (bool is_restarted : {false, true}) {
    if (is_restarted) restart();
    run([&]() -> Task<> {
      RawClient client = co_await connect();
      const std::string stable = "stable,consumer,Stable,classic";
      const std::string empty = "empty,consumer,Empty,classic";
      const std::string connect_group = "connect,connect,Empty,classic";
      const std::string simple = "simple,,Empty,classic";
      EXPECT_THAT(co_await listed(client), UnorderedElementsAre(stable, empty, connect_group, simple));
      EXPECT_THAT(co_await listed(client, {"Empty"}), UnorderedElementsAre(empty, connect_group, simple));
      EXPECT_THAT(co_await listed(client, {"empty", "nonsense"}),
                  UnorderedElementsAre(empty, connect_group, simple));
      EXPECT_THAT(co_await listed(client, {"nonsense"}), IsEmpty());
      EXPECT_THAT(co_await listed(client, {"STABLE"}, {"Classic"}), ElementsAre(stable));
      EXPECT_THAT(co_await listed(client, {}, {"consumer", "share", "nonsense"}), IsEmpty());
      EXPECT_THAT(
          co_await listed(client, {}, {}, 0),
          UnorderedElementsAre("stable,consumer,,", "empty,consumer,,", "connect,connect,,", "simple,,,"));
      EXPECT_EQ((co_await listed(client, {}, {}, 4)).size(), 4u);
    });
  }
}

TEST_F(GroupOffsetsTest, C074OffsetsAreDeletedUnlessTheGroupReadsTheTopic) {
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    co_await create(a.client, "t");
    co_await create(a.client, "u");
    auto both = commit_request({.offset = 1});
    both.topics.push_back(both.topics.at(0));
    both.topics.at(1).name = "u";
    co_await a.client.ask(both, 8);
    auto empty = co_await a.client.ask(delete_request({"t"}), 0);
    EXPECT_EQ(empty.error_code, ErrorCode::kNone);
    EXPECT_EQ(empty.topics.at(0).partitions.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await committed(a.client), (Offsets{{"u:0", 1}}));
    co_await a.client.ask(both, 8);
    co_await stabilize({&a});
    auto live = co_await a.client.ask(delete_request({"t", "u"}), 0);
    EXPECT_EQ(live.error_code, ErrorCode::kNone);
    EXPECT_EQ(live.topics.at(0).partitions.at(0).error_code, ErrorCode::kGroupSubscribedToTopic);
    EXPECT_EQ(live.topics.at(1).partitions.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await committed(a.client), (Offsets{{"t:0", 1}}));
    auto unknown = co_await a.client.ask(delete_request({"t"}, "unknown"), 0);
    EXPECT_EQ(unknown.error_code, ErrorCode::kGroupIdNotFound);
    EXPECT_EQ((co_await a.client.ask(delete_request({"t"}, ""), 0)).error_code, ErrorCode::kInvalidGroupId);
    auto absent = delete_request({"u", "nowhere"});
    absent.topics.at(0).partitions.at(0).partition_index = PartitionIndex(9);
    auto rows = co_await a.client.ask(absent, 0);
    EXPECT_EQ(rows.topics.at(0).partitions.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ(rows.topics.at(1).partitions.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
  });
}

TEST_F(GroupOffsetsTest, OffsetsOfALiveGroupThatIsNotOfConsumersStay) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto request = join_request("g");
    request.protocol_type = "connect";
    co_await client.ask(request, 3);
    EXPECT_EQ((co_await client.ask(delete_request({"t"}), 0)).error_code, ErrorCode::kNonEmptyGroup);
    auto garbage = join_request("odd");
    garbage.protocols.at(0).metadata = slice_of("garbage");
    co_await client.ask(garbage, 3);
    auto reply = co_await client.ask(delete_request({"t"}, "odd"), 0);
    EXPECT_EQ(reply.topics.at(0).partitions.at(0).error_code, ErrorCode::kGroupSubscribedToTopic)
        << "who cannot be read may be reading anything";
  });
}

TEST_F(GroupOffsetsTest, ATopicsOffsetsGoWithIt) {
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await commit(client, {.offset = 9});
    co_await client.ask(sim::delete_request("t"), 5);
    EXPECT_EQ(co_await committed(client), Offsets{});
    co_await create(client, "t");
    EXPECT_EQ(co_await committed(client), Offsets{});
  });
}

}  // namespace
}  // namespace varve::broker
