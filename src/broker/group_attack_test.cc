// Consumer groups under schedules that were made to break them.
#include <gmock/gmock.h>

#include "broker/groups_testing.h"

namespace varve::broker {
namespace {

using sim::RawClient;
using ::testing::ElementsAre;
using Offsets = std::map<std::string, int64_t>;

class GroupAttackTest : public GroupsTest {
 protected:
  static std::string host_of(size_t broker) { return "broker" + std::to_string(broker); }
  Task<> await_owner(std::string group, size_t owner, size_t asked) {
    for (int i = 0; i < 120 && co_await coordinator_of(group, asked) != owner; ++i) {
      co_await runtime::sleep_for(1s);
    }
    EXPECT_EQ(co_await coordinator_of(group, asked), owner);
  }
  Task<> await_health(GroupMember& member, std::string group, ErrorCode expected = ErrorCode::kNone) {
    ErrorCode code = ErrorCode::kNone;
    for (int i = 0; i < 30; ++i) {
      code = co_await heartbeat(member, group);
      bool comes_back = code == ErrorCode::kCoordinatorNotAvailable || code == ErrorCode::kNotCoordinator;
      if (!comes_back) break;
      co_await runtime::sleep_for(1s);
    }
    EXPECT_EQ(code, expected);
  }
};

// A -> B -> A: what A could not send is sent when it has registered anew.
TEST_F(GroupAttackTest, ACommitFromBeforeALostSessionDoesNotOverwriteALaterOne) {
  start_brokers(2);
  run([&]() -> Task<> {
    size_t owner = co_await coordinator_of("g");
    GroupMember a = co_await connect_member(owner);
    co_await create(a.client, "t");
    co_await stabilize({&a});
    EXPECT_EQ(co_await commit_as(a, {.offset = 1}), ErrorCode::kNone);
    log_.set_reachable(host_of(owner), false);
    int32_t early = co_await post_commit(a, {.offset = 5});
    auto reply = co_await a.client.expect<protocol::OffsetCommitRequest>(early, 8);
    EXPECT_EQ(reply->topics.at(0).partitions.at(0).error_code, ErrorCode::kCoordinatorNotAvailable);
    co_await await_owner("g", 1 - owner, 1 - owner);
    GroupMember again{.client = co_await connect(1 - owner), .id = a.id};
    again.generation = a.generation;
    EXPECT_EQ(co_await commit_as(again, {.offset = 10}), ErrorCode::kNone);
    log_.set_reachable(host_of(owner), true);
    co_await await_owner("g", owner, 1 - owner);
    co_await runtime::sleep_for(5s);
    co_await await_health(a, "g");
    EXPECT_EQ(co_await committed(a.client), (Offsets{{"t:0", 10}}));
  });
}

// The same without a lost session: another owner comes and goes while the entry is on its way.
TEST_F(GroupAttackTest, ACommitFromBeforeAnotherOwnerCameAndWentDoesNotOverwriteALaterOne) {
  start_brokers(2);
  std::string group = group_of(2);
  size_t owner = 0;
  GroupMember a{.client = RawClient(nullptr)};
  run([&]() -> Task<> {
    owner = co_await coordinator_of(group);
    a = co_await connect_member(owner);
    co_await create(a.client, "t");
    co_await stabilize({&a}, group);
    EXPECT_EQ(co_await commit_as(a, {.group = group, .offset = 1}), ErrorCode::kNone);
    log_.set_reachable(host_of(owner), false);
    co_await post_commit(a, {.group = group, .offset = 5});
  });
  std::vector<Nonce> before = log_.sessions();
  add_broker(settings_of(2));
  wait_until_serving();
  run([&]() -> Task<> {
    GroupMember again{.client = co_await connect(2), .id = a.id};
    again.generation = a.generation;
    EXPECT_EQ(co_await commit_as(again, {.group = group, .offset = 10}), ErrorCode::kNone);
  });
  brokers_[2]->crash();
  for (Nonce nonce : log_.sessions()) {
    if (std::ranges::find(before, nonce) == before.end()) log_.expire_session(nonce);
  }
  run([&]() -> Task<> {
    co_await await_owner(group, owner, 1 - owner);
    log_.set_reachable(host_of(owner), true);
    co_await runtime::sleep_for(8s);
    a.client = co_await connect(owner);
    co_await await_health(a, group);
    EXPECT_EQ(co_await committed(a.client, group), (Offsets{{"t:0", 10}}));
  });
}

TEST_F(GroupAttackTest, ADeletionFromBeforeALostSessionTakesNoLaterCommit) {
  start_brokers(2);
  run([&]() -> Task<> {
    size_t owner = co_await coordinator_of("g");
    RawClient client = co_await connect(owner);
    co_await create(client, "t");
    EXPECT_EQ(co_await commit(client, {.offset = 1}), ErrorCode::kNone);
    log_.cut_off_at(host_of(owner), "log.append", 45s);
    auto removed = co_await remove(client);
    EXPECT_EQ(removed.error_code, ErrorCode::kCoordinatorNotAvailable);
    co_await await_owner("g", 1 - owner, 1 - owner);
    RawClient other = co_await connect(1 - owner);
    EXPECT_EQ(co_await commit(other, {.offset = 10}), ErrorCode::kNone);
    co_await await_owner("g", owner, 1 - owner);
    co_await runtime::sleep_for(10s);
    RawClient back = co_await connect(owner);
    EXPECT_EQ(co_await committed(back), (Offsets{{"t:0", 10}}));
  });
}

// What was judged before a broker came is judged again, which the client need not know of.
TEST_F(GroupAttackTest, ABrokerThatComesMeanwhileCostsACommitNoError) {
  start_brokers(2);
  run([&]() -> Task<> {
    size_t owner = co_await coordinator_of(group_of(0));
    EXPECT_EQ(owner, 0u);
    GroupMember a = co_await connect_member(owner);
    co_await create(a.client, "t");
    co_await stabilize({&a}, group_of(0));
    log_.set_reachable(host_of(owner), false);
    int32_t commit = co_await post_commit(a, {.group = group_of(0), .offset = 5});
    add_broker(settings_of(2));
    co_await runtime::sleep_for(4s);
    EXPECT_TRUE(brokers_[2]->is_serving());
    log_.set_reachable(host_of(owner), true);
    auto reply = co_await a.client.expect<protocol::OffsetCommitRequest>(commit, 8);
    EXPECT_EQ(reply->topics.at(0).partitions.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await committed(a.client, group_of(0)), (Offsets{{"t:0", 5}}));
  });
}

TEST_F(GroupAttackTest, ABrokerThatRegistersAnewCostsACommitNoError) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    co_await create(a.client, "t");
    co_await stabilize({&a});
    log_.set_reachable(host_of(0), false);
    int32_t commit = co_await post_commit(a, {.offset = 5});
    uint64_t before = brokers_[0]->broker().metadata()->state().owners_version();
    for (Nonce nonce : log_.sessions()) log_.expire_session(nonce);
    co_await runtime::sleep_for(1s);
    log_.set_reachable(host_of(0), true);
    auto reply = co_await a.client.expect<protocol::OffsetCommitRequest>(commit, 8);
    EXPECT_EQ(reply->topics.at(0).partitions.at(0).error_code, ErrorCode::kNone);
    EXPECT_GT(brokers_[0]->broker().metadata()->state().owners_version(), before);
    EXPECT_EQ(co_await committed(a.client), (Offsets{{"t:0", 5}}));
  });
}

