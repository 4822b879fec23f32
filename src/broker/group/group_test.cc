#include <gmock/gmock.h>

#include "broker/group/group_testing.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;
using ::testing::ElementsAre;

TEST_F(GroupTest, TheFirstMemberWaitsForOthersForTheInitialDelay) {
  AwaitedJoin first = join(request());
  pass(2'999ms);
  EXPECT_FALSE(first.has_come());
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance);
  pass(1ms);
  EXPECT_EQ(first.get().error, GroupErrc::kNone);
  EXPECT_EQ(first.get().generation, 1);
  EXPECT_EQ(first.get().leader, first.get().member);
  EXPECT_THAT(first.get().members, ElementsAre(JoinedMember{"m1", std::nullopt, "m"}));
  EXPECT_EQ(group_.phase(), GroupPhase::kCompletingRebalance);
}

TEST_F(GroupTest, NewcomersExtendTheInitialDelayUpToTheRebalanceTimeout) {
  JoinRequest hasty = request();
  hasty.rebalance_timeout_ms = 7'000;
  AwaitedJoin first = join(hasty);
  pass(2s);
  AwaitedJoin second = join(hasty);
  pass(2s);
  EXPECT_FALSE(first.has_come());
  AwaitedJoin third = join(hasty);
  pass(1'999ms);
  EXPECT_FALSE(first.has_come());
  AwaitedJoin fourth = join(hasty);
  pass(1'001ms);
  EXPECT_TRUE(first.has_come());
  EXPECT_EQ(fourth.get().generation, 1);
  EXPECT_EQ(first.get().members.size(), 4u);
  EXPECT_TRUE(second.get().members.empty());
  EXPECT_TRUE(third.has_come());
}

TEST_F(GroupTest, C064AnIdIsGivenOutAndHasToComeBack) {
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  AwaitedJoin given = join(dynamic);
  EXPECT_EQ(given.get().error, GroupErrc::kMemberIdRequired);
  EXPECT_EQ(given.get().member, "m1");
  EXPECT_EQ(group_.phase(), GroupPhase::kEmpty);
  AwaitedJoin back = join(request("m1"));
  pass(3s);
  EXPECT_EQ(back.get().error, GroupErrc::kNone);
  EXPECT_EQ(back.get().member, "m1");
  EXPECT_EQ(join(request("invented")).get().error, GroupErrc::kUnknownMember);
  JoinRequest fixed = static_request("i");
  fixed.needs_known_id = true;
  EXPECT_FALSE(join(fixed).has_come()) << "a static member joins at once";
}

TEST_F(GroupTest, C064AnIdThatDoesNotComeBackLapsesWithTheSession) {
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  join(dynamic);
  pass(9'999ms);
  EXPECT_EQ(group_.pending_count(), 1u);
  pass(1ms);
  EXPECT_EQ(group_.pending_count(), 0u);
  EXPECT_TRUE(group_.is_idle());
  EXPECT_EQ(join(request("m1")).get().error, GroupErrc::kUnknownMember);
}

TEST_F(GroupTest, IdsGivenOutAreBounded) {
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(join(dynamic).get().error, GroupErrc::kMemberIdRequired);
  EXPECT_EQ(join(dynamic).get().error, GroupErrc::kCoordinatorNotAvailable);
}

TEST_F(GroupTest, AMemberWithAnotherProtocolIsInconsistent) {
  EXPECT_EQ(join(request("", {{"", ""}})).has_come(), false) << "any name will do";
  JoinRequest other = request("", {{"sticky", "m"}});
  EXPECT_EQ(join(other).get().error, GroupErrc::kInconsistentProtocol);
  JoinRequest connect = request();
  connect.protocol_type = "connect";
  EXPECT_EQ(join(connect).get().error, GroupErrc::kInconsistentProtocol);
  Group fresh("f", config());
  for (JoinRequest bad : {request(), request()}) {
    static bool has_type = true;
    if (has_type) bad.protocols.clear();
    if (!has_type) bad.protocol_type.clear();
    has_type = false;
    AwaitedJoin awaited;
    fresh.join(bad, awaited.reply(), now_);
    for (Group::Answer& answer : fresh.take_answers()) {
      std::visit([](auto& one) { one.first(std::move(one.second)); }, answer);
    }
    EXPECT_EQ(awaited.get().error, GroupErrc::kInconsistentProtocol);
  }
}

TEST_F(GroupTest, TheProtocolThatMostMembersLikeIsChosen) {
  AwaitedJoin a = join(request("", {{"x", "xa"}, {"y", "ya"}, {"z", "za"}}));
  AwaitedJoin b = join(request("", {{"y", "yb"}, {"x", "xb"}}));
  AwaitedJoin c = join(request("", {{"z", "zc"}, {"y", "yc"}, {"x", "xc"}}));
  pass(10s);
  EXPECT_EQ(a.get().protocol, "y") << "x has one vote, y two";
  EXPECT_THAT(a.get().members,
              ElementsAre(JoinedMember{"m1", std::nullopt, "ya"}, JoinedMember{"m2", std::nullopt, "yb"},
                          JoinedMember{"m3", std::nullopt, "yc"}));
}

TEST_F(GroupTest, C011FollowersWaitForTheLeadersAssignmentAndGetItsBytes) {
  AwaitedJoin leader = join(request());
  AwaitedJoin follower = join(request());
  AwaitedJoin left_out = join(request());
  pass(10s);
  AwaitedSync early = sync("m2");
  EXPECT_FALSE(early.has_come());
  std::string bytes("\0\xFF anything", 11);
  AwaitedSync own = sync("m1", {{"m1", "old"}, {"m2", bytes}, {"nobody", "x"}, {"m1", "own"}});
  EXPECT_EQ(own.get().assignment, "own") << "the last of two counts";
  EXPECT_EQ(early.get().error, GroupErrc::kNone);
  EXPECT_EQ(early.get().assignment, bytes);
  EXPECT_EQ(early.get().protocol, "range");
  AwaitedSync late = sync("m3");
  EXPECT_EQ(late.get().error, GroupErrc::kNone);
  EXPECT_EQ(late.get().assignment, "");
  EXPECT_EQ(sync("m2").get().assignment, bytes) << "a stable group gives it again";
}

TEST_F(GroupTest, SyncChecksMemberGenerationAndProtocolInThatOrder) {
  auto ids = stable(2);
  EXPECT_EQ(sync("nobody", {}, 99).get().error, GroupErrc::kUnknownMember);
  EXPECT_EQ(sync("m1", {}, 99).get().error, GroupErrc::kIllegalGeneration);
  SyncRequest other;
  other.member.id = "m1";
  other.generation = group_.generation();
  other.protocol = "sticky";
  AwaitedSync awaited;
  group_.sync(other, awaited.reply(), now_);
  send();
  EXPECT_EQ(awaited.get().error, GroupErrc::kInconsistentProtocol);
  join(request());
  EXPECT_EQ(sync("m1").get().error, GroupErrc::kRebalanceInProgress);
}

TEST_F(GroupTest, ANewMemberMakesTheOthersJoinAgain) {
  auto ids = stable(2);
  AwaitedJoin fresh = join(request());
  EXPECT_EQ(heartbeat("m1"), GroupErrc::kRebalanceInProgress);
  AwaitedJoin first = join(request("m1"));
  EXPECT_FALSE(first.has_come());
  AwaitedJoin second = join(request("m2"));
  EXPECT_EQ(first.get().generation, 2);
  EXPECT_EQ(first.get().leader, "m1") << "the leader stays";
  EXPECT_EQ(fresh.get().generation, 2);
  EXPECT_EQ(second.get().leader, "m1");
  EXPECT_EQ(heartbeat("m2", 1), GroupErrc::kIllegalGeneration);
  EXPECT_EQ(heartbeat("m2", 2), GroupErrc::kNone);
}

TEST_F(GroupTest, WhoDoesNotComeBackInTimeIsLeftBehind) {
  auto ids = stable(3);
  AwaitedJoin first = join(request("m1", {{"range", "changed"}}));
  for (int second = 0; second < 29; ++second) {
    pass(1s);
    EXPECT_EQ(heartbeat("m2"), GroupErrc::kRebalanceInProgress);
    EXPECT_EQ(heartbeat("m3"), GroupErrc::kRebalanceInProgress);
  }
  EXPECT_FALSE(first.has_come());
  AwaitedJoin third = join(request("m3"));
  pass(1s);
  EXPECT_EQ(first.get().generation, 2);
  EXPECT_TRUE(third.has_come());
  EXPECT_EQ(heartbeat("m2"), GroupErrc::kUnknownMember);
}

TEST_F(GroupTest, ALateLeaderLosesItsPlace) {
  auto ids = stable(2);
  join(request("m2", {{"range", "changed"}}));
  pass_alive(31s, {"m1"});
  EXPECT_EQ(group_.leader(), "m2");
  EXPECT_EQ(group_.members().size(), 1u);
}

TEST_F(GroupTest, AFollowerThatJoinsAlikeGetsThePresentGeneration) {
  auto ids = stable(2);
  AwaitedJoin follower = join(request("m2"));
  EXPECT_EQ(follower.get().generation, 1);
  EXPECT_TRUE(follower.get().members.empty());
  EXPECT_EQ(group_.phase(), GroupPhase::kStable);
  AwaitedJoin leader = join(request("m1"));
  EXPECT_FALSE(leader.has_come()) << "a leader that joins wants a rebalance";
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance);
}

TEST_F(GroupTest, WhoDidNotGetTheAnswerMayAskForItAgain) {
  join(request());
  join(request());
  pass(10s);
  AwaitedJoin leader = join(request("m1"));
  EXPECT_EQ(leader.get().generation, 1);
  EXPECT_EQ(leader.get().members.size(), 2u);
  EXPECT_TRUE(join(request("m2")).get().members.empty());
  EXPECT_EQ(group_.phase(), GroupPhase::kCompletingRebalance);
}

TEST_F(GroupTest, CooperativeMembersJoinTwiceAndKeepWhatTheyHave) {
  auto ids = stable(2);
  // The second rebalance of a cooperative one: each joins again with what it gave up.
  AwaitedJoin first = join(request("m1", {{"range", "owns less"}}));
  AwaitedJoin second = join(request("m2", {{"range", "owns less"}}));
  EXPECT_EQ(first.get().generation, 2);
  EXPECT_EQ(first.get().members.at(1).metadata, "owns less");
  AwaitedSync synced = sync("m2");
  sync("m1", {{"m1", "a"}, {"m2", "b"}});
  EXPECT_EQ(synced.get().assignment, "b");
  EXPECT_EQ(heartbeat("m1"), GroupErrc::kNone);
}

TEST_F(GroupTest, ARebalanceDuringTheSyncSendsTheWaitingBackToJoin) {
  join(request());
  join(request());
  pass(10s);
  AwaitedSync waiting = sync("m2");
  join(request());
  EXPECT_EQ(waiting.get().error, GroupErrc::kRebalanceInProgress);
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance);
}

TEST_F(GroupTest, WhoDoesNotAskForItsAssignmentIsRemoved) {
  join(request());
  join(request());
  pass(10s);
  sync("m1", {{"m1", "a"}, {"m2", "b"}});
  pass_alive(31s, {"m1", "m2"});
  EXPECT_EQ(heartbeat("m2"), GroupErrc::kUnknownMember);
  EXPECT_EQ(heartbeat("m1"), GroupErrc::kRebalanceInProgress);
}

TEST_F(GroupTest, AMemberWithoutHeartbeatsIsRemoved) {
  auto ids = stable(2);
  pass_alive(9s, {"m1"});
  EXPECT_EQ(heartbeat("m1"), GroupErrc::kNone);
  pass_alive(2s, {"m1"});
  EXPECT_EQ(heartbeat("m2"), GroupErrc::kUnknownMember);
  EXPECT_EQ(heartbeat("m1"), GroupErrc::kRebalanceInProgress);
}

TEST_F(GroupTest, C067WhoWaitsInAJoinIsNotRemovedByItsSession) {
  auto ids = stable(2);
  AwaitedJoin fresh = join(request());
  AwaitedJoin back = join(request("m2"));
  pass_alive(25s, {"m1"});
  EXPECT_FALSE(back.has_come());
  join(request("m1"));
  EXPECT_EQ(back.get().error, GroupErrc::kNone);
  EXPECT_EQ(fresh.get().error, GroupErrc::kNone);
}

TEST_F(GroupTest, WhoAsksForItsAssignmentAgainIsHeard) {
  stable(1);
  for (int i = 0; i < 3; ++i) {
    pass(9s);
    EXPECT_EQ(sync("m1").get().error, GroupErrc::kNone);
  }
}

TEST_F(GroupTest, C067WhoWaitsInASyncIsNotRemovedByItsSession) {
  JoinRequest slow = request();
  slow.rebalance_timeout_ms = 300'000;
  join(slow);
  join(slow);
  pass(10s);
  AwaitedSync waiting = sync("m2");
  pass_alive(60s, {"m1"});
  EXPECT_FALSE(waiting.has_come());
  sync("m1", {{"m2", "b"}});
  EXPECT_EQ(waiting.get().assignment, "b");
  pass_alive(11s, {"m1"});
  EXPECT_EQ(heartbeat("m2"), GroupErrc::kUnknownMember) << "then its session runs again";
}

TEST_F(GroupTest, C067ANewMemberThatWaitsIsDroppedAfterFiveMinutes) {
  auto ids = stable(1);
  JoinRequest slow = request("m1", {{"range", "changed"}});
  JoinRequest patient = request();
  patient.rebalance_timeout_ms = 900'000;
  AwaitedJoin fresh = join(patient);
  pass_alive(299s, {"m1"});
  EXPECT_FALSE(fresh.has_come());
  pass_alive(2s, {"m1"});
  EXPECT_EQ(fresh.get().error, GroupErrc::kUnknownMember);
}

TEST_F(GroupTest, C067WithOnlyAnIdGivenOutTheGroupBecomesEmpty) {
  auto ids = stable(1);
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  dynamic.session_timeout_ms = 60'000;
  join(dynamic);
  pass(10s);
  EXPECT_EQ(group_.phase(), GroupPhase::kEmpty);
  EXPECT_EQ(group_.generation(), 2);
  EXPECT_EQ(group_.protocol_type(), "consumer");
  EXPECT_FALSE(group_.protocol());
  pass(60s);
  EXPECT_TRUE(group_.is_idle());
}

TEST_F(GroupTest, LeaveAnswersForEachMember) {
  auto ids = stable(3);
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  std::string pending = join(dynamic).get().member;
  EXPECT_THAT(leave({{"m2", std::nullopt},
                     {"nobody", std::nullopt},
                     {"m2", std::nullopt},
                     {"", "i"},
                     {"", std::nullopt},
                     {"m1", "i"},
                     {pending, std::nullopt}}),
              ElementsAre(GroupErrc::kNone, GroupErrc::kUnknownMember, GroupErrc::kUnknownMember,
                          GroupErrc::kUnknownMember, GroupErrc::kUnknownMember, GroupErrc::kUnknownMember,
                          GroupErrc::kNone));
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance);
  leave({{"m1", std::nullopt}, {"m3", std::nullopt}});
  EXPECT_EQ(group_.phase(), GroupPhase::kEmpty);
  EXPECT_EQ(group_.generation(), 2);
}

