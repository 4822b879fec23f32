// For tests of a group by itself: members who say what the test wants, and a clock that the test turns.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/group/group.h"

namespace varve::broker {

// An answer that may not have come yet.
template <class Answer>
class Awaited {
 public:
  bool has_come() const { return slot_->has_value(); }
  const Answer& get() const {
    EXPECT_TRUE(slot_->has_value()) << "no answer has come";
    static const Answer kNone{};
    return slot_->has_value() ? **slot_ : kNone;
  }
  auto reply() const {
    return [slot = slot_](Answer answer) { *slot = std::move(answer); };
  }

 private:
  std::shared_ptr<std::optional<Answer>> slot_ = std::make_shared<std::optional<Answer>>();
};
using AwaitedJoin = Awaited<JoinAnswer>;
using AwaitedSync = Awaited<SyncAnswer>;

class GroupTest : public ::testing::Test {
 protected:
  static JoinRequest request(std::string member = "", std::vector<metadata::GroupProtocol> protocols = {}) {
    JoinRequest join;
    join.group = "g";
    join.member = std::move(member);
    join.client_id = "c";
    join.client_host = "/h";
    join.session_timeout_ms = 10'000;
    join.rebalance_timeout_ms = 30'000;
    join.protocol_type = "consumer";
    join.protocols = protocols.empty() ? std::vector<metadata::GroupProtocol>{{"range", "m"}} : protocols;
    return join;
  }
  static JoinRequest static_request(std::string instance, std::string member = "") {
    JoinRequest join = request(std::move(member));
    join.instance = std::move(instance);
    return join;
  }

  AwaitedJoin join(JoinRequest join) {
    if (join.member.empty()) join.fresh_id = "m" + std::to_string(++ids_);
    AwaitedJoin awaited;
    group_.join(std::move(join), awaited.reply(), now_);
    send();
    return awaited;
  }
  AwaitedSync sync(const std::string& member,
                   std::vector<std::pair<std::string, std::string>> assignments = {},
                   std::optional<int32_t> generation = std::nullopt) {
    return sync(MemberName{member, std::nullopt}, std::move(assignments), generation);
  }
  AwaitedSync sync(MemberName member, std::vector<std::pair<std::string, std::string>> assignments = {},
                   std::optional<int32_t> generation = std::nullopt) {
    SyncRequest request;
    request.group = "g";
    request.member = std::move(member);
    request.generation = generation.value_or(group_.generation());
    request.assignments = std::move(assignments);
    AwaitedSync awaited;
    group_.sync(std::move(request), awaited.reply(), now_);
    send();
    return awaited;
  }
  GroupErrc heartbeat(const std::string& member, std::optional<int32_t> generation = std::nullopt) {
    GroupErrc error =
        group_.heartbeat({member, std::nullopt}, generation.value_or(group_.generation()), now_);
    send();
    return error;
  }
  std::vector<GroupErrc> leave(std::vector<MemberName> members) {
    auto errors = group_.leave(members, now_);
    send();
    return errors;
  }
  // Lets the group do what is due, when it is due.
  void pass(Duration span) {
    MonotonicTime end = now_ + span;
    while (group_.next_due() <= end) {
      now_ = std::max(now_, group_.next_due());
      group_.advance(now_);
      send();
    }
    now_ = end;
  }
  // The same, with a heartbeat of each of them every second.
  void pass_alive(Duration span, const std::vector<std::string>& members) {
    for (Duration at = 0s; at < span; at += 1s) {
      pass(1s);
      for (const std::string& member : members) heartbeat(member);
    }
  }
  // A stable group of so many members, m1 its leader; each is assigned its own id.
  std::vector<std::string> stable(size_t count) {
    std::vector<AwaitedJoin> joins;
    for (size_t i = 0; i < count; ++i) joins.push_back(join(request()));
    pass(config().initial_rebalance_delay * 3);
    std::vector<std::string> ids;
    std::vector<std::pair<std::string, std::string>> assignments;
    for (auto& one : joins) {
      ids.push_back(one.get().member);
      assignments.emplace_back(one.get().member, one.get().member);
    }
    sync(group_.leader(), assignments);
    for (const std::string& id : ids) {
      sync(id);
      heartbeat(id);
    }
    EXPECT_EQ(group_.phase(), metadata::GroupPhase::kStable);
    return ids;
  }
  static GroupConfig config() { return {.members_max = 4, .pending_max = 3, .member_bytes_max = 1000}; }
  void send() {
    for (Group::Answer& answer : group_.take_answers()) {
      std::visit([](auto& one) { one.first(std::move(one.second)); }, answer);
    }
  }

  MonotonicTime now_{1000s};
  int ids_ = 0;
  Group group_{"g", config()};
};

}  // namespace varve::broker
