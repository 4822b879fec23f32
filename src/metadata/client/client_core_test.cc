#include "metadata/client/client_core.h"

#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

constexpr Nonce kNonce{77};
constexpr Nonce kLaterNonce{78};

// A broker's core, fed with entries that the test writes.
struct ClientCoreTest : testing::Test {
  ClientCore core{BrokerId(0), Limits().proposals_waiting_max, PlantedBugs{}};
  LogPosition position;

  void apply(const Entry& entry) {
    position = position.plus(1);
    core.apply({LogEntry{position, Slice::take(encode_entry(entry))}});
  }
  Incarnation register_as(Nonce nonce, uint32_t highest_level = 1) {
    auto registered = core.expect_registration(nonce);
    apply(StateDriver{}.registration(0, nonce, highest_level));
    EXPECT_TRUE(registered.is_set());
    return core.incarnation();
  }
  // What the proposer sends now, applied.
  void apply_outgoing() {
    auto sent = core.proposer().outgoing(FeatureLevel(1), WallTime(1000));
    ASSERT_TRUE(sent);
    position = position.plus(1);
    core.apply({LogEntry{position, sent->bytes}});
  }
};

TEST_F(ClientCoreTest, TheImageHasAnOwnEntryBeforeItsProposerIsTold) {
  register_as(kNonce);
  runtime::Completion<ProposeResult> made;
  CreateTopic topic{.id = StateDriver::topic_id(1), .name = "orders", .partitions = 1};
  core.proposer().propose({topic}, made);
  bool was_there = false;
  // The listener is called right after the promises.
  core.set_listener([&](const ApplyOutcome&) {
    was_there = made.is_set() && core.image()->find_topic("orders") != nullptr;
  });
  apply_outgoing();
  EXPECT_TRUE(was_there);
}

TEST_F(ClientCoreTest, ALateAnswerAboutAnEarlierSessionDoesNotEndTheCurrentOne) {
  register_as(kNonce);
  register_as(kLaterNonce);
  core.session_lost(kNonce);
  EXPECT_FALSE(core.needs_registration());
  core.session_lost(kLaterNonce);
  EXPECT_TRUE(core.needs_registration());
}

TEST_F(ClientCoreTest, ABrokerBelowTheFeatureLevelHaltsBeforeItAppliesAnEntryOfIt) {
  register_as(kNonce, 2);
  runtime::Completion<ProposeResult> raised;
  core.proposer().propose({RaiseFeatureLevel{FeatureLevel(2)}}, raised);
  apply_outgoing();
  EXPECT_FALSE(core.fatal().is_set());
  LogPosition before = core.state().position();
  core.proposer().propose({AllocateProducerIds{}}, {});
  apply_outgoing();
  EXPECT_EQ(core.state().position(), before);
  EXPECT_TRUE(core.fatal().is_set());
}

// This broker, 0, and two others whose entries the test writes.
struct ThreeBrokersTest : ClientCoreTest {
  struct Other {
    Nonce nonce;
    Incarnation incarnation{};
    EntrySequence sequence{1};
  };
  Other first{Nonce(101)};
  Other second{Nonce(102)};

  ThreeBrokersTest() {
    register_as(kNonce);
    for (Other* other : {&first, &second}) {
      apply(StateDriver{}.registration(other == &first ? 1 : 2, other->nonce));
      other->incarnation = Incarnation(position.value());
    }
  }
  LogPosition send(Other& from, Command command) {
    from.sequence = from.sequence.plus(1);
    Entry entry{.nonce = from.nonce, .incarnation = from.incarnation, .sequence = from.sequence};
    entry.commands.push_back(std::move(command));
    apply(entry);
    return position;
  }
};

TEST_F(ThreeBrokersTest, ABrokerThatIsAskedSaysItsHashWhereItWasAsked) {
  LogPosition asked = send(first, Beat{});
  uint64_t expected = core.state().hash();
  send(second, AllocateProducerIds{});
  auto beat = core.beat_due(MonotonicTime(), std::chrono::hours(1));
  ASSERT_TRUE(beat);
  EXPECT_EQ(*beat, (Beat{asked, expected}));
  EXPECT_FALSE(core.beat_due(MonotonicTime(), std::chrono::hours(1))) << "once";
}

