// Consumer groups: who may change them, what a commit is judged by, and what outlives what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

using ::testing::ElementsAre;
using V = CommandVerdict;

class Groups : public ::testing::Test, public StateDriver {
 protected:
  Incarnation broker = register_broker(1);
  std::vector<PartitionHandle> partitions = create_topic(broker, "t", 3);

  static SavedMember member(std::string id, std::optional<std::string> instance = {}) {
    MemberDetails details{.instance_id = std::move(instance), .client_id = "app", .client_host = "/::1"};
    details.protocols = {{"range", std::string("\0x", 2)}};
    return {std::move(id), std::move(details), std::nullopt};
  }
  static SaveGroup group_of(std::vector<SavedMember> members, uint64_t version = 0) {
    return {.group = "g",
            .version = version,
            .protocol_type = "consumer",
            .phase = members.empty() ? GroupPhase::kEmpty : GroupPhase::kStable,
            .generation = 5,
            .protocol = "range",
            .leader = "a",
            .members = std::move(members)};
  }
  CommitOffsets commit_of(int32_t generation, std::string member, int64_t offset = 10) const {
    return {.group = "g",
            .generation = generation,
            .member = std::move(member),
            .offsets = {{partitions[0], offset, 2, "note"}}};
  }
  V verdict(Command command) { return propose(broker, std::move(command)).verdict; }
  const GroupView& group() const { return *state.find_group("g"); }
  void pass(int64_t ms) {
    time = time.plus(ms);
    propose(broker, Beat{});
  }
};

TEST_F(Groups, AreSavedWithEverythingThatTheirMembersSaid) {
  SaveGroup save = group_of({member("a", "i"), member("b")});
  save.members[0].assignment = std::string("\0\1", 2);
  CommandOutcome outcome = propose(broker, save);
  EXPECT_EQ(outcome.verdict, V::kDone);
  EXPECT_EQ(outcome.group_version, 1u);
  EXPECT_EQ(group().version, 1u);
  EXPECT_EQ(group().protocol_type, "consumer");
  EXPECT_EQ(group().phase, GroupPhase::kStable);
  EXPECT_EQ(group().generation, 5);
  EXPECT_EQ(group().protocol, "range");
  EXPECT_EQ(group().leader, "a");
  EXPECT_EQ(group().phase_since, state.log_time());
  ASSERT_EQ(group().members.size(), 2u);
  EXPECT_EQ(group().members.at("a").details, *save.members[0].details);
  EXPECT_EQ(group().members.at("a").assignment, std::string("\0\1", 2));
  EXPECT_EQ(group().members.at("b").assignment, "");
}

TEST_F(Groups, KeepWhatASaveDoesNotTellOfAMemberAndForgetWhomItDoesNotName) {
  SaveGroup save = group_of({member("a"), member("b")});
  save.members[0].assignment = "old";
  save.members[1].assignment = "other";
  propose(broker, save);
  verdict(commit_of(5, "a"));
  pass(1000);
  SaveGroup next = group_of({{"a", std::nullopt, std::nullopt}, {"b", std::nullopt, "new"}, member("c")}, 1);
  next.generation = 6;
  EXPECT_EQ(propose(broker, next).group_version, 2u);
  EXPECT_EQ(group().members.at("a").details, *save.members[0].details);
  EXPECT_EQ(group().members.at("a").assignment, "old");
  EXPECT_EQ(group().members.at("b").assignment, "new");
  EXPECT_LT(group().phase_since, state.log_time()) << "the phase is the same";
  EXPECT_EQ(propose(broker, group_of({}, 2)).group_version, 3u);
  EXPECT_TRUE(group().members.empty());
  EXPECT_EQ(group().phase_since, state.log_time());
  EXPECT_EQ(group().offsets.at(partitions[0]).offset, 10);
}

