// What waiting members and strange requests must not do to a broker (invariant 11), and what is counted of them.
#include "broker/groups_testing.h"

namespace varve::broker {
namespace {

using sim::RawClient;

class GroupLimitsTest : public GroupsTest {
 protected:
  Task<> expect_answer_soon(RawClient& client) {
    MonotonicTime asked = world_.now();
    auto metadata = co_await client.ask(sim::metadata_request({}), 9);
    EXPECT_EQ(metadata.brokers.size(), 1u);
    EXPECT_LT(world_.now() - asked, 1s);
  }
  size_t request_memory_held() {
    std::string text = brokers_[0]->metrics().to_prometheus_text();
    std::string name = "\nvarve_request_memory_bytes ";
    return std::stoul(text.substr(text.find(name) + name.size()));
  }
};

TEST_F(GroupLimitsTest, MembersThatWaitHoldNothingOfTheMemoryForRequests) {
  Settings settings = settings_of(0);
  settings.limits.frame_bytes_max = 64 * kKiB;
  settings.limits.request_memory_bytes_max = 128 * kKiB;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    // Together they are several times that memory.
    std::vector<GroupMember> members;
    std::vector<int32_t> asked;
    for (int i = 0; i < 8; ++i) members.push_back(co_await connect_member());
    for (GroupMember& member : members) {
      auto request = join_request("g");
      request.protocols.at(0).metadata = slice_of(std::string(50 * kKiB, 'm'));
      asked.push_back(co_await member.client.post(request, 3));
    }
    RawClient other = co_await connect();
    co_await expect_answer_soon(other);
    // Of a follower, which waits for its leader, too.
    for (size_t i = 0; i < members.size(); ++i) {
      auto joined = co_await members[i].client.expect<protocol::JoinGroupRequest>(asked[i], 3);
      if (!joined) co_return ADD_FAILURE() << "the connection was closed";
      EXPECT_EQ(joined->error_code, ErrorCode::kNone);
      members[i].id = joined->member_id;
      members[i].generation = joined->generation_id;
      if (joined->leader == joined->member_id) continue;
      auto sync = sync_request(members[i]);
      sync.assignments.emplace_back().assignment = slice_of(std::string(50 * kKiB, 'a'));
      co_await members[i].client.post(sync, 5);
    }
    co_await expect_answer_soon(other);
  });
}

TEST_F(GroupLimitsTest, WhatWaitsForTheLogIsCountedUntilTheGroupHasTakenIt) {
  start_brokers(1);
  run([&]() -> Task<> {
    GroupMember joining = co_await connect_member();
    auto join = join_request("g");
    join.protocols.at(0).metadata = slice_of(std::string(100 * kKiB, 'm'));
    GroupMember assigning = co_await connect_member();
    assigning.id = "nobody";
    auto sync = sync_request(assigning);
    sync.assignments.emplace_back().assignment = slice_of(std::string(100 * kKiB, 'a'));
    log_.set_reachable("broker0", false);
    int32_t joined = co_await joining.client.post(join, 3);
    co_await runtime::sleep_for(1s);
    EXPECT_GE(request_memory_held(), 100 * kKiB);
    int32_t synced = co_await assigning.client.post(sync, 5);
    co_await runtime::sleep_for(1s);
    EXPECT_GE(request_memory_held(), 200 * kKiB);
    log_.set_reachable("broker0", true);
    EXPECT_TRUE(co_await assigning.client.expect<protocol::SyncGroupRequest>(synced, 5));
    EXPECT_TRUE(co_await joining.client.expect<protocol::JoinGroupRequest>(joined, 3));
    EXPECT_EQ(request_memory_held(), 0u);
  });
}

// Every entry about a group names all its members.
TEST_F(GroupLimitsTest, MembersWhoseIdsDoNotFitIntoAnEntryAreTurnedAwayAndTheOthersGoOn) {
  start_brokers(1);
  run([&]() -> Task<> {
    std::string long_name(32'000, 'c');
    std::vector<GroupMember> members;
    std::vector<int32_t> asked;
    for (int i = 0; i < 12; ++i) members.push_back(co_await connect_member());
    for (GroupMember& member : members) {
      asked.push_back(co_await member.client.post(join_request("g"), 3, long_name));
    }
    size_t joined = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      auto reply = co_await members[i].client.expect<protocol::JoinGroupRequest>(asked[i], 3);
      if (!reply) co_return ADD_FAILURE() << "the connection was closed";
      if (reply->error_code == ErrorCode::kGroupMaxSizeReached) continue;
      EXPECT_EQ(reply->error_code, ErrorCode::kNone);
      EXPECT_EQ(reply->generation_id, 1);
      ++joined;
    }
    EXPECT_GT(joined, 4u);
    EXPECT_LT(joined, 9u);
  });
}