TEST_F(GroupTest, AMemberThatLeavesWhileItWaitsGetsAnAnswer) {
  auto ids = stable(2);
  AwaitedJoin waiting = join(request("m2", {{"range", "changed"}}));
  leave({{"m2", std::nullopt}});
  EXPECT_EQ(waiting.get().error, GroupErrc::kUnknownMember);
}

TEST_F(GroupTest, TooManyMembersAreTurnedAway) {
  auto ids = stable(4);
  EXPECT_EQ(join(request()).get().error, GroupErrc::kGroupMaxSizeReached);
  EXPECT_EQ(heartbeat("m1"), GroupErrc::kNone) << "nobody had to rebalance";
}

TEST_F(GroupTest, WhatDoesNotFitIntoTheLogIsRefusedAndNothingHangs) {
  EXPECT_EQ(join(request("", {{"range", std::string(1001, 'x')}})).get().error,
            GroupErrc::kUnknownServerError);
  join(request());
  join(request());
  pass(10s);
  AwaitedSync follower = sync("m3");
  AwaitedSync leader = sync("m2", {{"m3", std::string(1001, 'x')}});
  EXPECT_EQ(leader.get().error, GroupErrc::kUnknownServerError);
  EXPECT_EQ(follower.get().error, GroupErrc::kUnknownServerError);
  EXPECT_EQ(group_.phase(), GroupPhase::kPreparingRebalance);
}