TEST_F(Groups, ThatContradictThemselvesAreRefused) {
  for (SaveGroup bad : {group_of({member("b"), member("a")}), group_of({member("a"), member("a")}),
                        group_of({{"a", std::nullopt, "x"}})}) {
    EXPECT_EQ(propose(broker, bad).detail, "bad_group");
  }
  SaveGroup full = group_of({member("a")});
  full.phase = GroupPhase::kEmpty;
  EXPECT_EQ(propose(broker, full).detail, "bad_group");
  SaveGroup named = group_of({});
  named.group = std::string(kGroupIdBytesMax + 1, 'x');
  EXPECT_EQ(propose(broker, named).detail, "bad_group");
  CommitOffsets commit = commit_of(-1, "");
  commit.group = named.group;
  EXPECT_EQ(propose(broker, commit).detail, "bad_group");
  EXPECT_TRUE(state.groups().empty());
  commit.group.pop_back();
  EXPECT_EQ(verdict(commit), V::kDone);
  commit.group = "";
  EXPECT_EQ(verdict(commit), V::kDone) << "any bytes are a name";
}

TEST_F(Groups, HaveAVersionThatIsNeverUsedTwice) {
  EXPECT_EQ(verdict(group_of({}, 1)), V::kStaleGroup);
  EXPECT_EQ(propose(broker, group_of({})).group_version, 1u);
  CommandOutcome stale = propose(broker, group_of({}));
  EXPECT_EQ(stale.verdict, V::kStaleGroup);
  EXPECT_EQ(stale.group_version, 1u);
  EXPECT_EQ(propose(broker, commit_of(-1, "")).group_version, 1u) << "a commit to it leaves it";
  EXPECT_EQ(verdict(DeleteOffsets{"g", 2, {partitions[0]}}), V::kStaleGroup);
  EXPECT_EQ(propose(broker, DeleteOffsets{"g", 1, {partitions[0]}}).group_version, 1u);
  EXPECT_EQ(verdict(DeleteGroup{"g", 0}), V::kStaleGroup);
  CommandOutcome deleted = propose(broker, DeleteGroup{"g", 1});
  EXPECT_EQ(deleted.verdict, V::kDone);
  EXPECT_EQ(deleted.group_version, 0u);
  EXPECT_EQ(propose(broker, commit_of(-1, "")).group_version, 2u) << "one that a commit made";
  EXPECT_EQ(propose(broker, group_of({}, 2)).group_version, 3u);
}

TEST_F(Groups, AreUnknownOnceTheyAreDeletedAndMustBeEmptyForThat) {
  EXPECT_EQ(verdict(DeleteGroup{"g", 0}), V::kUnknownGroup);
  EXPECT_EQ(verdict(DeleteOffsets{"g", 0, {}}), V::kUnknownGroup);
  propose(broker, group_of({member("a")}));
  EXPECT_EQ(verdict(DeleteGroup{"g", 1}), V::kNonEmptyGroup);
  SaveGroup preparing = group_of({}, 1);
  preparing.phase = GroupPhase::kPreparingRebalance;
  propose(broker, preparing);
  EXPECT_EQ(verdict(DeleteGroup{"g", 2}), V::kNonEmptyGroup);
  propose(broker, group_of({}, 2));
  EXPECT_EQ(verdict(DeleteGroup{"g", 3}), V::kDone);
  EXPECT_EQ(state.find_group("g"), nullptr);
}

