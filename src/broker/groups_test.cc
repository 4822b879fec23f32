// Membership of consumer groups against whole brokers. Cases of the area "groups".
#include <gmock/gmock.h>

#include "base/hash.h"
#include "broker/groups_testing.h"

namespace varve::broker {
namespace {

using sim::RawClient;
using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST_F(GroupsTest, C064JoiningWithoutAnIdByVersion) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto old = co_await client.ask(join_request("old"), 3, "app");
    EXPECT_EQ(old.error_code, ErrorCode::kNone);
    EXPECT_THAT(old.member_id, StartsWith("app-"));
    EXPECT_EQ(old.member_id.size(), 40u);
    auto given = co_await client.ask(join_request("g"), 4, "app");
    EXPECT_EQ(given.error_code, ErrorCode::kMemberIdRequired);
    EXPECT_EQ(given.generation_id, -1);
    auto joined = co_await client.ask(join_request("g", given.member_id), 4);
    EXPECT_EQ(joined.error_code, ErrorCode::kNone);
    EXPECT_EQ(joined.member_id, given.member_id);
    EXPECT_EQ(joined.leader, given.member_id);
    auto fixed = join_request("static");
    fixed.group_instance_id = "i1";
    auto instance = co_await client.ask(fixed, 5);
    EXPECT_EQ(instance.error_code, ErrorCode::kNone);
    EXPECT_THAT(instance.member_id, StartsWith("i1-"));
    auto invented = co_await client.ask(join_request("g", "invented"), 4);
    EXPECT_EQ(invented.error_code, ErrorCode::kUnknownMemberId);
    EXPECT_EQ(invented.member_id, "invented");
    auto nowhere = co_await client.ask(join_request("unknown", "invented"), 4);
    EXPECT_EQ(nowhere.error_code, ErrorCode::kUnknownMemberId);
  });
}

TEST_F(GroupsTest, C066WithoutARebalanceTimeoutTheSessionsIsUsed) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient first = co_await connect();
    RawClient second = co_await connect();
    int32_t id1 = co_await first.post(join_request("g"), 0);
    int32_t id2 = co_await second.post(join_request("g"), 0);
    auto joined1 = co_await first.expect<protocol::JoinGroupRequest>(id1, 0);
    auto joined2 = co_await second.expect<protocol::JoinGroupRequest>(id2, 0);
    EXPECT_EQ(joined1->error_code, ErrorCode::kNone);
    EXPECT_EQ(joined2->error_code, ErrorCode::kNone);
    EXPECT_EQ(joined1->generation_id, joined2->generation_id);
    EXPECT_EQ(joined1->leader, joined2->leader);
    // One joins again: the other one has the session's time to do so, not none.
    RawClient third = co_await connect();
    int32_t id3 = co_await third.post(join_request("g"), 0);
    co_await runtime::sleep_for(8s);
    id1 = co_await first.post(join_request("g", joined1->member_id), 0);
    id2 = co_await second.post(join_request("g", joined2->member_id), 0);
    for (auto* one : {&first, &second, &third}) {
      int32_t id = one == &first ? id1 : one == &second ? id2 : id3;
      auto again = co_await one->expect<protocol::JoinGroupRequest>(id, 0);
      EXPECT_EQ(again->error_code, ErrorCode::kNone);
      EXPECT_EQ(again->generation_id, joined1->generation_id + 1);
    }
  });
}

TEST_F(GroupsTest, C011FollowersGetExactlyTheLeadersBytes) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member();
    GroupMember c = co_await connect_member();
    auto joined = co_await join_all({&a, &b, &c});
    GroupMember* leader = joined[0].leader == a.id ? &a : joined[0].leader == b.id ? &b : &c;
    std::vector<GroupMember*> followers;
    for (GroupMember* one : {&a, &b, &c}) {
      if (one != leader) followers.push_back(one);
    }
    int32_t early = co_await followers[0]->client.post(sync_request(*followers[0]), 5);
    co_await runtime::sleep_for(2s);
    auto request = sync_request(*leader);
    std::string bytes("\0\1\xFFodd", 6);
    auto& row = request.assignments.emplace_back();
    row.member_id = followers[0]->id;
    row.assignment = slice_of(bytes);
    auto own = co_await leader->client.ask(request, 5);
    EXPECT_EQ(own.error_code, ErrorCode::kNone);
    EXPECT_TRUE(own.assignment.empty());
    auto held = co_await followers[0]->client.expect<protocol::SyncGroupRequest>(early, 5);
    EXPECT_EQ(text_of(held->assignment), bytes);
    EXPECT_EQ(held->protocol_name, "range");
    auto left_out = co_await followers[1]->client.ask(sync_request(*followers[1]), 5);
    EXPECT_EQ(left_out.error_code, ErrorCode::kNone);
    EXPECT_TRUE(left_out.assignment.empty());
  });
}

