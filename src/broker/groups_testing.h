// What tests of consumer groups share: members that speak the protocol, each on its own connection.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "protocol/messages/delete_groups.h"
#include "protocol/messages/describe_groups.h"
#include "protocol/messages/find_coordinator.h"
#include "protocol/messages/heartbeat.h"
#include "protocol/messages/join_group.h"
#include "protocol/messages/leave_group.h"
#include "protocol/messages/list_groups.h"
#include "protocol/messages/offset_commit.h"
#include "protocol/messages/offset_delete.h"
#include "protocol/messages/offset_fetch.h"
#include "protocol/messages/sync_group.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {

inline Slice slice_of(std::string_view text) { return Slice::copy_of(as_bytes(text)); }
inline std::string text_of(const Slice& slice) { return std::string(as_text(slice.view())); }

// The consumer protocol's subscription to one topic.
inline std::string subscription_to(const std::string& topic) {
  return std::string("\0\1\0\0\0\1\0", 7) + static_cast<char>(topic.size()) + topic +
         std::string("\xFF\xFF\xFF\xFF\0\0\0\0", 8);
}

struct GroupMember {
  sim::RawClient client;
  std::string id{};
  std::optional<std::string> instance{};
  int32_t generation = -1;
};

struct Committing {
  std::string group = "g";
  int32_t partition = 0;
  int64_t offset = 0;
  std::optional<std::string> metadata = "";
  int16_t version = 8;
};

class GroupsTest : public sim::BrokerFixture {
 protected:
  using ErrorCode = protocol::ErrorCode;
  template <class T = void>
  using Task = runtime::Task<T>;

  static protocol::JoinGroupRequest join_request(std::string group, std::string member = "") {
    protocol::JoinGroupRequest request;
    request.group_id = std::move(group);
    request.member_id = std::move(member);
    request.session_timeout_ms = 10'000;
    request.rebalance_timeout_ms = 20'000;
    request.protocol_type = "consumer";
    auto& protocol = request.protocols.emplace_back();
    protocol.name = "range";
    protocol.metadata = slice_of(subscription_to("t"));
    return request;
  }
  Task<Uuid> create(sim::RawClient& client, std::string topic, int32_t partitions = 3) {
    auto reply = co_await client.ask(sim::create_request(topic, partitions), 7);
    EXPECT_EQ(reply.topics.at(0).error_code, ErrorCode::kNone);
    co_return reply.topics.at(0).topic_id;
  }
  Task<GroupMember> connect_member(size_t broker = 0, std::optional<std::string> instance = std::nullopt) {
    GroupMember member{.client = co_await connect(broker), .id = "", .instance = std::move(instance)};
    co_return member;
  }

  // All join at once, in the highest version, and get their ids where they have none.
  Task<std::vector<protocol::JoinGroupResponse>> join_all(std::vector<GroupMember*> members,
                                                          std::string group = "g",
                                                          std::string metadata = subscription_to("t")) {
    std::vector<int32_t> ids;
    for (GroupMember* member : members) {
      auto request = join_request(group, member->id);
      request.group_instance_id = member->instance;
      request.protocols.at(0).metadata = slice_of(metadata);
      if (member->id.empty() && !member->instance) {
        auto given = co_await member->client.ask(request, 9);
        EXPECT_EQ(given.error_code, ErrorCode::kMemberIdRequired);
        request.member_id = member->id = given.member_id;
      }
      ids.push_back(co_await member->client.post(request, 9));
    }
    std::vector<protocol::JoinGroupResponse> replies;
    for (size_t i = 0; i < members.size(); ++i) {
      auto reply = co_await members[i]->client.expect<protocol::JoinGroupRequest>(ids[i], 9);
      EXPECT_TRUE(reply);
      if (!reply) continue;
      EXPECT_EQ(reply->error_code, ErrorCode::kNone);
      members[i]->id = reply->member_id;
      members[i]->generation = reply->generation_id;
      replies.push_back(std::move(*reply));
    }
    co_return replies;
  }
  static protocol::SyncGroupRequest sync_request(const GroupMember& member, std::string group = "g") {
    protocol::SyncGroupRequest request;
    request.group_id = std::move(group);
    request.generation_id = member.generation;
    request.member_id = member.id;
    request.group_instance_id = member.instance;
    request.protocol_type = "consumer";
    request.protocol_name = "range";
    return request;
  }
  // The leader assigns to each its place among the members; the assignments as they came.
  Task<std::vector<std::string>> sync_all(std::vector<GroupMember*> members, std::string leader,
                                          std::string group = "g") {
    std::vector<int32_t> ids;
    for (GroupMember* member : members) {
      auto request = sync_request(*member, group);
      for (size_t i = 0; i < members.size() && member->id == leader; ++i) {
        auto& row = request.assignments.emplace_back();
        row.member_id = members[i]->id;
        row.assignment = slice_of("place " + std::to_string(i));
      }
      ids.push_back(co_await member->client.post(request, 5));
    }
    std::vector<std::string> assignments;
    for (size_t i = 0; i < members.size(); ++i) {
      auto reply = co_await members[i]->client.expect<protocol::SyncGroupRequest>(ids[i], 5);
      EXPECT_TRUE(reply);
      if (!reply) continue;
      EXPECT_EQ(reply->error_code, ErrorCode::kNone);
      assignments.push_back(text_of(reply->assignment));
    }
    co_return assignments;
  }
  // From nothing to a stable group.
  Task<std::vector<std::string>> stabilize(std::vector<GroupMember*> members, std::string group = "g") {
    auto joined = co_await join_all(members, group);
    co_return co_await sync_all(members, joined.at(0).leader, group);
  }
  static protocol::HeartbeatRequest heartbeat_request(const GroupMember& member, std::string group = "g") {
    protocol::HeartbeatRequest request;
    request.group_id = std::move(group);
    request.generation_id = member.generation;
    request.member_id = member.id;
    request.group_instance_id = member.instance;
    return request;
  }
  Task<ErrorCode> heartbeat(GroupMember& member, std::string group = "g") {
    co_return (co_await member.client.ask(heartbeat_request(member, std::move(group)), 4)).error_code;
  }
  Task<ErrorCode> leave(GroupMember& member, std::string group = "g") {
    protocol::LeaveGroupRequest request;
    request.group_id = std::move(group);
    request.members.emplace_back().member_id = member.id;
    auto reply = co_await member.client.ask(request, 5);
    co_return reply.members.empty() ? reply.error_code : reply.members.at(0).error_code;
  }

