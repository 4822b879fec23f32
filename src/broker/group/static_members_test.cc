// Static members (KIP-345, KIP-814).
#include "broker/group/group_testing.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;

class StaticMembersTest : public GroupTest {
 protected:
  // Two static members, "a" (m1, the leader) and "b" (m2).
  StaticMembersTest() {
    join(static_request("a"));
    join(static_request("b"));
    pass(10s);
    sync("m1", {{"m1", "for a"}, {"m2", "for b"}});
    sync("m2");
    EXPECT_EQ(group_.phase(), GroupPhase::kStable);
  }
};

TEST_F(StaticMembersTest, OneThatStartsAgainKeepsItsPlaceWithoutARebalance) {
  AwaitedJoin again = join(static_request("b"));
  EXPECT_EQ(again.get().error, GroupErrc::kNone);
  EXPECT_EQ(again.get().member, "m3");
  EXPECT_EQ(again.get().generation, 1);
  EXPECT_EQ(group_.phase(), GroupPhase::kStable);
  EXPECT_EQ(sync("m3").get().assignment, "for b");
  EXPECT_EQ(group_.heartbeat({"m2", "b"}, 1, now_), GroupErrc::kFencedInstance);
  EXPECT_EQ(group_.heartbeat({"m3", "b"}, 1, now_), GroupErrc::kNone);
  EXPECT_EQ(join(static_request("b", "m2")).get().error, GroupErrc::kFencedInstance);
}

TEST_F(StaticMembersTest, ALeaderThatStartsAgainDoesNotAssignAnew) {
  JoinRequest modern = static_request("a");
  modern.can_skip_assignment = true;
  AwaitedJoin again = join(modern);
  EXPECT_EQ(again.get().leader, again.get().member);
  EXPECT_TRUE(again.get().skip_assignment);
  EXPECT_EQ(again.get().members.size(), 2u);
  AwaitedJoin old = join(static_request("a"));
  EXPECT_EQ(old.get().leader, again.get().member) << "an old client must not take itself for the leader";
  EXPECT_FALSE(old.get().skip_assignment);
  EXPECT_TRUE(old.get().members.empty());
  EXPECT_EQ(group_.phase(), GroupPhase::kStable);
}

TEST_F(StaticMembersTest, AnotherProtocolNeedsARebalance) {
  JoinRequest changed = static_request("b");
  changed.protocols = {{"sticky", "s"}, {"range", "m"}};
  AwaitedJoin again = join(changed);
  EXPECT_TRUE(again.has_come()) << "range is still the only one in common";
  JoinRequest with_both = static_request("a", "m1");
  with_both.protocols = {{"sticky", "s"}, {"range", "m"}};
  AwaitedJoin leader = join(with_both);
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance);
  AwaitedJoin third = join(static_request("b"));
  EXPECT_EQ(third.get().protocol, "range");
}

TEST_F(StaticMembersTest, OneThatStartsAgainDuringTheSyncForcesANewGeneration) {
  join(static_request("a", "m1"));
  join(static_request("b", "m2"));
  ASSERT_EQ(group_.phase(), GroupPhase::kCompletingRebalance);
  AwaitedSync waiting = sync(MemberName{"m2", "b"});
  AwaitedJoin again = join(static_request("b"));
  EXPECT_EQ(waiting.get().error, GroupErrc::kFencedInstance);
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance);
  join(static_request("a", "m1"));
  EXPECT_EQ(again.get().generation, 3);
}

TEST_F(StaticMembersTest, TheOldOneThatWaitsInAJoinIsFenced) {
  AwaitedJoin old = join(static_request("a", "m1"));
  EXPECT_FALSE(old.has_come());
  AwaitedJoin again = join(static_request("a"));
  EXPECT_EQ(old.get().error, GroupErrc::kFencedInstance);
  EXPECT_EQ(old.get().member, "m1");
}

TEST_F(StaticMembersTest, OneThatDoesNotComeBackIsAMemberOfTheNextGenerationAndGoesIfItDoesNotSync) {
  JoinRequest leader = static_request("a", "m1");
  leader.rebalance_timeout_ms = 5'000;
  JoinRequest late = static_request("b", "m2");
  late.rebalance_timeout_ms = 5'000;
  late.session_timeout_ms = 60'000;
  join(leader);
  join(late);
  sync("m1");
  sync(MemberName{"m2", "b"});
  AwaitedJoin joined = join(leader);
  pass(5s);
  EXPECT_EQ(joined.get().generation, 3);
  EXPECT_EQ(joined.get().members.size(), 2u);
  EXPECT_EQ(group_.heartbeat({"m2", "b"}, 3, now_), GroupErrc::kNone);
  sync(MemberName{"m1", "a"}, {{"m1", "all"}});
  pass(5s);
  EXPECT_EQ(group_.heartbeat({"m2", "b"}, 3, now_), GroupErrc::kUnknownMember)
      << "long before its session ends";
  EXPECT_EQ(group_.heartbeat({"m1", "a"}, 3, now_), GroupErrc::kRebalanceInProgress);
}

TEST_F(StaticMembersTest, WithoutARebalanceTimeoutTheAbsentDoNotKeepTheGroupBusy) {
  for (const char* instance : {"a", "b"}) {
    JoinRequest hasty = static_request(instance, std::string(instance) == "a" ? "m1" : "m2");
    hasty.rebalance_timeout_ms = 0;
    join(hasty);
  }
  sync(MemberName{"m1", "a"});
  sync(MemberName{"m2", "b"});
  leave({{"m2", "b"}});
  size_t looks = 0;
  for (MonotonicTime end = now_ + 5s; group_.next_due() <= end && looks < 100; ++looks) {
    now_ = std::max(now_, group_.next_due());
    group_.advance(now_);
    send();
  }
  EXPECT_LT(looks, 10u);
}

TEST_F(StaticMembersTest, AnAdministratorRemovesOneByItsInstance) {
  EXPECT_EQ(leave({{"", "b"}}), std::vector{GroupErrc::kNone});
  EXPECT_EQ(group_.heartbeat({"m2", "b"}, 1, now_), GroupErrc::kUnknownMember);
  EXPECT_EQ(leave({{"wrong", "a"}}), std::vector{GroupErrc::kFencedInstance});
}

TEST_F(StaticMembersTest, AnIdOfADynamicMemberIsNoneOfAStaticOne) {
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  std::string id = join(dynamic).get().member;
  EXPECT_EQ(join(static_request("c", id)).get().error, GroupErrc::kUnknownServerError);
}

}  // namespace
}  // namespace varve::broker