TEST_F(GroupsTest, ARestartedBrokerGoesOnWithoutARebalance) {
  start_brokers(1);
  GroupMember a{.client = sim::RawClient(nullptr)};
  GroupMember b{.client = sim::RawClient(nullptr)};
  run([&]() -> Task<> {
    a = co_await connect_member();
    b = co_await connect_member(0, "instance");
    co_await create(a.client, "t");
    EXPECT_THAT(co_await stabilize({&a, &b}), ElementsAre("place 0", "place 1"));
    EXPECT_EQ(co_await commit_as(a, {.offset = 7}), ErrorCode::kNone);
  });
  restart();
  run([&]() -> Task<> {
    a.client = co_await connect();
    b.client = co_await connect();
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kNone);
    EXPECT_EQ(co_await heartbeat(b), ErrorCode::kNone);
    auto again = co_await a.client.ask(sync_request(a), 5);
    EXPECT_EQ(text_of(again.assignment), "place 0");
    EXPECT_EQ(co_await commit_as(b, {.partition = 1, .offset = 8}), ErrorCode::kNone);
    EXPECT_EQ(co_await committed(a.client), (std::map<std::string, int64_t>{{"t:0", 7}, {"t:1", 8}}));
    EXPECT_EQ((co_await describe(a.client)).group_state, "Stable");
    // A static member that started again, too, keeps its place.
    GroupMember b2 = co_await connect_member(0, "instance");
    auto request = join_request("g");
    request.group_instance_id = "instance";
    auto joined = co_await b2.client.ask(request, 9);
    EXPECT_EQ(joined.generation_id, a.generation);
    EXPECT_EQ(co_await heartbeat(b), ErrorCode::kFencedInstanceId);
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kNone);
  });
}

TEST_F(GroupsTest, ARestartWhileTheLeaderAssignsGoesOnWaitingForIt) {
  start_brokers(1);
  GroupMember a{.client = sim::RawClient(nullptr)};
  GroupMember b{.client = sim::RawClient(nullptr)};
  std::string leader;
  run([&]() -> Task<> {
    a = co_await connect_member();
    b = co_await connect_member();
    leader = (co_await join_all({&a, &b})).at(0).leader;
  });
  restart();
  run([&]() -> Task<> {
    a.client = co_await connect();
    b.client = co_await connect();
    EXPECT_THAT(co_await sync_all({&a, &b}, leader), ElementsAre("place 0", "place 1"));
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kNone);
  });
}