TEST_F(GroupLimitsTest, TheMemoryOfGroupsIsNotPassedInTwoSteps) {
  Settings settings = settings_of(0);
  settings.limits.group_memory_bytes_max = 100 * kKiB;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    std::string large(60 * kKiB, 'm');
    GroupMember first = co_await connect_member();
    co_await join_all({&first}, "g", large);
    GroupMember second = co_await connect_member();
    auto request = join_request("g");
    request.protocols.at(0).metadata = slice_of(large);
    request.member_id = "";
    EXPECT_EQ((co_await second.client.ask(request, 9)).error_code, ErrorCode::kCoordinatorNotAvailable);
    auto given = co_await second.client.ask(join_request("g"), 9);
    EXPECT_EQ(given.error_code, ErrorCode::kMemberIdRequired);
    request.member_id = given.member_id;
    EXPECT_EQ((co_await second.client.ask(request, 9)).error_code, ErrorCode::kCoordinatorNotAvailable);
    // Nor by what the leader gives.
    auto sync = sync_request(first);
    auto& row = sync.assignments.emplace_back();
    row.member_id = first.id;
    row.assignment = slice_of(large);
    EXPECT_EQ((co_await first.client.ask(sync, 5)).error_code, ErrorCode::kCoordinatorNotAvailable);
    // Nor by names of groups of which nobody is a member yet.
    for (bool has_room : {true, false}) {
      auto named = join_request(std::string(10'000, has_room ? 'x' : 'y'));
      auto reply = co_await second.client.ask(named, 9);
      EXPECT_EQ(reply.error_code,
                has_room ? ErrorCode::kMemberIdRequired : ErrorCode::kCoordinatorNotAvailable);
    }
  });
}

TEST_F(GroupLimitsTest, TheRetentionOfOffsetsComesIntoForceWhenTheLogHasRoomAgain) {
  start_brokers(1);
  log_.set_full(true);
  Settings settings = settings_of(1);
  settings.offsets_retention = std::chrono::hours(1);
  add_broker(settings);
  wait_until_serving();
  auto retention = [&] {
    return brokers_[0]->broker().metadata()->state().group_limits().offsets_retention_ms;
  };
  run([&]() -> Task<> {
    co_await runtime::sleep_for(10s);
    EXPECT_NE(retention(), 3'600'000u);
    log_.set_full(false);
    co_await runtime::sleep_for(60s);
    EXPECT_EQ(retention(), 3'600'000u);
  });
  EXPECT_TRUE(std::ranges::any_of(warnings_.texts, [](const std::string& line) {
    return line.find("offsets.retention.minutes is not in force yet") != std::string::npos;
  }));
}

TEST_F(GroupLimitsTest, ACommitMayBeKeptForAsLongAsANumberCanSay) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto request = commit_request({.offset = 7});
    request.retention_time_ms = INT64_MAX;
    auto committed = co_await client.ask(request, 2);
    EXPECT_EQ(committed.topics.at(0).partitions.at(0).error_code, ErrorCode::kNone);
    const metadata::GroupView* view = brokers_[0]->broker().metadata()->state().find_group("g");
    EXPECT_NE(view, nullptr);
    if (view == nullptr) co_return;
    EXPECT_EQ(view->offsets.begin()->second.expires_at, INT64_MAX);
    request.retention_time_ms = INT64_MIN;
    committed = co_await client.ask(request, 2);
    EXPECT_EQ(committed.topics.at(0).partitions.at(0).error_code, ErrorCode::kNone);
  });
}

TEST_F(GroupLimitsTest, DescribingAGroupThatIsNotThereCountsAsAFailedRequest) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    protocol::DescribeGroupsRequest request;
    request.groups = {"absent"};
    auto reply = co_await client.ask(request, 6);
    EXPECT_EQ(reply.groups.at(0).error_code, ErrorCode::kGroupIdNotFound);
  });
  EXPECT_NE(brokers_[0]->metrics().to_prometheus_text().find(
                "kafscale_admin_request_errors_total{api=\"DescribeGroups\"} 1"),
            std::string::npos);
}

}  // namespace
}  // namespace varve::broker