TEST_F(GroupTest, OffsetsMayBeCommittedByMembersOrIntoAnEmptyGroup) {
  EXPECT_EQ(check_commit(&group_, true, {}, -1), GroupErrc::kNone);
  EXPECT_EQ(check_commit(&group_, true, {"m1", std::nullopt}, 1), GroupErrc::kUnknownMember);
  auto ids = stable(2);
  EXPECT_EQ(check_commit(&group_, true, {}, -1), GroupErrc::kUnknownMember);
  EXPECT_EQ(check_commit(&group_, true, {"m1", std::nullopt}, -1), GroupErrc::kIllegalGeneration);
  EXPECT_EQ(check_commit(&group_, true, {"m1", std::nullopt}, 1), GroupErrc::kNone);
  EXPECT_EQ(check_commit(&group_, true, {"m1", "i"}, 1), GroupErrc::kUnknownMember);
  join(request());
  EXPECT_EQ(check_commit(&group_, true, {"m1", std::nullopt}, 1), GroupErrc::kNone)
      << "what it has done before";
  join(request("m1"));
  join(request("m2"));
  EXPECT_EQ(group_.phase(), GroupPhase::kCompletingRebalance);
  EXPECT_EQ(check_commit(&group_, true, {"m1", std::nullopt}, 2), GroupErrc::kRebalanceInProgress);
}