TEST_F(GroupsTest, C078ThereIsOneCoordinatorAndItsHeirGoesOnWithoutARebalance) {
  start_brokers(2);
  size_t owner = 0;
  GroupMember a{.client = sim::RawClient(nullptr)};
  GroupMember b{.client = sim::RawClient(nullptr)};
  run([&]() -> Task<> {
    owner = co_await coordinator_of("g");
    GroupMember lost = co_await connect_member(1 - owner);
    auto refused = co_await lost.client.ask(join_request("g"), 9);
    EXPECT_EQ(refused.error_code, ErrorCode::kNotCoordinator);
    EXPECT_EQ(co_await heartbeat(lost), ErrorCode::kNotCoordinator);
    EXPECT_EQ((co_await describe(lost.client)).error_code, ErrorCode::kNotCoordinator);
    EXPECT_EQ((co_await remove(lost.client)).error_code, ErrorCode::kNotCoordinator);
    a = co_await connect_member(owner);
    b = co_await connect_member(owner);
    co_await create(a.client, "t", 4);
    co_await stabilize({&a, &b});
    EXPECT_EQ(co_await commit(lost.client, {.offset = 1}), ErrorCode::kNotCoordinator);
    EXPECT_EQ(co_await commit_as(a, {.offset = 7}), ErrorCode::kNone);
    auto listed = co_await lost.client.ask(protocol::ListGroupsRequest{}, 5);
    EXPECT_TRUE(listed.groups.empty()) << "each broker lists its own";
  });
  brokers_[owner]->crash();
  run([&]() -> Task<> {
    while (co_await coordinator_of("g", 1 - owner) == owner) co_await runtime::sleep_for(1s);
    a.client = co_await connect(1 - owner);
    b.client = co_await connect(1 - owner);
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kNone);
    EXPECT_EQ(co_await heartbeat(b), ErrorCode::kNone);
    EXPECT_EQ(text_of((co_await b.client.ask(sync_request(b), 5)).assignment), "place 1");
    EXPECT_EQ(co_await committed(a.client), (std::map<std::string, int64_t>{{"t:0", 7}}));
    EXPECT_EQ(co_await commit_as(b, {.partition = 1, .offset = 9}), ErrorCode::kNone);
  });
  brokers_[owner]->boot();
  wait_until_serving();
  run([&]() -> Task<> {
    EXPECT_EQ(co_await coordinator_of("g"), owner);
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kNotCoordinator) << "the heir has given it back";
    a.client = co_await connect(owner);
    b.client = co_await connect(owner);
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kNone);
    EXPECT_EQ(co_await heartbeat(b), ErrorCode::kNone);
    EXPECT_EQ(co_await committed(a.client), (std::map<std::string, int64_t>{{"t:0", 7}, {"t:1", 9}}));
  });
}

TEST_F(GroupsTest, WhoWaitsIsSentOnWhenTheOwnerChanges) {
  start_brokers(2);
  run([&]() -> Task<> {
    // A group that the third broker will own.
    std::vector<BrokerId> three = {BrokerId(0), BrokerId(1), BrokerId(2)};
    std::string group;
    for (int i = 0; group.empty(); ++i) {
      std::string name = "g" + std::to_string(i);
      if (*rendezvous_owner(hash64(name, 0), three) == BrokerId(2)) group = name;
    }
    size_t owner = co_await coordinator_of(group);
    GroupMember a = co_await connect_member(owner);
    GroupMember b = co_await connect_member(owner);
    auto joined = co_await join_all({&a, &b}, group);
    GroupMember& follower = joined[0].leader == a.id ? b : a;
    int32_t id = co_await follower.client.post(sync_request(follower, group), 5);
    add_broker(settings_of(2));
    auto sent_on = co_await follower.client.expect<protocol::SyncGroupRequest>(id, 5);
    EXPECT_EQ(sent_on->error_code, ErrorCode::kNotCoordinator);
    while (co_await coordinator_of(group) != 2) co_await runtime::sleep_for(1s);
    a.client = co_await connect(2);
    b.client = co_await connect(2);
    EXPECT_THAT(co_await sync_all({&a, &b}, joined[0].leader, group), ElementsAre("place 0", "place 1"));
  });
}

TEST_F(GroupsTest, ASilentMemberIsRemovedAndTheOthersRebalance) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member();
    co_await stabilize({&a, &b});
    for (int second = 0; second < 11; ++second) {
      co_await runtime::sleep_for(1s);
      co_await heartbeat(a);
    }
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kRebalanceInProgress);
    EXPECT_EQ(co_await heartbeat(b), ErrorCode::kUnknownMemberId);
    auto joined = co_await join_all({&a});
    EXPECT_EQ(joined[0].members.size(), 1u);
  });
}

TEST_F(GroupsTest, TheLastMemberThatLeavesLeavesAnEmptyGroup) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    co_await stabilize({&a});
    EXPECT_EQ(co_await leave(a), ErrorCode::kNone);
    EXPECT_EQ(co_await leave(a), ErrorCode::kUnknownMemberId);
    auto described = co_await describe(a.client);
    EXPECT_EQ(described.group_state, "Empty");
    EXPECT_EQ(described.protocol_type, "consumer");
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kUnknownMemberId);
    a.id.clear();
    int32_t before = a.generation;
    co_await stabilize({&a});
    EXPECT_EQ(a.generation, before + 2);
  });
}

