#include "broker/group/group_save.h"

#include "broker/group/group_testing.h"
#include "metadata/state/state_testing.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;

class GroupSaveTest : public GroupTest {
 protected:
  // Saves until all is stored; the number of entries it took.
  size_t save(size_t bytes_max = 1000) {
    size_t entries = 1;
    while (!save_step(bytes_max)) ++entries;
    return entries;
  }
  // False: more has to follow.
  bool save_step(size_t bytes_max = 1000) {
    SaveStep step = next_save(group_, log_.state.find_group("g"), bytes_max);
    last_ = step.command;
    EXPECT_EQ(log_.propose(broker_, step.command).verdict, metadata::CommandVerdict::kDone);
    return step.is_complete;
  }
  const metadata::GroupView& stored() const { return *log_.state.find_group("g"); }
  // What the next owner makes of it.
  Group heir() const { return Group(stored(), config(), now_); }

  metadata::StateDriver log_;
  Incarnation broker_ = log_.register_broker(1);
  metadata::SaveGroup last_;
};

TEST_F(GroupSaveTest, ALoadedGroupGoesOnInItsGeneration) {
  auto ids = stable(3);
  save();
  group_ = heir();
  EXPECT_EQ(group_.phase(), GroupPhase::kStable);
  for (const std::string& id : ids) {
    EXPECT_EQ(heartbeat(id, 1), GroupErrc::kNone);
    EXPECT_EQ(sync(id).get().assignment, id);
  }
  EXPECT_EQ(group_.leader(), "m1");
  pass(10s);
  EXPECT_EQ(heartbeat("m1", 1), GroupErrc::kUnknownMember) << "sessions run again";
}

TEST_F(GroupSaveTest, AGroupThatWaitsForItsLeaderGoesOnWaiting) {
  join(request());
  join(request());
  pass(10s);
  save();
  group_ = heir();
  AwaitedSync follower = sync("m2");
  EXPECT_FALSE(follower.has_come());
  sync("m1", {{"m2", "b"}});
  EXPECT_EQ(follower.get().assignment, "b");
}

TEST_F(GroupSaveTest, AGroupThatWaitsForItsMembersBeginsTheRebalanceAnew) {
  auto ids = stable(2);
  leave({{"m2", std::nullopt}});
  save();
  EXPECT_EQ(stored().phase, GroupPhase::kPreparingRebalance);
  group_ = heir();
  EXPECT_EQ(heartbeat("m1", 1), GroupErrc::kRebalanceInProgress);
  EXPECT_EQ(join(request("m1")).get().generation, 2);
}

TEST_F(GroupSaveTest, OnlyWhatChangedIsInTheEntry) {
  auto ids = stable(2);
  save();
  EXPECT_TRUE(last_.members.at(0).details);
  save();
  EXPECT_FALSE(last_.members.at(0).details);
  EXPECT_FALSE(last_.members.at(0).assignment);
  join(request("m1", {{"range", "changed"}}));
  join(request("m2"));
  save();
  EXPECT_TRUE(last_.members.at(0).details);
  EXPECT_FALSE(last_.members.at(1).details);
  EXPECT_EQ(stored().generation, 2);
}

TEST_F(GroupSaveTest, MembersInTheirFirstJoinAreNotStored) {
  auto ids = stable(1);
  save();
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  join(dynamic);
  join(request());
  save();
  EXPECT_EQ(stored().members.size(), 1u);
  leave({{"m1", std::nullopt}});
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance) << "an id is given out";
  save();
  EXPECT_EQ(stored().phase, GroupPhase::kEmpty) << "nobody has been told that he is a member";
}

TEST_F(GroupSaveTest, WhoFindsAStableGroupHalfSavedBeginsItsRebalance) {
  auto named = [&](const char* instance) {
    JoinRequest one = static_request(instance);
    one.protocols = {{"range", std::string(600, 'm')}};
    return one;
  };
  join(named("a"));
  join(named("b"));
  pass(10s);
  save();
  sync(MemberName{"m1", "a"}, {{"m1", "x"}, {"m2", "y"}});
  sync(MemberName{"m2", "b"});
  save();
  ASSERT_EQ(stored().phase, GroupPhase::kStable);
  // Both start again before either is stored. Nobody owes the group a sync.
  join(named("a"));
  join(named("b"));
  ASSERT_EQ(group_.phase(), GroupPhase::kStable);
  EXPECT_FALSE(save_step());
  Group next = heir();
  EXPECT_EQ(next.phase(), GroupPhase::kPreparingRebalance);
  EXPECT_EQ(next.heartbeat({"m3", "a"}, 1, now_), GroupErrc::kRebalanceInProgress);
  EXPECT_EQ(save(), 1u);
  EXPECT_EQ(stored().phase, GroupPhase::kStable);
  EXPECT_EQ(stored().members.size(), 2u);
}

TEST_F(GroupSaveTest, WhatAMemberBringsAndWhatItIsGivenMayGoInTwoSteps) {
  JoinRequest one = static_request("a");
  one.protocols = {{"range", std::string(800, 'm')}};
  join(one);
  pass(10s);
  save();
  sync(MemberName{"m1", "a"}, {{"m1", std::string(900, 'x')}});
  save();
  join(one);
  SaveStep step = next_save(group_, &stored(), 1000);
  EXPECT_TRUE(step.command.members.at(0).details);
  EXPECT_FALSE(step.command.members.at(0).assignment);
  EXPECT_EQ(save(), 2u);
  EXPECT_EQ(stored().members.at("m2").assignment, std::string(900, 'x'));
  EXPECT_EQ(stored().phase, GroupPhase::kStable);
}

TEST_F(GroupSaveTest, AGroupLargerThanAnEntryIsStoredInSteps) {
  for (int i = 0; i < 4; ++i) join(request("", {{"range", std::string(400, static_cast<char>('a' + i))}}));
  pass(10s);
  ASSERT_EQ(group_.generation(), 1);
  SaveStep first = next_save(group_, nullptr, 1000);
  EXPECT_FALSE(first.is_complete);
  EXPECT_EQ(first.command.phase, GroupPhase::kPreparingRebalance);
  EXPECT_EQ(save(), 2u);
  EXPECT_EQ(stored().phase, GroupPhase::kCompletingRebalance);
  EXPECT_EQ(stored().members.size(), 4u);
  std::vector<std::pair<std::string, std::string>> assignments;
  for (int i = 1; i <= 4; ++i) assignments.emplace_back("m" + std::to_string(i), std::string(900, 'x'));
  sync("m1", assignments);
  first = next_save(group_, &stored(), 1000);
  EXPECT_EQ(first.command.phase, GroupPhase::kCompletingRebalance);
  EXPECT_EQ(save(), 4u);
  EXPECT_EQ(stored().phase, GroupPhase::kStable);
  EXPECT_EQ(stored().members.at("m4").assignment, std::string(900, 'x'));
  EXPECT_EQ(save(), 1u);
}

}  // namespace
}  // namespace varve::broker
