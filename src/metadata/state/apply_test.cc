// Who may write, in which order, and what time it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

using ::testing::ElementsAre;

class Registration : public ::testing::Test, public StateDriver {};
class EntryOrder : public ::testing::Test, public StateDriver {};
class Fencing : public ::testing::Test, public StateDriver {};
class FeatureLevels : public ::testing::Test, public StateDriver {};
class LogTime : public ::testing::Test, public StateDriver {};

TEST_F(Registration, AnIncarnationIsNumberedByThePositionOfItsEntry) {
  Incarnation first = register_broker(7);
  EXPECT_EQ(first.value(), state.position().value());
  EXPECT_EQ(state.live_incarnation(BrokerId(7)), first);
  EXPECT_EQ(state.incarnations().at(first).last_sequence, EntrySequence(1));
  EXPECT_EQ(state.incarnation_of(state.incarnations().at(first).nonce), first);
  EXPECT_EQ(state.live_incarnation(BrokerId(8)), std::nullopt);
}

TEST_F(Registration, FencesTheEarlierIncarnationOfTheSameIdAndNoOther) {
  Incarnation first = register_broker(1);
  Incarnation other = register_broker(2);
  ApplyOutcome outcome = apply(registration(1, Nonce(999)));
  EXPECT_THAT(outcome.fenced, ElementsAre(first));
  EXPECT_FALSE(state.incarnations().at(first).is_live);
  EXPECT_TRUE(state.incarnations().at(other).is_live);
  EXPECT_EQ(state.live_incarnation(BrokerId(1)), outcome.commands.at(0).incarnation);
}

TEST_F(Registration, IsRefusedIfItIsNotAloneOrNotTheFirstOrItsNonceOrIdIsBad) {
  Entry good = registration(1, Nonce(1));
  Entry two_commands = good;
  two_commands.commands.push_back(Beat{});
  Entry no_command = good;
  no_command.commands.clear();
  Entry other_command = good;
  other_command.commands = {Beat{}};
  Entry second = good;
  second.sequence = EntrySequence(2);
  Entry negative = registration(-1, Nonce(1));
  for (const Entry& bad : {two_commands, no_command, other_command, second, negative}) {
    EXPECT_EQ(apply(bad).verdict, EntryVerdict::kBadRegistration);
  }
  EXPECT_TRUE(state.incarnations().empty());
  EXPECT_EQ(apply(good).verdict, EntryVerdict::kApplied);
  EXPECT_EQ(apply(registration(2, Nonce(1))).verdict, EntryVerdict::kBadRegistration);
  EXPECT_EQ(refusals("entry.bad_registration"), 6u);
}

TEST_F(Registration, InsideAnotherEntryIsARefusedCommand) {
  Incarnation broker = register_broker(1);
  CommandOutcome outcome = propose(broker, registration_of(2, 1));
  EXPECT_EQ(outcome.verdict, CommandVerdict::kRefused);
  EXPECT_EQ(outcome.detail, "misplaced_registration");
  EXPECT_EQ(state.incarnations().size(), 1u);
}

TEST_F(EntryOrder, TakesOnlyTheNextSequenceOfAnIncarnation) {
  Incarnation broker = register_broker(1);
  Entry second = entry_of(broker, {Beat{}});
  Entry third = second;
  third.sequence = EntrySequence(3);
  EXPECT_EQ(apply(third).verdict, EntryVerdict::kGap);
  EXPECT_EQ(apply(second).verdict, EntryVerdict::kApplied);
  EXPECT_EQ(apply(second).verdict, EntryVerdict::kRepeated);
  EXPECT_EQ(apply(third).verdict, EntryVerdict::kApplied);
  EXPECT_EQ(apply(second).verdict, EntryVerdict::kRepeated);
  EXPECT_EQ(state.incarnations().at(broker).last_sequence, EntrySequence(3));
  EXPECT_EQ(refusals("entry.repeated"), 2u);
  EXPECT_EQ(refusals("entry.gap"), 1u);
}

TEST_F(EntryOrder, ARepeatedEntryChangesNothingButThePosition) {
  Incarnation broker = register_broker(1);
  Entry allocation = entry_of(broker, {AllocateProducerIds{10}});
  EXPECT_EQ(apply(allocation).commands.at(0).first_producer_id, ProducerId(0));
  time = WallTime(5'000'000);
  int64_t log_time = state.log_time();
  EXPECT_TRUE(apply(allocation).commands.empty());
  EXPECT_EQ(state.log_time(), log_time);
  EXPECT_EQ(propose(broker, AllocateProducerIds{10}).first_producer_id, ProducerId(10));
}

TEST_F(EntryOrder, AnUnknownIncarnationOrAnotherNonceIsNobody) {
  Incarnation broker = register_broker(1);
  Entry entry = entry_of(broker, {Beat{}});
  Entry wrong_nonce = entry;
  wrong_nonce.nonce = Nonce(12345);
  Entry unknown = entry;
  unknown.incarnation = broker.plus(1);
  EXPECT_EQ(apply(wrong_nonce).verdict, EntryVerdict::kUnknownIncarnation);
  EXPECT_EQ(apply(unknown).verdict, EntryVerdict::kUnknownIncarnation);
  EXPECT_EQ(apply(entry).verdict, EntryVerdict::kApplied);
}