TEST_F(GroupsTest, EachMemberThatLeavesGetsItsOwnCode) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member(0, "i");
    co_await stabilize({&a, &b});
    protocol::LeaveGroupRequest request;
    request.group_id = "g";
    request.members.resize(3);
    request.members[0].group_instance_id = "i";
    request.members[0].reason = "the operator says so";
    request.members[1].member_id = "nobody";
    request.members[2].member_id = a.id;
    auto reply = co_await a.client.ask(request, 5);
    EXPECT_EQ(reply.error_code, ErrorCode::kNone);
    EXPECT_EQ(reply.members.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(reply.members.at(0).group_instance_id, "i");
    EXPECT_EQ(reply.members.at(1).error_code, ErrorCode::kUnknownMemberId);
    EXPECT_EQ(reply.members.at(2).error_code, ErrorCode::kNone);
    protocol::LeaveGroupRequest old;
    old.group_id = "g";
    old.member_id = a.id;
    EXPECT_EQ((co_await a.client.ask(old, 2)).error_code, ErrorCode::kUnknownMemberId);
    old.group_id = "unknown";
    EXPECT_EQ((co_await a.client.ask(old, 0)).error_code, ErrorCode::kUnknownMemberId);
  });
}

TEST_F(GroupsTest, EveryVersionOfTheMembershipApisIsServed) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int16_t version = 0; version <= protocol::JoinGroupRequest::kMaxVersion; ++version) {
      std::string group = "v" + std::to_string(version);
      auto joined = co_await client.ask(join_request(group), version);
      if (joined.error_code == ErrorCode::kMemberIdRequired) {
        joined = co_await client.ask(join_request(group, joined.member_id), version);
      }
      EXPECT_EQ(joined.error_code, ErrorCode::kNone) << version;
      EXPECT_EQ(joined.protocol_name, "range");
      EXPECT_EQ(joined.protocol_type, version >= 7 ? std::optional<std::string>("consumer") : std::nullopt);
      EXPECT_EQ(joined.members.size(), 1u);
      GroupMember member{.client = sim::RawClient(nullptr), .id = joined.member_id};
      member.generation = joined.generation_id;
      auto synced = co_await client.ask(sync_request(member, group), std::min<int16_t>(version, 5));
      EXPECT_EQ(synced.error_code, ErrorCode::kNone) << version;
      protocol::HeartbeatRequest beat;
      beat.group_id = group;
      beat.member_id = member.id;
      beat.generation_id = member.generation;
      EXPECT_EQ((co_await client.ask(beat, std::min<int16_t>(version, 4))).error_code, ErrorCode::kNone);
      protocol::LeaveGroupRequest leave;
      leave.group_id = group;
      leave.member_id = member.id;
      leave.members.emplace_back().member_id = member.id;
      auto left = co_await client.ask(leave, std::min<int16_t>(version, 5));
      EXPECT_EQ(left.error_code, ErrorCode::kNone);
      // From 3 on each member has its own code.
      EXPECT_EQ(left.members.size(), version < 3 ? 0u : 1u) << version;
      for (const auto& row : left.members) EXPECT_EQ(row.error_code, ErrorCode::kNone) << version;
      beat.member_id = member.id;
      EXPECT_EQ((co_await client.ask(beat, std::min<int16_t>(version, 4))).error_code,
                ErrorCode::kUnknownMemberId);
    }
  });
}