TEST_F(GroupAttackTest, ABrokerThatComesMeanwhileCostsAJoinNoError) {
  start_brokers(2);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member(0);
    GroupMember b = co_await connect_member(0);
    std::vector<int32_t> ids;
    for (GroupMember* member : {&a, &b}) {
      auto request = join_request(group_of(0));
      member->id = (co_await member->client.ask(request, 9)).member_id;
      ids.push_back(co_await member->client.post(join_request(group_of(0), member->id), 9));
    }
    // The join ends meanwhile.
    co_await runtime::sleep_for(2500ms);
    log_.set_reachable(host_of(0), false);
    add_broker(settings_of(2));
    co_await runtime::sleep_for(4s);
    EXPECT_TRUE(brokers_[2]->is_serving());
    log_.set_reachable(host_of(0), true);
    for (GroupMember* member : {&a, &b}) {
      auto reply = co_await member->client.expect<protocol::JoinGroupRequest>(ids[member == &b], 9);
      EXPECT_EQ(reply->error_code, ErrorCode::kNone);
      EXPECT_EQ(reply->generation_id, 1);
    }
  });
}

TEST_F(GroupAttackTest, ADeletionThatNamesAPartitionOftenIsDone) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    EXPECT_EQ(co_await commit(client, {.offset = 1}), ErrorCode::kNone);
    protocol::OffsetDeleteRequest request;
    request.group_id = "g";
    auto& topic = request.topics.emplace_back();
    topic.name = "t";
    topic.partitions.resize(600'000);
    auto reply = co_await client.ask(request, 0);
    EXPECT_EQ(reply.error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await committed(client), Offsets());
  });
}

