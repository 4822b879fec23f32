#include "sim/checkers/group_causes.h"

#include <gtest/gtest.h>

namespace varve::sim {
namespace {

using client::GroupIdentity;
using protocol::ApiKey;
using protocol::ErrorCode;

class GroupCausesTest : public ::testing::Test {
 protected:
  static constexpr Duration kSession = 10s;
  static constexpr Duration kRebalance = 5s;

  GroupCausesTest() {
    causes_.add("g", kSession, kRebalance);
    causes_.asks("g", ApiKey::kJoinGroup, GroupIdentity{});
    saved(1, {"a", "b"});
    for (const char* member : {"a", "b"}) answered(ApiKey::kSyncGroup, member, 1);
  }
  void wait(Duration span) {
    bool is_over = false;
    world_.after(span, [&] { is_over = true; });
    world_.run_until([&] { return is_over; });
  }
  // Long enough for every cause of before to be forgotten, while both are heard of.
  void live_on(std::vector<std::string> members = {"a", "b"}) {
    for (int i = 0; i < 60; ++i) {
      wait(1s);
      for (const std::string& member : members) answered(ApiKey::kHeartbeat, member, generation_);
    }
  }
  void answered(ApiKey api, const std::string& member, int32_t generation,
                std::optional<ErrorCode> error = ErrorCode::kNone) {
    GroupIdentity who{.member_id = member, .instance_id = std::nullopt, .generation = generation};
    causes_.answered("g", {.api = api, .who = who, .sent_at = world_.now(), .error = error});
  }
  void saved(int32_t generation, const std::vector<std::string>& members) {
    metadata::GroupView view;
    view.id = "g";
    view.generation = generation_ = generation;
    for (const std::string& member : members) view.members[member];
    causes_.saved(view, world_.now());
  }

  World world_{{.seed = 1}};
  Findings findings_;
  GroupCauses causes_{world_, findings_};
  int32_t generation_ = 0;
};

TEST_F(GroupCausesTest, ANewcomerOrSomebodyWhoLeavesIsACause) {
  live_on();
  saved(2, {"a", "b", "c"});
  causes_.asks("g", ApiKey::kLeaveGroup, {.member_id = "b", .instance_id = std::nullopt, .generation = 2});
  saved(2, {"a", "c"});
  saved(3, {"a", "c"});
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
}

TEST_F(GroupCausesTest, AGenerationOfTheSameMembersWithoutACauseIsAFinding) {
  live_on();
  saved(2, {"a", "b"});  // it began by what is long past, for all that is known
  live_on();
  saved(3, {"a", "b"});
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupCausesTest, OneThatAskedForItOrHadToAskAgainIsACause) {
  live_on();
  causes_.wants_rebalance("g");
  saved(2, {"a", "b"});
  live_on();
  answered(ApiKey::kJoinGroup, "a", 2, std::nullopt);
  saved(3, {"a", "b"});
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
}

TEST_F(GroupCausesTest, AMemberThatIsHeardOfIsNotLost) {
  live_on();
  saved(1, {"a"});
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupCausesTest, AMemberThatIsSilentForItsSessionIsLost) {
  live_on();
  for (int i = 0; i < 11; ++i) {
    wait(1s);
    answered(ApiKey::kHeartbeat, "a", 1);
  }
  saved(1, {"a"});
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
}

TEST_F(GroupCausesTest, AMemberMayBeLostThatDoesNotJoinForAsLongAsARebalanceWaits) {
  live_on();
  for (int i = 0; i < 6; ++i) {
    wait(1s);
    for (const char* member : {"a", "b"}) {
      answered(ApiKey::kHeartbeat, member, 1, ErrorCode::kRebalanceInProgress);
    }
  }
  saved(2, {"a"});
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
}

}  // namespace
}  // namespace varve::sim