TEST_F(GroupTest, ACommitIsAsGoodAsAHeartbeat) {
  auto ids = stable(1);
  pass(9s);
  group_.committed({"m1", std::nullopt}, now_);
  pass(9s);
  EXPECT_EQ(heartbeat("m1"), GroupErrc::kNone);
}

TEST_F(GroupTest, TimeThatDoesNotCountLeavesWholeSessions) {
  auto ids = stable(2);
  now_ = now_ + 100s;
  group_.restart_deadlines(now_);
  group_.advance(now_);
  pass(9s);
  EXPECT_EQ(heartbeat("m1"), GroupErrc::kNone);
  EXPECT_EQ(heartbeat("m2"), GroupErrc::kNone);
}

TEST_F(GroupTest, EveryChangeThatHasToSurviveRaisesTheRevision) {
  uint64_t before = group_.revision();
  auto raised = [&] { return std::exchange(before, group_.revision()) != before; };
  auto ids = stable(2);
  EXPECT_TRUE(raised());
  heartbeat("m1");
  group_.committed({"m1", std::nullopt}, now_);
  join(request("m2"));
  EXPECT_FALSE(raised());
  join(request("m2", {{"range", "changed"}}));
  EXPECT_FALSE(raised()) << "nobody has been told of anything";
  leave({{"m2", std::nullopt}});
  EXPECT_TRUE(raised());
  pass(10s);
  EXPECT_EQ(group_.phase(), GroupPhase::kEmpty);
  EXPECT_TRUE(raised());
}