TEST_F(GroupAttackTest, ADeletionOfMorePartitionsThanAnEntryHoldsIsDone) {
  start_brokers(1);
  run([&]() -> Task<> {
    constexpr int32_t kPartitions = 40'000;
    RawClient client = co_await connect();
    co_await create(client, "t", kPartitions / 4);
    for (const char* topic : {"u", "v", "w"}) co_await create(client, topic, kPartitions / 4);
    protocol::OffsetDeleteRequest request;
    request.group_id = "g";
    for (const char* topic : {"t", "u", "v", "w"}) {
      auto committed = co_await client.ask(commit_request({.partition = 9'999, .offset = 1}, topic), 8);
      EXPECT_EQ(committed.topics.at(0).partitions.at(0).error_code, ErrorCode::kNone);
      auto& rows = request.topics.emplace_back();
      rows.name = topic;
      for (int32_t i = 0; i < kPartitions / 4; ++i) {
        rows.partitions.emplace_back().partition_index = PartitionIndex(i);
      }
    }
    auto reply = co_await client.ask(request, 0);
    EXPECT_EQ(reply.error_code, ErrorCode::kNone);
    EXPECT_EQ(reply.topics.size(), 4u);
    EXPECT_EQ(co_await committed(client), Offsets());
  });
}

TEST_F(GroupAttackTest, AStaticLeaderReplacedBeforeItAssignsLeavesNobodyWaiting) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member(0, "one");
    GroupMember b = co_await connect_member(0, "two");
    auto joined = co_await join_all({&a, &b});
    GroupMember& leader = joined[0].leader == a.id ? a : b;
    GroupMember& follower = joined[0].leader == a.id ? b : a;
    int32_t waiting = co_await follower.client.post(sync_request(follower), 5);
    GroupMember heir = co_await connect_member(0, leader.instance);
    auto request = join_request("g");
    request.group_instance_id = leader.instance;
    int32_t rejoin = co_await heir.client.post(request, 9);
    auto synced = co_await follower.client.expect<protocol::SyncGroupRequest>(waiting, 5);
    EXPECT_EQ(synced->error_code, ErrorCode::kRebalanceInProgress);
    EXPECT_EQ((co_await leader.client.ask(sync_request(leader), 5)).error_code, ErrorCode::kFencedInstanceId);
    EXPECT_EQ(co_await heartbeat(leader), ErrorCode::kFencedInstanceId);
    co_await join_all({&follower});
    auto heirs = co_await heir.client.expect<protocol::JoinGroupRequest>(rejoin, 9);
    EXPECT_EQ(heirs->error_code, ErrorCode::kNone);
    EXPECT_EQ(heirs->generation_id, follower.generation);
    EXPECT_EQ(heirs->leader, heirs->member_id);
    heir.id = heirs->member_id;
    heir.generation = heirs->generation_id;
    EXPECT_THAT(co_await sync_all({&heir, &follower}, heir.id), ElementsAre("place 0", "place 1"));
  });
}

