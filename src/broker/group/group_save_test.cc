#include "broker/group/group_save.h"

#include "broker/group/group_testing.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;
using metadata::GroupView;

// What apply does with it, for a group that is there.
void apply(const metadata::SaveGroup& command, GroupView& view) {
  view.version += 1;
  view.protocol_type = command.protocol_type;
  view.phase = command.phase;
  view.generation = command.generation;
  view.protocol = command.protocol;
  view.leader = command.leader;
  std::map<std::string, metadata::GroupMember> members;
  for (const metadata::SavedMember& saved : command.members) {
    auto known = view.members.find(saved.id);
    ASSERT_TRUE(saved.details || known != view.members.end());
    metadata::GroupMember& member = members[saved.id];
    if (known != view.members.end()) member = known->second;
    if (saved.details) member.details = *saved.details;
    if (saved.assignment) member.assignment = *saved.assignment;
  }
  view.members = std::move(members);
}

class GroupSaveTest : public GroupTest {
 protected:
  GroupSaveTest() { view_.id = "g"; }
  // Saves until all is stored; the number of entries it took.
  size_t save(size_t bytes_max = 1000) {
    for (size_t entries = 1;; ++entries) {
      SaveStep step = next_save(group_, view_.version == 0 ? nullptr : &view_, bytes_max);
      last_ = step.command;
      apply(step.command, view_);
      if (step.is_complete) return entries;
    }
  }

  GroupView view_;
  metadata::SaveGroup last_;
};

TEST_F(GroupSaveTest, ALoadedGroupGoesOnInItsGeneration) {
  auto ids = stable(3);
  save();
  group_ = Group(view_, config(), now_);
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
  group_ = Group(view_, config(), now_);
  AwaitedSync follower = sync("m2");
  EXPECT_FALSE(follower.has_come());
  sync("m1", {{"m2", "b"}});
  EXPECT_EQ(follower.get().assignment, "b");
}

TEST_F(GroupSaveTest, AGroupThatWaitsForItsMembersBeginsTheRebalanceAnew) {
  auto ids = stable(2);
  leave({{"m2", std::nullopt}});
  save();
  EXPECT_EQ(view_.phase, GroupPhase::kPreparingRebalance);
  group_ = Group(view_, config(), now_);
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
  EXPECT_EQ(view_.generation, 2);
}

TEST_F(GroupSaveTest, MembersInTheirFirstJoinAreNotStored) {
  auto ids = stable(1);
  save();
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  join(dynamic);
  join(request());
  save();
  EXPECT_EQ(view_.members.size(), 1u);
  leave({{"m1", std::nullopt}});
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance) << "an id is given out";
  save();
  EXPECT_EQ(view_.phase, GroupPhase::kEmpty) << "nobody has been told that he is a member";
}

TEST_F(GroupSaveTest, AGroupLargerThanAnEntryIsStoredInSteps) {
  for (int i = 0; i < 4; ++i) join(request("", {{"range", std::string(400, static_cast<char>('a' + i))}}));
  pass(10s);
  ASSERT_EQ(group_.generation(), 1);
  SaveStep first = next_save(group_, nullptr, 1000);
  EXPECT_FALSE(first.is_complete);
  EXPECT_EQ(first.command.phase, GroupPhase::kPreparingRebalance);
  EXPECT_EQ(save(), 2u);
  EXPECT_EQ(view_.phase, GroupPhase::kCompletingRebalance);
  EXPECT_EQ(view_.members.size(), 4u);
  std::vector<std::pair<std::string, std::string>> assignments;
  for (int i = 1; i <= 4; ++i) assignments.emplace_back("m" + std::to_string(i), std::string(900, 'x'));
  sync("m1", assignments);
  first = next_save(group_, &view_, 1000);
  EXPECT_EQ(first.command.phase, GroupPhase::kCompletingRebalance);
  EXPECT_EQ(save(), 4u);
  EXPECT_EQ(view_.phase, GroupPhase::kStable);
  EXPECT_EQ(view_.members.at("m4").assignment, std::string(900, 'x'));
  EXPECT_EQ(save(), 1u);
}

}  // namespace
}  // namespace varve::broker
