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
    register_others();
  }
  void register_others() {
    for (Other* other : {&first, &second}) {
      apply(StateDriver{}.registration(other == &first ? 1 : 2, other->nonce));
      other->incarnation = Incarnation(position.value());
      other->sequence = EntrySequence(1);
    }
  }
  // The others restart.
  void register_again() {
    first.nonce = Nonce(111);
    second.nonce = Nonce(112);
    register_others();
  }
  // This broker takes a snapshot; where it asks.
  LogPosition ask() {
    auto wanted = core.cut_at_next_beat();
    core.proposer().propose({Beat{}}, {});
    apply_outgoing();
    EXPECT_TRUE(wanted.is_set());
    return position;
  }
  LogPosition send(Other& from, std::vector<Command> commands) {
    from.sequence = from.sequence.plus(1);
    apply({.nonce = from.nonce,
           .incarnation = from.incarnation,
           .sequence = from.sequence,
           .commands = std::move(commands)});
    return position;
  }
  LogPosition send(Other& from, Command command) { return send(from, std::vector{std::move(command)}); }
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
  EXPECT_EQ(core.mismatches(), 1u);
  EXPECT_FALSE(core.fatal().is_set()) << "one of three, and it is not this one";
  send(second, FenceBroker{first.incarnation});
  EXPECT_FALSE(core.is_diverged()) << "though nobody beats, as when this broker is alone";
  LogPosition again = send(second, Beat{});
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
  LogPosition at = ask();
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

// 300 beats are a minute of 25 brokers.
TEST_F(ThreeBrokersTest, AnAnswerCountsHoweverManyBeatsCameBeforeIt) {
  auto wanted = core.cut_at_next_beat();
  core.proposer().propose({Beat{}}, {});
  apply_outgoing();
  LogPosition at = position;
  uint64_t hash = core.state().hash();
  for (int i = 0; i < 300; ++i) send(first, Beat{position, core.state().hash()});
  send(first, Beat{at, hash});
  send(second, Beat{at, hash});
  EXPECT_EQ(core.agreement(at, false), Agreement::kAgreed);
}

// Cuts that take a while.
TEST_F(ThreeBrokersTest, OfTwoThatAskAtOnceTheLaterGetsItsAnswerFromTheOther) {
  for (int i = 0; i < 200; ++i) {
    send(first, CreateTopic{.id = StateDriver::topic_id(static_cast<uint8_t>(i)),
                            .name = fmt::format("{}{}", std::string(200, 'x'), i),
                            .partitions = 500,
                            .configs = {{"retention.ms", std::string(5000, '1')}}});
  }
  auto wanted = core.cut_at_next_beat();
  core.proposer().propose({Beat{}}, {});
  apply_outgoing();
  ASSERT_FALSE(wanted.is_set()) << "so large a state is cut in steps";
  LogPosition asked = send(first, Beat{});
  uint64_t expected = core.state().hash();
  EXPECT_TRUE(wanted.is_set()) << "this broker gives up its own";
  while (core.cut_work()) {
  }
  auto beat = core.beat_due(MonotonicTime(), std::chrono::hours(1));
  ASSERT_TRUE(beat);
  EXPECT_EQ(*beat, (Beat{asked, expected}));
}

TEST_F(ThreeBrokersTest, AWrongSnapshotOfABrokerThatIsGoneCountsButStopsNothing) {
  LogPosition asked = send(first, Beat{});
  uint64_t hash = core.beat_due(MonotonicTime(), std::chrono::hours(1))->state_hash;
  Entry last{.nonce = first.nonce, .incarnation = first.incarnation, .sequence = EntrySequence(3)};
  last.commands = {SnapshotTaken{.position = asked, .state_hash = hash + 1}, FenceBroker{first.incarnation}};
  apply(last);
  EXPECT_EQ(core.mismatches(), 1u);
  EXPECT_FALSE(core.is_diverged());
  EXPECT_TRUE(core.is_snapshot_overdue());
}