TEST_F(GroupAttackTest, OfTwoWhoJoinAsOneInstanceTheSecondStays) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member(0, "one");
    GroupMember b = co_await connect_member(0, "one");
    auto request = join_request("g");
    request.group_instance_id = "one";
    int32_t first = co_await a.client.post(request, 9);
    co_await runtime::sleep_for(500ms);
    int32_t second = co_await b.client.post(request, 9);
    auto fenced = co_await a.client.expect<protocol::JoinGroupRequest>(first, 9);
    EXPECT_EQ(fenced->error_code, ErrorCode::kFencedInstanceId);
    auto stays = co_await b.client.expect<protocol::JoinGroupRequest>(second, 9);
    EXPECT_EQ(stays->error_code, ErrorCode::kNone);
    EXPECT_EQ(stays->members.size(), 1u);
  });
}

TEST_F(GroupAttackTest, WhoDiesInItsJoinHoldsNobodyUpForLong) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    {
      GroupMember dead = co_await connect_member();
      auto given = co_await dead.client.ask(join_request("g"), 9);
      co_await dead.client.post(join_request("g", given.member_id), 9);
      co_await runtime::sleep_for(100ms);
    }
    MonotonicTime began = world_.now();
    bool is_stable = false;
    for (int round = 0; round < 5 && !is_stable; ++round) {
      auto joined = co_await join_all({&a});
      auto request = sync_request(a);
      if (joined.at(0).leader == a.id) {
        auto& row = request.assignments.emplace_back();
        row.member_id = a.id;
        row.assignment = slice_of("all");
      }
      auto synced = co_await a.client.ask(request, 5);
      is_stable = synced.error_code == ErrorCode::kNone;
      if (!is_stable) EXPECT_EQ(synced.error_code, ErrorCode::kRebalanceInProgress);
    }
    EXPECT_TRUE(is_stable);
    EXPECT_LT(world_.now() - began, 60s);
  });
}

TEST_F(GroupAttackTest, AStoppingBrokerAnswersWhoWaits) {
  start_brokers(2);
  run([&]() -> Task<> {
    size_t owner = co_await coordinator_of("g");
    GroupMember a = co_await connect_member(owner);
    GroupMember b = co_await connect_member(owner);
    auto joined = co_await join_all({&a, &b});
    GroupMember& follower = joined[0].leader == a.id ? b : a;
    GroupMember& leader = joined[0].leader == a.id ? a : b;
    int32_t sync = co_await follower.client.post(sync_request(follower), 5);
    int32_t join = 0;
    GroupMember c = co_await connect_member(owner);
    std::string other = "x";
    while (co_await coordinator_of(other) != owner) other += "x";
    join = co_await c.client.post(join_request(other), 3);
    co_await runtime::sleep_for(500ms);
    runtime::TaskScope scope;
    auto stopping = [](sim::BrokerNode* node) -> Task<> { co_await node->broker().stop(); };
    scope.spawn(brokers_[owner]->process().io(0), "stop", stopping(brokers_[owner].get()));
    auto synced = co_await follower.client.expect<protocol::SyncGroupRequest>(sync, 5);
    if (synced) EXPECT_EQ(synced->error_code, ErrorCode::kNotCoordinator);
    auto told = co_await c.client.expect<protocol::JoinGroupRequest>(join, 3);
    if (told) EXPECT_EQ(told->error_code, ErrorCode::kNotCoordinator);
    EXPECT_TRUE(synced);
    EXPECT_TRUE(told);
    co_await await_owner("g", 1 - owner, 1 - owner);
    follower.client = co_await connect(1 - owner);
    leader.client = co_await connect(1 - owner);
    EXPECT_EQ((co_await sync_all({&a, &b}, leader.id)).size(), 2u);
    while (scope.size() > 0) co_await runtime::sleep_for(1s);
  });
}

TEST_F(GroupAttackTest, APausedBrokerRemovesNobodyWhoShowedLife) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member();
    co_await stabilize({&a, &b});
    brokers_[0]->node().pause();
    co_await runtime::sleep_for(12s);
    brokers_[0]->node().resume();
    co_await await_health(a, "g");
    co_await await_health(b, "g");
  });
}