TEST_F(ThreeBrokersTest, ASnapshotOfThisBrokersStateIsAsGoodAsItsOwn) {
  LogPosition asked = send(first, Beat{});
  uint64_t hash = core.beat_due(MonotonicTime(), std::chrono::hours(1))->state_hash;
  send(first, SnapshotTaken{.position = asked, .state_hash = hash});
  EXPECT_FALSE(core.is_diverged());
  EXPECT_EQ(core.mismatches(), 0u);
}

TEST_F(ThreeBrokersTest, ASnapshotOfAnotherStateStopsWhatTrustsItUntilItsWriterHasGone) {
  LogPosition asked = send(first, Beat{});
  uint64_t hash = core.beat_due(MonotonicTime(), std::chrono::hours(1))->state_hash;
  send(first, SnapshotTaken{.position = asked, .state_hash = hash + 1});
  EXPECT_TRUE(core.is_diverged());
  EXPECT_FALSE(core.is_snapshot_overdue());
  EXPECT_GT(core.mismatches(), 0u);
  EXPECT_FALSE(core.fatal().is_set()) << "one of three, and it is not this one";
  send(second, FenceBroker{first.incarnation});
  LogPosition again = send(second, Beat{});
  EXPECT_FALSE(core.is_diverged());
  EXPECT_TRUE(core.is_snapshot_overdue()) << "nobody should begin from that one";
  hash = core.beat_due(MonotonicTime(), std::chrono::hours(1))->state_hash;
  send(second, SnapshotTaken{.position = again, .state_hash = hash});
  EXPECT_FALSE(core.is_snapshot_overdue());
}

TEST_F(ThreeBrokersTest, ABrokerWhoseSnapshotsDifferFromTwoOfThreeStops) {
  for (Other* other : {&first, &second}) {
    LogPosition asked = send(*other, Beat{});
    uint64_t hash = core.beat_due(MonotonicTime(), std::chrono::hours(1))->state_hash;
    send(*other, SnapshotTaken{.position = asked, .state_hash = hash + 1});
  }
  EXPECT_TRUE(core.fatal().is_set());
}

TEST_F(ThreeBrokersTest, ASnapshotIsAgreedOnceEveryLiveBrokerHasNamedItsHash) {
  auto wanted = core.cut_at_next_beat();
  send(first, Beat{});
  EXPECT_FALSE(wanted.is_set()) << "it is cut where this broker asks";
  core.proposer().propose({Beat{}}, {});
  apply_outgoing();
  ASSERT_TRUE(wanted.is_set());
  LogPosition at = position;
  uint64_t hash = core.state().hash();
  EXPECT_EQ(core.agreement(at, false), Agreement::kAwaited);
  send(first, Beat{at, hash});
  EXPECT_EQ(core.agreement(at, false), Agreement::kAwaited);
  send(first, Beat{LogPosition(1), 5});  // goes on
  send(second, Beat{at, hash});
  EXPECT_EQ(core.agreement(at, false), Agreement::kAgreed);
}

TEST_F(ThreeBrokersTest, ABrokerThatSaysNothingHoldsASnapshotUpForAWhileOnly) {
  auto wanted = core.cut_at_next_beat();
  core.proposer().propose({Beat{}}, {});
  apply_outgoing();
  LogPosition at = position;
  EXPECT_EQ(core.agreement(at, true), Agreement::kAwaited) << "two of three say nothing";
  send(first, Beat{at, core.state().hash()});
  EXPECT_EQ(core.agreement(at, false), Agreement::kAwaited);
  EXPECT_EQ(core.agreement(at, true), Agreement::kAgreed);
}

TEST_F(ThreeBrokersTest, WhenTwoAskAtOnceEachGetsItsAnswer) {
  LogPosition by_first = send(first, Beat{});
  LogPosition by_second = send(second, Beat{});
  auto one = core.beat_due(MonotonicTime(), std::chrono::hours(1));
  auto two = core.beat_due(MonotonicTime(), std::chrono::hours(1));
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->applied, by_first);
  EXPECT_EQ(two->applied, by_second);
}

TEST_F(ThreeBrokersTest, ASnapshotThatABrokerContradictsIsNotAgreed) {
  auto wanted = core.cut_at_next_beat();
  core.proposer().propose({Beat{}}, {});
  apply_outgoing();
  LogPosition at = position;
  send(first, Beat{at, core.state().hash() + 1});
  EXPECT_EQ(core.agreement(at, false), Agreement::kDisagreed);
  EXPECT_EQ(core.agreement(at, true), Agreement::kDisagreed);
}