TEST_F(ThreeBrokersTest, ASnapshotThatABrokerContradictsIsNotAgreed) {
  LogPosition at = ask();
  send(first, Beat{at, core.state().hash() + 1});
  EXPECT_EQ(core.agreement(at, false), Agreement::kDisagreed);
  EXPECT_EQ(core.agreement(at, true), Agreement::kDisagreed);
}

TEST_F(ThreeBrokersTest, WhoCameAfterTheAskIsHeardToo) {
  LogPosition at = ask();
  uint64_t hash = core.state().hash();
  register_again();
  EXPECT_EQ(core.agreement(at, false), Agreement::kAwaited);
  EXPECT_EQ(core.agreement(at, true), Agreement::kAwaited) << "one of three has said anything";
  send(first, Beat{at, hash});
  EXPECT_EQ(core.agreement(at, true), Agreement::kAgreed);
  send(second, Beat{at, hash});
  EXPECT_EQ(core.agreement(at, false), Agreement::kAgreed);
}

TEST_F(ThreeBrokersTest, ABrokerAnswersWhatWasAskedBeforeItRegistered) {
  LogPosition by_first = send(first, Beat{});
  uint64_t hash = core.beat_due(MonotonicTime(), std::chrono::hours(1))->state_hash;
  LogPosition by_second = send(second, Beat{});
  send(first, SnapshotTaken{.position = by_first, .state_hash = hash});
  LogPosition again = send(first, Beat{});
  register_as(kLaterNonce);
  std::set<LogPosition> answered;
  while (auto beat = core.beat_due(MonotonicTime(), std::chrono::hours(1))) answered.insert(beat->applied);
  EXPECT_EQ(answered, (std::set{by_second, again}));
}

TEST_F(ThreeBrokersTest, WhatABrokerSaidHoldsAfterItHasGone) {
  LogPosition at = ask();
  uint64_t hash = core.state().hash();
  for (Other* other : {&first, &second}) send(*other, Beat{at, hash});
  register_again();
  EXPECT_EQ(core.agreement(at, false), Agreement::kAgreed);
}

TEST_F(ThreeBrokersTest, AContradictionHoldsAfterItsBrokerHasGone) {
  LogPosition at = ask();
  uint64_t hash = core.state().hash();
  send(first, Beat{at, hash + 1});
  register_again();
  send(second, Beat{at, hash});
  EXPECT_FALSE(core.is_diverged());
  EXPECT_EQ(core.agreement(at, true), Agreement::kDisagreed);
}

TEST_F(ThreeBrokersTest, EveryBeatOfAnEntryCounts) {
  auto wanted = core.cut_at_next_beat();
  core.proposer().propose({Beat{}}, {});
  core.proposer().propose({Beat{LogPosition(1), 5}}, {});
  apply_outgoing();
  ASSERT_TRUE(wanted.is_set()) << "the ask is not hidden by what follows it";
  LogPosition at = position;
  uint64_t hash = core.state().hash();
  send(first, {Beat{at, hash}, Beat{LogPosition(1), 5}});
  send(second, {Beat{at, hash}, Beat{}});
  EXPECT_EQ(core.agreement(at, false), Agreement::kAgreed);
  auto answer = core.beat_due(MonotonicTime(), std::chrono::hours(1));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->applied, position);
}

// More than is hashed at once.
TEST_F(ThreeBrokersTest, ASnapshotIsComparedOnceThisBrokerKnowsItsHash) {
  for (uint8_t i = 1; i <= 4; ++i) {
    CreateTopic topic{.id = StateDriver::topic_id(i), .name = fmt::format("t{}", i), .partitions = 1000};
    topic.configs["x"] = std::string(300'000, 'x');
    send(first, topic);
  }
  LogPosition asked = send(first, Beat{});
  send(first, SnapshotTaken{.position = asked, .state_hash = 1});
  EXPECT_FALSE(core.is_diverged());
  while (core.cut_work()) {
  }
  EXPECT_TRUE(core.is_diverged());
  EXPECT_GT(core.mismatches(), 0u);
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