TEST_F(GroupAttackTest, AJoinDuringAStallEndsInOneGenerationAfterIt) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member();
    std::vector<int32_t> ids;
    for (GroupMember* member : {&a, &b}) {
      member->id = (co_await member->client.ask(join_request("g"), 9)).member_id;
      ids.push_back(co_await member->client.post(join_request("g", member->id), 9));
    }
    co_await runtime::sleep_for(1s);
    log_.set_reachable(host_of(0), false);
    co_await runtime::sleep_for(14s);
    log_.set_reachable(host_of(0), true);
    for (size_t i = 0; i < 2; ++i) {
      auto reply = co_await (i == 0 ? a : b).client.expect<protocol::JoinGroupRequest>(ids[i], 9);
      EXPECT_EQ(reply->error_code, ErrorCode::kCoordinatorNotAvailable);
    }
    co_await runtime::sleep_for(8s);
    auto joined = co_await join_all({&a, &b});
    EXPECT_EQ(a.generation, 1);
    EXPECT_EQ(b.generation, 1);
    EXPECT_EQ((co_await sync_all({&a, &b}, joined.at(0).leader)).size(), 2u);
  });
}

TEST_F(GroupAttackTest, ATopicMadeAgainUnderItsNameHasNoOffsetsOfTheFormer) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    co_await create(a.client, "t");
    co_await stabilize({&a});
    EXPECT_EQ(co_await commit_as(a, {.offset = 7}), ErrorCode::kNone);
    RawClient admin = co_await connect();
    int32_t racing = co_await post_commit(a, {.partition = 1, .offset = 8});
    auto deleted = co_await admin.ask(sim::delete_request("t"), 5);
    EXPECT_EQ(deleted.responses.at(0).error_code, ErrorCode::kNone);
    co_await create(admin, "t");
    auto raced = co_await a.client.expect<protocol::OffsetCommitRequest>(racing, 8);
    EXPECT_TRUE(raced);
    EXPECT_EQ(co_await committed(admin), Offsets());
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kNone);
    EXPECT_EQ(co_await commit_as(a, {.offset = 2}), ErrorCode::kNone);
    EXPECT_EQ(co_await committed(admin), (Offsets{{"t:0", 2}}));
  });
}

TEST_F(GroupAttackTest, OddBytesInIdsAreDataAndSurviveARestart) {
  start_brokers(1);
  GroupMember a{.client = RawClient(nullptr)};
  std::string group("g\0\n\"\xF0\x9F\x98\x80/..", 11);
  std::string client("c\0\xFF\"\n", 5);
  run([&]() -> Task<> {
    a = co_await connect_member();
    auto joined = co_await a.client.ask(join_request(group), 3, client);
    EXPECT_EQ(joined.error_code, ErrorCode::kNone);
    a.id = joined.member_id;
    a.generation = joined.generation_id;
    EXPECT_EQ((co_await sync_all({&a}, a.id, group)).size(), 1u);
  });
  restart();
  run([&]() -> Task<> {
    a.client = co_await connect();
    EXPECT_EQ(co_await heartbeat(a, group), ErrorCode::kNone);
    EXPECT_EQ((co_await describe(a.client, group)).members.size(), 1u);
  });
}

TEST_F(GroupAttackTest, AWaitingJoinIsNotLostWhenItsGroupIsToBeDeleted) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    RawClient admin = co_await connect();
    a.id = (co_await a.client.ask(join_request("g"), 9)).member_id;
    EXPECT_EQ((co_await remove(admin)).error_code, ErrorCode::kNone) << "only an id was given out";
    EXPECT_EQ((co_await a.client.ask(join_request("g", a.id), 9)).error_code, ErrorCode::kUnknownMemberId);
    a.id = (co_await a.client.ask(join_request("g"), 9)).member_id;
    int32_t id = co_await a.client.post(join_request("g", a.id), 9);
    co_await runtime::sleep_for(500ms);
    EXPECT_EQ((co_await remove(admin)).error_code, ErrorCode::kNonEmptyGroup);
    auto joined = co_await a.client.expect<protocol::JoinGroupRequest>(id, 9);
    EXPECT_EQ(joined->error_code, ErrorCode::kNone);
  });
}

}  // namespace
}  // namespace varve::broker