TEST_F(EntryOrder, BytesThatDoNotDecodeAreACountedNoOp) {
  Incarnation broker = register_broker(1);
  std::vector<uint8_t> bytes = encode_entry(entry_of(broker, {AllocateProducerIds{10}}));
  bytes[12] ^= 1;
  ApplyOutcome outcome = apply_bytes(bytes);
  EXPECT_EQ(outcome.verdict, EntryVerdict::kMalformed);
  EXPECT_EQ(apply_bytes({}).verdict, EntryVerdict::kMalformed);
  Entry other_shard = entry_of(broker, {Beat{}});
  other_shard.shard = 1;
  EXPECT_EQ(apply(other_shard).verdict, EntryVerdict::kMalformed);
  EXPECT_EQ(refusals("entry.malformed"), 3u);
  EXPECT_EQ(state.incarnations().at(broker).last_sequence, EntrySequence(1));
}

TEST_F(EntryOrder, TheOutcomeNamesTheSenderEvenOfARefusedEntry) {
  Incarnation broker = register_broker(1);
  Entry entry = entry_of(broker, {Beat{}});
  entry.sequence = EntrySequence(9);
  ApplyOutcome outcome = apply(entry);
  EXPECT_EQ(outcome.nonce, entry.nonce);
  EXPECT_EQ(outcome.sequence, EntrySequence(9));
}

TEST_F(EntryOrder, CommandsOfAnEntryApplyInTheirOrder) {
  Incarnation broker = register_broker(1);
  CreateTopic topic{.id = topic_id(1), .name = "t", .partitions = 2};
  Entry entry = entry_of(broker, {topic, topic, DeleteTopic{topic.id}, DeleteTopic{topic.id}, topic});
  entry.commands[1] = CreateTopic{.id = topic_id(2), .name = "t", .partitions = 1};
  ApplyOutcome outcome = apply(entry);
  ASSERT_EQ(outcome.commands.size(), 5u);
  EXPECT_EQ(outcome.commands[0].verdict, CommandVerdict::kDone);
  EXPECT_EQ(outcome.commands[1].verdict, CommandVerdict::kTopicExists);
  EXPECT_EQ(outcome.commands[2].verdict, CommandVerdict::kDone);
  EXPECT_EQ(outcome.commands[3].verdict, CommandVerdict::kUnknownTopic);
  EXPECT_EQ(outcome.commands[4].verdict, CommandVerdict::kDone);
  EXPECT_EQ(state.find_topic("t")->life, 2u);
}

TEST_F(Fencing, AFencedIncarnationWritesNothingMoreAndItsLastSequenceStays) {
  Incarnation paused = register_broker(1);
  propose(paused, Beat{});
  Incarnation other = register_broker(2);
  ApplyOutcome outcome = apply(entry_of(other, {FenceBroker{paused}}));
  EXPECT_THAT(outcome.fenced, ElementsAre(paused));
  EXPECT_EQ(apply(entry_of(paused, {AllocateProducerIds{1}})).verdict, EntryVerdict::kFenced);
  EXPECT_EQ(state.incarnations().at(paused).last_sequence, EntrySequence(2));
  EXPECT_EQ(state.live_incarnation(BrokerId(1)), std::nullopt);
}

TEST_F(Fencing, TwiceIsDoneOnceAndAnUnknownIncarnationIsRefused) {
  Incarnation broker = register_broker(1);
  Incarnation other = register_broker(2);
  EXPECT_EQ(propose(other, FenceBroker{broker}).verdict, CommandVerdict::kDone);
  uint64_t version = state.image_version();
  ApplyOutcome again = apply(entry_of(other, {FenceBroker{broker}}));
  EXPECT_EQ(again.commands.at(0).verdict, CommandVerdict::kDone);
  EXPECT_TRUE(again.fenced.empty());
  EXPECT_EQ(state.image_version(), version);
  EXPECT_EQ(propose(other, FenceBroker{Incarnation(4711)}).detail, "unknown_incarnation");
}

TEST_F(Fencing, FollowsTheOrderOfTheLogNotTheTimeInTheEntry) {
  Incarnation first = register_broker(1);
  Entry late = entry_of(first, {Beat{}});
  late.time = WallTime(1);
  register_broker(1);
  EXPECT_EQ(apply(late).verdict, EntryVerdict::kFenced);
}

TEST_F(FeatureLevels, AnEntryAboveTheLevelIsACountedNoOpWhateverItHolds) {
  Incarnation broker = register_broker(1, 5);
  Entry future = entry_of(broker, {AllocateProducerIds{1}});
  future.level = FeatureLevel(2);
  EXPECT_EQ(apply(future).verdict, EntryVerdict::kAboveFeatureLevel);
  EXPECT_EQ(state.incarnations().at(broker).last_sequence, EntrySequence(1));
  Entry zero = entry_of(broker, {Beat{}});
  zero.level = FeatureLevel(0);
  EXPECT_EQ(apply(zero).verdict, EntryVerdict::kMalformed);
}