TEST_F(GroupsTest, BadMembershipRequestsGetKafkasCodes) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    RawClient& client = a.client;
    EXPECT_EQ((co_await client.ask(join_request(""), 9)).error_code, ErrorCode::kInvalidGroupId);
    for (int32_t session : {-1, 0, 5'999, 1'800'001, INT32_MAX}) {
      auto request = join_request("g");
      request.session_timeout_ms = session;
      EXPECT_EQ((co_await client.ask(request, 9)).error_code, ErrorCode::kInvalidSessionTimeout) << session;
    }
    auto untyped = join_request("g");
    untyped.protocol_type = "";
    auto refused = co_await client.ask(untyped, 9);
    EXPECT_EQ(refused.error_code, ErrorCode::kInconsistentGroupProtocol);
    EXPECT_EQ(refused.protocol_name, std::nullopt);
    EXPECT_EQ((co_await client.ask(untyped, 6)).protocol_name, "");
    auto without = join_request("g");
    without.protocols.clear();
    EXPECT_EQ((co_await client.ask(without, 9)).error_code, ErrorCode::kInconsistentGroupProtocol);
    auto negative = join_request("negative");
    negative.rebalance_timeout_ms = -5;
    EXPECT_EQ((co_await client.ask(negative, 3)).error_code, ErrorCode::kNone);

    EXPECT_EQ((co_await client.ask(sync_request(a, ""), 4)).error_code, ErrorCode::kInvalidGroupId);
    EXPECT_EQ((co_await client.ask(sync_request(a, "unknown"), 4)).error_code, ErrorCode::kUnknownMemberId);
    auto untyped_sync = sync_request(a);
    untyped_sync.protocol_type = std::nullopt;
    EXPECT_EQ((co_await client.ask(untyped_sync, 5)).error_code, ErrorCode::kInconsistentGroupProtocol);
    EXPECT_EQ(co_await heartbeat(a, ""), ErrorCode::kInvalidGroupId);
    EXPECT_EQ(co_await heartbeat(a, "unknown"), ErrorCode::kUnknownMemberId);
    EXPECT_EQ(co_await leave(a, ""), ErrorCode::kInvalidGroupId);
    EXPECT_EQ(co_await leave(a, "unknown"), ErrorCode::kUnknownMemberId);

    co_await stabilize({&a});
    auto other = sync_request(a);
    other.protocol_name = "sticky";
    EXPECT_EQ((co_await client.ask(other, 5)).error_code, ErrorCode::kInconsistentGroupProtocol);
    a.generation += 1;
    EXPECT_EQ((co_await client.ask(sync_request(a), 5)).error_code, ErrorCode::kIllegalGeneration);
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kIllegalGeneration);
  });
}

TEST_F(GroupsTest, AMemberThatBringsTooMuchIsRefusedAndAnAssignmentToo) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    auto request = join_request("g");
    request.protocols.at(0).metadata = slice_of(std::string(300'000, 'x'));
    EXPECT_EQ((co_await a.client.ask(request, 9)).error_code, ErrorCode::kUnknownServerError);
    co_await join_all({&a});
    auto sync = sync_request(a);
    auto& row = sync.assignments.emplace_back();
    row.member_id = a.id;
    row.assignment = slice_of(std::string(300'000, 'x'));
    EXPECT_EQ((co_await a.client.ask(sync, 5)).error_code, ErrorCode::kUnknownServerError);
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kRebalanceInProgress);
    // Together more than an entry holds: stored in steps.
    std::vector<GroupMember> members;
    for (int i = 0; i < 5; ++i) members.push_back(co_await connect_member());
    std::vector<GroupMember*> all;
    for (GroupMember& member : members) all.push_back(&member);
    auto joined = co_await join_all(all, "large", std::string(200'000, 'm'));
    EXPECT_EQ(joined.size(), 5u);
    EXPECT_EQ((co_await sync_all(all, joined.at(0).leader, "large")).size(), 5u);
    EXPECT_EQ((co_await describe(a.client, "large")).members.size(), 5u);
  });
}

TEST_F(GroupsTest, TimeWithoutTheLogDoesNotCountAgainstMembers) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember a = co_await connect_member();
    GroupMember b = co_await connect_member();
    co_await create(a.client, "t");
    co_await stabilize({&a, &b});
    sim::LogFaults silent;
    silent.read.request_lost = 1000;
    silent.append.request_lost = 1000;
    silent.other.request_lost = 1000;
    log_.set_faults(silent);
    co_await runtime::sleep_for(15s);
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kCoordinatorNotAvailable);
    EXPECT_EQ((co_await b.client.ask(join_request("g", b.id), 9)).error_code,
              ErrorCode::kCoordinatorNotAvailable);
    EXPECT_EQ(co_await commit_as(a, {.offset = 1}), ErrorCode::kCoordinatorNotAvailable);
    log_.set_faults({});
    co_await runtime::sleep_for(9s);
    EXPECT_EQ(co_await heartbeat(a), ErrorCode::kNone);
    EXPECT_EQ(co_await heartbeat(b), ErrorCode::kNone);
  });
}

}  // namespace
}  // namespace varve::broker