TEST_F(Groups, AreChangedByTheirOwnerOnlyAndItIsAnotherWhenBrokersComeAndGo) {
  Incarnation second = register_broker(2);
  std::map<BrokerId, Incarnation> live = {{BrokerId(1), broker}, {BrokerId(2), second}};
  int of_second = 0;
  for (int i = 0; i < 40; ++i) {
    std::string id = fmt::format("group {}", i);
    std::vector<BrokerId> ids = {BrokerId(1), BrokerId(2)};
    BrokerId owner = *state.group_owner(id);
    EXPECT_EQ(owner, *rendezvous_owner(hash64(id), ids));
    BrokerId other = owner == BrokerId(1) ? BrokerId(2) : BrokerId(1);
    CommitOffsets commit = commit_of(-1, "");
    commit.group = id;
    SaveGroup save = group_of({});
    save.group = id;
    for (Command command :
         {Command(commit), Command(save), Command(DeleteGroup{id, 0}), Command(DeleteOffsets{id, 0, {}})}) {
      EXPECT_EQ(propose(live.at(other), command).verdict, V::kNotCoordinator);
    }
    EXPECT_EQ(propose(live.at(owner), commit).verdict, V::kDone);
    of_second += owner == BrokerId(2);
  }
  EXPECT_THAT(of_second, ::testing::AllOf(::testing::Gt(5), ::testing::Lt(35)));
  ApplyOutcome fence = apply(entry_of(broker, {FenceBroker{second}}));
  EXPECT_TRUE(fence.has_broker_change);
  EXPECT_FALSE(apply(entry_of(broker, {FenceBroker{second}})).has_broker_change);
  for (const auto& [id, one] : state.groups()) {
    EXPECT_EQ(state.group_owner(id), BrokerId(1));
    EXPECT_EQ(verdict(DeleteGroup{id, one.version}), V::kDone) << id;
    break;
  }
  EXPECT_TRUE(apply(registration(3, Nonce(77))).has_broker_change);
  EXPECT_FALSE(apply(registration(3, Nonce(77))).has_broker_change);
  EXPECT_EQ(State().group_owner("g"), std::nullopt);
}

TEST_F(Groups, AreNotChangedByWhatWasJudgedBeforeABrokerCameOrWent) {
  propose(broker, group_of({member("a")}));
  SaveGroup save = group_of({member("a")}, 1);
  CommitOffsets commit = commit_of(5, "a");
  DeleteOffsets offsets{"g", 1, {}};
  DeleteGroup whole{"g", 1};
  auto judge_all = [&](uint64_t owners) {
    save.owners = commit.owners = offsets.owners = whole.owners = owners;
    std::vector<V> verdicts;
    for (Command command : {Command(commit), Command(offsets), Command(whole), Command(save)}) {
      CommandOutcome outcome = propose(broker, std::move(command));
      verdicts.push_back(outcome.verdict);
      EXPECT_EQ(outcome.group_version, outcome.verdict == V::kDone ? group().version : 1);
    }
    return verdicts;
  };
  uint64_t judged = state.owners_version();
  // Between them the group may have been the other's.
  Incarnation second = register_broker(2);
  EXPECT_EQ(state.owners_version(), judged + 1);
  apply(entry_of(broker, {FenceBroker{second}}));
  EXPECT_THAT(judge_all(judged), ElementsAre(V::kStaleGroup, V::kStaleGroup, V::kStaleGroup, V::kStaleGroup));
  EXPECT_THAT(judge_all(judged + 1),
              ElementsAre(V::kStaleGroup, V::kStaleGroup, V::kStaleGroup, V::kStaleGroup));
  broker = register_broker(1);
  EXPECT_THAT(judge_all(judged + 2),
              ElementsAre(V::kStaleGroup, V::kStaleGroup, V::kStaleGroup, V::kStaleGroup));
  EXPECT_EQ(state.owners_version(), judged + 4) << "its earlier incarnation went, and it came";
  apply(entry_of(broker, {FenceBroker{second}}));
  EXPECT_EQ(state.owners_version(), judged + 4) << "it is fenced";
  EXPECT_EQ(State::from_chunks(state.to_chunks())->owners_version(), judged + 4);
  EXPECT_THAT(judge_all(judged + 4), ElementsAre(V::kDone, V::kDone, V::kNonEmptyGroup, V::kDone));
}

class Commits : public Groups {
 protected:
  V commit(int32_t generation, std::string member, std::optional<std::string> instance = {}) {
    CommitOffsets command = commit_of(generation, std::move(member));
    command.instance_id = std::move(instance);
    return verdict(command);
  }
};