TEST_F(ClientCoreTest, AReloadTellsWhoeverWaitsThatItsPartitionMayHaveChanged) {
  register_as(kNonce);
  // Another broker's history goes on: a topic is deleted and another made.
  StateDriver driver;
  Incarnation sender = driver.register_broker(1);
  PartitionHandle gone = driver.create_topic(sender, "gone").front();
  core.reload(State::from_chunks(driver.state.to_chunks()).value());
  std::set<PartitionHandle> told;
  core.set_listener([&](const ApplyOutcome& outcome) {
    told.insert(outcome.changed_partitions.begin(), outcome.changed_partitions.end());
  });
  driver.propose(sender, DeleteTopic{driver.topic_id(1)});
  PartitionHandle made = driver.create_topic(sender, "made").front();
  core.reload(State::from_chunks(driver.state.to_chunks()).value());
  EXPECT_EQ(told, (std::set<PartitionHandle>{gone, made}));
}

// Another process takes this broker's id while this one registers anew, and the log is trimmed past both.
TEST_F(ClientCoreTest, AReloadTellsOfTheFenceOfARegistrationThatItBrings) {
  register_as(kNonce);
  core.session_lost(kNonce);
  auto registered = core.expect_registration(kLaterNonce);
  StateDriver driver;
  for (Nonce nonce : {kNonce, kLaterNonce, Nonce(79)}) driver.apply(driver.registration(0, nonce));
  core.reload(State::from_chunks(driver.state.to_chunks()).value());
  EXPECT_TRUE(registered.is_set());
  EXPECT_TRUE(core.fatal().is_set());
}

TEST_F(ClientCoreTest, AReloadOfARegistrationThatWasFencedSinceAsksForAnother) {
  register_as(kNonce);
  core.session_lost(kNonce);
  auto registered = core.expect_registration(kLaterNonce);
  StateDriver driver;
  for (Nonce nonce : {kNonce, kLaterNonce}) driver.apply(driver.registration(0, nonce));
  Incarnation fenced = *driver.state.live_incarnation(BrokerId(0));
  driver.propose(driver.register_broker(1), FenceBroker{fenced});
  core.reload(State::from_chunks(driver.state.to_chunks()).value());
  EXPECT_TRUE(registered.is_set());
  EXPECT_TRUE(core.needs_registration());
  EXPECT_FALSE(core.fatal().is_set());
}

TEST_F(ClientCoreTest, WhatIsRememberedOfRegistrationsAndFencesDoesNotGrow) {
  for (uint64_t i = 0; i < 100; ++i) {
    register_as(Nonce(1000 + i));
    // An attempt whose session was gone before it could be appended.
    core.expect_registration(Nonce(5000 + i));
    core.registration_failed(Nonce(5000 + i));
    // Another broker comes without a session of its own, and is fenced.
    apply(StateDriver{}.registration(1, Nonce(2000 + i)));
    auto due = core.fences_due(core.live(), {Nonce(1000 + i)});
    ASSERT_EQ(due, (std::vector<Incarnation>{Incarnation(position.value())}));
    EXPECT_TRUE(core.fences_due(core.live(), {Nonce(1000 + i)}).empty()) << "each is told once";
  }
  EXPECT_LE(core.remembered(), 2u);
  EXPECT_FALSE(core.fatal().is_set());
}

TEST_F(ClientCoreTest, ABrokerWithoutItsOwnSessionRegistersAnew) {
  register_as(kNonce);
  EXPECT_TRUE(core.fences_due(core.live(), {}).empty());
  EXPECT_TRUE(core.needs_registration());
}

TEST_F(ClientCoreTest, OnlyWhatSomebodyDidCountsAsWork) {
  register_as(kNonce);
  LogPosition registered = core.newest_work();
  EXPECT_EQ(registered, position);
  for (Command quiet : {Command(Beat{}), Command(AdvanceGcFence{FenceEpoch(1)}),
                        Command(SnapshotTaken{.position = LogPosition(1)}), Command(ObjectsDeleted{})}) {
    core.proposer().propose({quiet}, {});
    apply_outgoing();
    EXPECT_EQ(core.newest_work(), registered);
  }
  core.proposer().propose({Beat{}, AllocateProducerIds{}}, {});
  apply_outgoing();
  EXPECT_EQ(core.newest_work(), position);
}

}  // namespace
}  // namespace varve::metadata