TEST_F(GroupTest, ItsMemoryIsCountedAndGivenBack) {
  EXPECT_EQ(group_.bytes(), 0u);
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  std::string id = join(dynamic).get().member;
  EXPECT_EQ(group_.bytes(), Group::kBytesEach + id.size());
  join(request(id, {{"range", std::string(500, 'x')}}));
  EXPECT_GT(group_.bytes(), 500u);
  pass(10s);
  sync(id, {{id, std::string(700, 'y')}});
  EXPECT_GT(group_.bytes(), 1200u);
  EXPECT_LT(group_.bytes(), 2000u);
  join(request(id, {{"range", "small"}}));
  join(request(id, {{"range", "smaller"}}));
  EXPECT_LT(group_.bytes(), 1200u);
  join(dynamic);
  pass(60s);
  EXPECT_TRUE(group_.is_idle());
  EXPECT_EQ(group_.bytes(), 0u);
}

TEST_F(GroupTest, SubscribedTopicsAreReadFromConsumersOnly) {
  auto subscription = [](const std::string& topic) {
    std::string bytes("\0\1\0\0\0\1\0", 7);
    return bytes + static_cast<char>(topic.size()) + topic + "userdata";
  };
  EXPECT_EQ(group_.subscribed_topics(), std::nullopt);
  join(request("", {{"range", subscription("t")}}));
  join(request("", {{"range", subscription("u")}}));
  pass(10s);
  EXPECT_EQ(group_.subscribed_topics(), (std::set<std::string>{"t", "u"}));
  join(request("m1", {{"range", "garbage"}}));
  EXPECT_EQ(group_.subscribed_topics(), std::nullopt);
  pass(60s);
  ASSERT_EQ(group_.phase(), GroupPhase::kEmpty);
  EXPECT_EQ(group_.subscribed_topics(), std::set<std::string>());
}

}  // namespace
}  // namespace varve::broker