TEST_F(Commits, WithoutAGenerationMakeASimpleGroup) {
  CommandOutcome refused = propose(broker, commit_of(0, "a"));
  EXPECT_EQ(refused.verdict, V::kIllegalGeneration);
  EXPECT_EQ(refused.group_version, 0u) << "which tells that there is no group";
  EXPECT_EQ(commit(-1, ""), V::kDone);
  EXPECT_EQ(group().protocol_type, "");
  EXPECT_EQ(group().phase, GroupPhase::kEmpty);
  CommittedOffset expected{10, 2, "note", state.log_time(), -1};
  EXPECT_EQ(group().offsets.at(partitions[0]), expected);
  EXPECT_EQ(commit(-1, "whoever", "i"), V::kDone) << "Kafka looks at nothing else of an empty group";
  EXPECT_EQ(commit(0, "a"), V::kUnknownMember);
}

TEST_F(Commits, ToAGroupWithMembersAreOfAMemberOfTheGeneration) {
  propose(broker, group_of({member("a", "i"), member("b")}));
  EXPECT_EQ(commit(5, "a", "i"), V::kDone);
  EXPECT_EQ(commit(5, "a"), V::kDone) << "a static member need not say so";
  EXPECT_EQ(commit(5, "b"), V::kDone);
  EXPECT_EQ(commit(-1, ""), V::kUnknownMember);
  EXPECT_EQ(commit(-1, "b"), V::kIllegalGeneration);
  EXPECT_EQ(commit(4, "b"), V::kIllegalGeneration);
  EXPECT_EQ(commit(6, "b"), V::kIllegalGeneration);
  EXPECT_EQ(commit(5, "c"), V::kUnknownMember);
  EXPECT_EQ(commit(5, "b", "i"), V::kFencedInstance);
  EXPECT_EQ(commit(5, "c", "i"), V::kFencedInstance);
  EXPECT_EQ(commit(5, "a", "j"), V::kUnknownMember);
  EXPECT_EQ(commit(5, "", "i"), V::kFencedInstance);
}

TEST_F(Commits, WaitWhileTheLeaderAssignsAndGoOnWhileMembersJoin) {
  SaveGroup save = group_of({member("a")});
  save.phase = GroupPhase::kCompletingRebalance;
  propose(broker, save);
  EXPECT_EQ(commit(5, "a"), V::kRebalanceInProgress);
  EXPECT_EQ(commit(4, "a"), V::kIllegalGeneration);
  save.phase = GroupPhase::kPreparingRebalance;
  save.version = 1;
  propose(broker, save);
  EXPECT_EQ(commit(5, "a"), V::kDone);
}

TEST_F(Commits, KeepWhatTheyCanAndNameThePartitionsThatAreGone) {
  CommitOffsets command = commit_of(-1, "");
  PartitionHandle gone = partitions[2].plus(1);
  command.offsets = {
      {gone, 1, -1, ""}, {partitions[1], 2, -1, ""}, {gone.plus(7), 3, -1, ""}, {partitions[0], 4, -1, ""}};
  CommandOutcome outcome = propose(broker, command);
  EXPECT_EQ(outcome.verdict, V::kDone);
  EXPECT_THAT(outcome.unknown_partitions, ElementsAre(0, 2));
  EXPECT_EQ(group().offsets.size(), 2u);
  EXPECT_EQ(group().offsets.at(partitions[1]).offset, 2);
  EXPECT_EQ(group().offsets.at(partitions[0]).offset, 4);
  CommitOffsets lost{.group = "lost", .offsets = {{gone, 1, -1, ""}}};
  outcome = propose(broker, lost);
  EXPECT_EQ(outcome.verdict, V::kDone);
  EXPECT_EQ(outcome.group_version, 0u);
  EXPECT_EQ(state.find_group("lost"), nullptr);
}

TEST_F(Commits, GoWithTheirTopicAndNoOther) {
  PartitionHandle between = create_topic(broker, "between").at(0);
  propose(broker, AddPartitions{state.find_topic("t")->id, 4});
  partitions = state.find_topic("t")->partitions;
  CommitOffsets command = commit_of(-1, "");
  for (PartitionHandle partition : partitions) command.offsets.push_back({partition, 1, -1, ""});
  command.offsets.push_back({between, 9, -1, ""});
  verdict(command);
  verdict(CommitOffsets{.group = "other", .offsets = {{between, 3, -1, ""}}});
  EXPECT_EQ(group().offsets.size(), 5u);
  propose(broker, DeleteTopic{state.find_topic("t")->id});
  EXPECT_EQ(group().offsets.size(), 1u);
  EXPECT_EQ(group().offsets.at(between).offset, 9);
  EXPECT_EQ(state.find_group("other")->offsets.size(), 1u);
  PartitionHandle again = create_topic(broker, "t").at(0);
  EXPECT_FALSE(group().offsets.contains(again));
}