  static protocol::OffsetCommitRequest commit_request(const Committing& what, std::string topic = "t") {
    protocol::OffsetCommitRequest request;
    request.group_id = what.group;
    auto& rows = request.topics.emplace_back();
    rows.name = std::move(topic);
    auto& row = rows.partitions.emplace_back();
    row.partition_index = PartitionIndex(what.partition);
    row.committed_offset = Offset(what.offset);
    row.committed_metadata = what.metadata;
    return request;
  }
  Task<ErrorCode> commit(sim::RawClient& client, Committing what) {
    auto reply = co_await client.ask(commit_request(what), what.version);
    co_return reply.topics.at(0).partitions.at(0).error_code;
  }
  static protocol::OffsetCommitRequest member_commit_request(const GroupMember& member,
                                                             const Committing& what) {
    auto request = commit_request(what);
    request.generation_id_or_member_epoch = member.generation;
    request.member_id = member.id;
    request.group_instance_id = member.instance;
    return request;
  }
  Task<ErrorCode> commit_as(GroupMember& member, Committing what) {
    auto reply = co_await member.client.ask(member_commit_request(member, what), what.version);
    co_return reply.topics.at(0).partitions.at(0).error_code;
  }
  Task<int32_t> post_commit(GroupMember& member, Committing what) {
    co_return co_await member.client.post(member_commit_request(member, what), what.version);
  }
  // Of all partitions of all topics, by "topic:partition".
  Task<std::map<std::string, int64_t>> committed(sim::RawClient& client, std::string group = "g") {
    protocol::OffsetFetchRequest request;
    auto& asked = request.groups.emplace_back();
    asked.group_id = std::move(group);
    asked.topics = std::nullopt;
    auto reply = co_await client.ask(request, 9);
    EXPECT_EQ(reply.groups.at(0).error_code, ErrorCode::kNone);
    std::map<std::string, int64_t> offsets;
    for (const auto& topic : reply.groups.at(0).topics) {
      for (const auto& row : topic.partitions) {
        std::string name = topic.name + ":" + std::to_string(row.partition_index.value());
        offsets[name] = row.committed_offset.value();
      }
    }
    co_return offsets;
  }
  Task<protocol::DescribeGroupsResponse::DescribedGroup> describe(sim::RawClient& client,
                                                                  std::string group = "g",
                                                                  int16_t version = 5) {
    protocol::DescribeGroupsRequest request;
    request.groups = {std::move(group)};
    auto reply = co_await client.ask(request, version);
    co_return reply.groups.at(0);
  }
  Task<protocol::DeleteGroupsResponse::DeletableGroupResult> remove(sim::RawClient& client,
                                                                    std::string group = "g") {
    protocol::DeleteGroupsRequest request;
    request.groups_names = {std::move(group)};
    auto reply = co_await client.ask(request, 2);
    co_return reply.results.at(0);
  }
  // A group that this one of three brokers owns.
  static std::string group_of(int32_t broker) {
    std::vector<BrokerId> three = {BrokerId(0), BrokerId(1), BrokerId(2)};
    for (int i = 0;; ++i) {
      std::string name = "g" + std::to_string(i);
      if (*rendezvous_owner(hash64(name, 0), three) == BrokerId(broker)) return name;
    }
  }
  // Which broker the others name for the group.
  Task<size_t> coordinator_of(std::string group, size_t asked = 0) {
    sim::RawClient client = co_await connect(asked);
    protocol::FindCoordinatorRequest request;
    request.coordinator_keys = {std::move(group)};
    auto reply = co_await client.ask(request, 4);
    EXPECT_EQ(reply.coordinators.at(0).error_code, ErrorCode::kNone);
    co_return static_cast<size_t>(reply.coordinators.at(0).node_id.value());
  }
  void restart(size_t broker = 0) {
    brokers_[broker]->crash();
    brokers_[broker]->boot();
    wait_until_serving();
  }
};

}  // namespace varve::broker