TEST_F(FeatureLevels, TheLevelRisesOnlyIfEveryLiveBrokerAllowsIt) {
  Incarnation able = register_broker(1, 2);
  Incarnation unable = register_broker(2, 1);
  EXPECT_EQ(propose(able, RaiseFeatureLevel{FeatureLevel(2)}).verdict, CommandVerdict::kLevelRefused);
  EXPECT_EQ(propose(able, RaiseFeatureLevel{FeatureLevel(1)}).verdict, CommandVerdict::kLevelRefused);
  propose(able, FenceBroker{unable});
  EXPECT_EQ(propose(able, RaiseFeatureLevel{FeatureLevel(2)}).verdict, CommandVerdict::kDone);
  EXPECT_EQ(state.feature_level(), FeatureLevel(2));
}

TEST_F(FeatureLevels, ABrokerBelowTheLevelCannotRegister) {
  Incarnation able = register_broker(1, 2);
  propose(able, RaiseFeatureLevel{FeatureLevel(2)});
  ApplyOutcome outcome = apply(registration(1, Nonce(77), 1));
  EXPECT_EQ(outcome.verdict, EntryVerdict::kApplied);
  EXPECT_EQ(outcome.commands.at(0).verdict, CommandVerdict::kLevelRefused);
  EXPECT_TRUE(outcome.fenced.empty());
  EXPECT_TRUE(state.incarnations().at(able).is_live);
  EXPECT_EQ(state.incarnation_of(Nonce(77)), std::nullopt);
}

TEST_F(LogTime, IsTheLowerMedianOfTheLiveBrokersLastTimes) {
  time = WallTime(100);
  Incarnation a = register_broker(1);
  EXPECT_EQ(state.log_time(), 100);
  time = WallTime(900);
  Incarnation b = register_broker(2);
  EXPECT_EQ(state.log_time(), 100) << "of two, the lower";
  time = WallTime(500);
  register_broker(3);
  EXPECT_EQ(state.log_time(), 500);
  time = WallTime(1000);
  propose(a, Beat{});
  EXPECT_EQ(state.log_time(), 900);
  time = WallTime(500);
  propose(b, FenceBroker{a});
  EXPECT_EQ(state.log_time(), 900) << "it never falls";
}

TEST_F(LogTime, NeverFallsAndOneWrongClockOfThreeDoesNotMoveIt) {
  time = WallTime(1000);
  Incarnation a = register_broker(1);
  Incarnation b = register_broker(2);
  Incarnation wrong = register_broker(3);
  time = WallTime(INT64_MAX);
  propose(wrong, Beat{});
  EXPECT_EQ(state.log_time(), 1000);
  time = WallTime(1100);
  propose(a, Beat{});
  propose(b, Beat{});
  EXPECT_EQ(state.log_time(), 1100);
  time = WallTime(-5);
  propose(b, Beat{});
  propose(a, Beat{});
  EXPECT_EQ(state.log_time(), 1100);
}

TEST_F(LogTime, CountsTheEntrysOwnTimeForItsOwnCommands) {
  Incarnation broker = register_broker(1);
  auto partition = create_topic(broker, "t").at(0);
  time = time.plus(3'600'000);
  CommandOutcome outcome = commit(broker, {{.partition = partition, .is_log_append_time = true}});
  EXPECT_EQ(outcome.runs.at(0).batches.at(0).append_time, time.value());
}

TEST_F(LogTime, AnAppendTimeIsNeitherBeforeLogTimeNorAMinuteAfter) {
  time = WallTime(1'000'000);
  register_broker(1);
  Incarnation b = register_broker(2);
  auto partition = create_topic(b, "t").at(0);
  auto append_time_at = [&](int64_t at) {
    time = WallTime(at);
    return commit(b, {{.partition = partition, .is_log_append_time = true}})
        .runs.at(0)
        .batches.at(0)
        .append_time;
  };
  EXPECT_EQ(append_time_at(1'030'000), 1'030'000) << "the entry's own, less than a minute ahead";
  EXPECT_EQ(append_time_at(9'000'000), 1'060'000) << "a minute ahead of log time at most";
  EXPECT_EQ(append_time_at(INT64_MAX), 1'060'000);
  EXPECT_EQ(append_time_at(500), 1'000'000) << "log time at least";
  EXPECT_EQ(state.log_time(), 1'000'000);
}

TEST_F(LogTime, ABeatLeavesThePositionAndHashThatItsSenderSaw) {
  Incarnation broker = register_broker(1);
  propose(broker, Beat{LogPosition(3), 0xabcdef});
  EXPECT_EQ(state.incarnations().at(broker).beat_position, LogPosition(3));
  EXPECT_EQ(state.incarnations().at(broker).beat_hash, 0xabcdefu);
}

}  // namespace
}  // namespace varve::metadata