class OffsetExpiration : public Groups {
 protected:
  OffsetExpiration() { propose(broker, SetGroupLimits{.offsets_retention_ms = 1000}); }
  V expire() { return verdict(ExpireOffsets{state.log_time() - 1000}); }
  bool is_due() const { return state.search_idle_offset("", 100, state.log_time() - 1000).is_found; }
};

TEST_F(OffsetExpiration, IsRefusedBeforeItsTimeAndWithoutSenseOfTime) {
  EXPECT_EQ(propose(broker, ExpireOffsets{state.log_time() - 999}).detail, "cutoff_too_late");
  EXPECT_EQ(propose(broker, ExpireOffsets{INT64_MAX}).detail, "cutoff_too_late");
  EXPECT_EQ(verdict(ExpireOffsets{INT64_MIN}), V::kDone);
  EXPECT_EQ(propose(broker, SetGroupLimits{UINT64_MAX}).detail, "limit_out_of_range");
  EXPECT_EQ(state.group_limits().offsets_retention_ms, 1000u);
}

TEST_F(OffsetExpiration, TakesOffsetsOfASimpleGroupByTheirCommitAndThenTheGroup) {
  verdict(commit_of(-1, ""));
  pass(600);
  CommitOffsets later = commit_of(-1, "");
  later.offsets[0].partition = partitions[1];
  verdict(later);
  pass(400);
  EXPECT_FALSE(is_due());
  expire();
  EXPECT_EQ(group().offsets.size(), 2u);
  pass(1);
  EXPECT_TRUE(is_due());
  expire();
  EXPECT_EQ(group().offsets.size(), 1u);
  EXPECT_FALSE(is_due());
  pass(600);
  EXPECT_TRUE(is_due());
  expire();
  EXPECT_EQ(state.find_group("g"), nullptr);
}

TEST_F(OffsetExpiration, LeavesAGroupWithMembersAloneAndCountsFromWhenItBecameEmpty) {
  propose(broker, group_of({member("a")}));
  verdict(commit_of(5, "a"));
  pass(5000);
  EXPECT_FALSE(is_due());
  expire();
  EXPECT_EQ(group().offsets.size(), 1u);
  propose(broker, group_of({}, 1));
  pass(1000);
  EXPECT_FALSE(is_due());
  expire();
  EXPECT_EQ(group().offsets.size(), 1u);
  pass(1);
  EXPECT_TRUE(is_due());
  expire();
  EXPECT_EQ(state.find_group("g"), nullptr);
}

TEST_F(OffsetExpiration, GoesByTheOffsetsOwnExpiryIfItHasOne) {
  CommitOffsets command = commit_of(-1, "");
  command.expires_at = state.log_time() + 5000;
  verdict(command);
  pass(4999);
  EXPECT_FALSE(is_due());
  expire();
  ASSERT_NE(state.find_group("g"), nullptr);
  EXPECT_EQ(group().offsets.at(partitions[0]).expires_at, command.expires_at);
  pass(1);
  EXPECT_TRUE(is_due());
  expire();
  EXPECT_EQ(state.find_group("g"), nullptr);
}

TEST_F(OffsetExpiration, IsLookedForInAFewGroupsAtATime) {
  for (int i = 0; i < 9; ++i) {
    CommitOffsets command = commit_of(-1, "");
    command.group = fmt::format("g{}", i);
    if (i < 7) command.expires_at = INT64_MAX;
    verdict(command);
  }
  pass(1001);
  int64_t cut_off = state.log_time() - 1000;
  ExpirySearch search = state.search_idle_offset("", 3, cut_off);
  EXPECT_FALSE(search.is_found);
  EXPECT_EQ(search.next, "g3");
  search = state.search_idle_offset(*search.next, 4, cut_off);
  EXPECT_FALSE(search.is_found);
  EXPECT_EQ(search.next, "g7");
  EXPECT_TRUE(state.search_idle_offset(*search.next, 4, cut_off).is_found);
  expire();
  search = state.search_idle_offset("g3", 100, cut_off);
  EXPECT_FALSE(search.is_found);
  EXPECT_EQ(search.next, std::nullopt);
}

TEST_F(Groups, SurviveASnapshotAndItsReloadWithTheirOffsets) {
  propose(broker, group_of({member("a", "i"), member("b")}));
  verdict(commit_of(5, "a", 123));
  for (int i = 0; i < 600; ++i) {
    verdict(CommitOffsets{.group = fmt::format("simple {}", i), .offsets = {{partitions[1], i, -1, ""}}});
  }
  propose(broker, SetGroupLimits{.offsets_retention_ms = 4321});
  std::vector<Slice> chunks = state.to_chunks();
  // Of 256 buckets 600 groups leave few empty.
  EXPECT_GT(chunks.size(), 200u);
  auto restored = State::from_chunks(chunks);
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->hash(), state.hash());
  EXPECT_EQ(restored->groups(), state.groups());
  EXPECT_EQ(restored->group_limits(), state.group_limits());
  uint64_t versions = group().version + 600;
  state = std::move(*restored);
  EXPECT_EQ(propose(broker, group_of({}, 1)).group_version, versions + 1) << "no version comes back";
}

// A commit that goes on during a cut copies the bucket of its group, and no other.
TEST_F(Groups, AreCutAsTheyWereWhileCommitsGoOn) {
  for (int i = 0; i < 300; ++i) {
    verdict(CommitOffsets{.group = fmt::format("s{}", i), .offsets = {{partitions[1], i, -1, ""}}});
  }
  uint64_t hash = state.hash();
  std::vector<Slice> expected = state.to_chunks();
  state.begin_cut(CutKind::kChunks);
  for (int i = 0; i < 300; i += 7) {
    verdict(CommitOffsets{.group = fmt::format("s{}", i), .offsets = {{partitions[1], 1000 + i, -1, ""}}});
  }
  verdict(DeleteGroup{"s1", state.find_group("s1")->version});
  verdict(commit_of(-1, ""));
  propose(broker, DeleteTopic{state.find_topic("t")->id});
  while (!state.step_cut(1)) {
  }
  StateCut cut = state.end_cut();
  EXPECT_EQ(cut.hash, hash);
  EXPECT_EQ(cut.chunks, expected);
  EXPECT_EQ(State::from_chunks(state.to_chunks())->hash(), state.hash());
}

TEST(GroupsMax, BoundsThemWhoeverMakesThem) {
  StateDriver driver;
  Incarnation broker = driver.register_broker(1);
  PartitionHandle partition = driver.create_topic(broker, "t").at(0);
  size_t made = 0;
  while (made < kGroupsMax) {
    std::vector<Command> commands;
    for (size_t i = 0; i < 5000; ++i) {
      commands.push_back(CommitOffsets{
          .group = fmt::format("{}", made++), .offsets = {{partition, 1, -1, ""}}, .owners = 1});
    }
    driver.apply(driver.entry_of(broker, std::move(commands)));
  }
  ASSERT_EQ(driver.state.groups().size(), kGroupsMax);
  CommitOffsets more{.group = "more", .offsets = {{partition, 1, -1, ""}}};
  EXPECT_EQ(driver.propose(broker, more).verdict, V::kOverLimit);
  EXPECT_EQ(driver.propose(broker, SaveGroup{.group = "more"}).verdict, V::kOverLimit);
  more.group = "7";
  EXPECT_EQ(driver.propose(broker, more).verdict, V::kDone);
  driver.propose(broker, DeleteGroup{"7", driver.state.find_group("7")->version});
  more.group = "more";
  EXPECT_EQ(driver.propose(broker, more).verdict, V::kDone);
}

}  // namespace
}  // namespace varve::metadata
