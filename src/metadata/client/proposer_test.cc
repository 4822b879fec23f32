#include "metadata/client/proposer.h"

#include <gtest/gtest.h>

namespace varve::metadata {
namespace {

using runtime::Completion;

constexpr Nonce kNonce{77};
constexpr Incarnation kIncarnation{5};

// Reads a completion without a coroutine: set() tells whether somebody was first.
bool is_open(const Completion<ProposeResult>& completion) { return !completion.is_set(); }

struct ProposerTest : testing::Test {
  static constexpr size_t kWaitingMax = 20;

  Proposer proposer{kWaitingMax, PlantedBugs{}};
  std::vector<Completion<ProposeResult>> completions;

  ProposerTest() { proposer.registered(kNonce, kIncarnation); }

  void propose(uint32_t count = 1) {
    completions.emplace_back();
    proposer.propose({AllocateProducerIds{count}}, completions.back());
  }
  std::optional<Proposer::Outgoing> outgoing() { return proposer.outgoing(FeatureLevel(1), WallTime(1000)); }
  ApplyOutcome applied_outcome(EntrySequence sequence, size_t commands, Nonce nonce = kNonce) {
    ApplyOutcome outcome;
    outcome.nonce = nonce;
    outcome.sequence = sequence;
    outcome.commands.resize(commands);
    return outcome;
  }
};

TEST_F(ProposerTest, WhatIsTooMuchForTheQueueIsRefusedAndLaterThereIsRoomAgain) {
  for (size_t i = 0; i < kWaitingMax; ++i) propose();
  propose();
  EXPECT_TRUE(is_open(completions[kWaitingMax - 1]));
  EXPECT_FALSE(is_open(completions[kWaitingMax])) << "refused at once";
  ASSERT_TRUE(outgoing());
  propose();
  EXPECT_TRUE(is_open(completions.back()));
}

// A fence is proposed once.
TEST_F(ProposerTest, WhatABrokerDoesForTheClusterIsNotKeptOutByClients) {
  for (size_t i = 0; i < kWaitingMax; ++i) propose();
  std::vector<Command> duties = {FenceBroker{Incarnation(3)}, AdvanceGcFence{}, ObjectsDeleted{}, Beat{},
                                 SnapshotTaken{}};
  for (const Command& duty : duties) {
    completions.emplace_back();
    proposer.propose({duty}, completions.back());
    EXPECT_TRUE(is_open(completions.back())) << duty.index();
  }
  propose();
  EXPECT_FALSE(is_open(completions.back())) << "refused at once";
  for (size_t i = duties.size(); i <= kWaitingMax; ++i) {
    completions.emplace_back();
    proposer.propose({Beat{}}, completions.back());
  }
  EXPECT_FALSE(is_open(completions.back())) << "these have a limit too";
}

TEST_F(ProposerTest, EverythingThatWaitsGoesIntoOneEntryInOrder) {
  propose(1);
  propose(2);
  auto sent = outgoing();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->key, (EntryKey{kNonce, EntrySequence(2)}));
  auto entry = decode_entry(sent->bytes.view());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->commands, (std::vector<Command>{AllocateProducerIds{1}, AllocateProducerIds{2}}));
  EXPECT_EQ(entry->incarnation, kIncarnation);
}

TEST_F(ProposerTest, NothingFollowsAnEntryWhoseFateIsUnknownAndRetriesAreByteIdentical) {
  propose();
  auto first = outgoing();
  propose();
  proposer.outcome_unknown(first->key);
  auto again = outgoing();
  EXPECT_EQ(again->key, first->key);
  EXPECT_EQ(to_hex(again->bytes.view()), to_hex(first->bytes.view()));
  EXPECT_TRUE(is_open(completions[0]));
}

TEST_F(ProposerTest, OnlyOwnApplyResolvesAPromise) {
  propose();
  auto sent = outgoing();
  proposer.applied(applied_outcome(sent->key.sequence, 1, Nonce(78)));
  EXPECT_TRUE(is_open(completions[0]));
  proposer.applied(applied_outcome(sent->key.sequence, 1));
  EXPECT_FALSE(is_open(completions[0]));
  EXPECT_FALSE(outgoing());
  EXPECT_EQ(proposer.last_sequence(), sent->key.sequence);
}

TEST_F(ProposerTest, ARepeatedCopyOfAnEntryResolvesNothing) {
  propose();
  auto sent = outgoing();
  ApplyOutcome repeated = applied_outcome(sent->key.sequence, 0);
  repeated.verdict = EntryVerdict::kRepeated;
  proposer.applied(repeated);
  EXPECT_TRUE(is_open(completions[0]));
}

TEST_F(ProposerTest, WhatDidNotLandBeforeTheFenceIsProposedByTheNextIncarnationFirst) {
  propose(1);
  auto old = outgoing();
  proposer.outcome_unknown(old->key);
  propose(2);
  proposer.fenced();
  EXPECT_FALSE(outgoing());
  proposer.registered(Nonce(99), Incarnation(9));
  auto sent = outgoing();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->key, (EntryKey{Nonce(99), EntrySequence(2)}));
  auto entry = decode_entry(sent->bytes.view());
  EXPECT_EQ(entry->commands, (std::vector<Command>{AllocateProducerIds{1}, AllocateProducerIds{2}}));
}

TEST_F(ProposerTest, WhatLandedBeforeAReloadedSnapshotFailsAsUnknownAndIsNeverSentAgain) {
  propose();
  auto sent = outgoing();
  proposer.reloaded(EntrySequence(1));
  EXPECT_TRUE(is_open(completions[0])) << "the snapshot says that it has not landed";
  EXPECT_EQ(outgoing()->key, sent->key);
  proposer.reloaded(sent->key.sequence);
  EXPECT_FALSE(is_open(completions[0]));
  EXPECT_FALSE(outgoing());
}

TEST_F(ProposerTest, AFullLogEndsProposalsButKeepsThoseThatFreeRoom) {
  completions.emplace_back();
  proposer.propose({ObjectsDeleted{{ObjectId{kIncarnation, ObjectNumber(1)}}}}, completions.back());
  propose();
  auto sent = outgoing();
  proposer.refused_as_full(sent->key, "full");
  EXPECT_TRUE(is_open(completions[0]));
  EXPECT_FALSE(is_open(completions[1]));
  auto next = outgoing();
  EXPECT_EQ(next->key.sequence, sent->key.sequence) << "nothing was appended, the number is free";
  EXPECT_EQ(decode_entry(next->bytes.view())->commands.size(), 1u);
  EXPECT_EQ(sent->room, EntryRoom::kNormal);
  EXPECT_EQ(next->room, EntryRoom::kReserve);
}

TEST_F(ProposerTest, WhileTheLogIsFullWhatFreesRoomIsNotHeldUpByTheRest) {
  auto free_room = [this] {
    completions.emplace_back();
    proposer.propose({ObjectsDeleted{{ObjectId{kIncarnation, ObjectNumber(1)}}}}, completions.back());
  };
  free_room();
  propose();
  proposer.refused_as_full(outgoing()->key, "full");
  propose();  // comes between the one that waits and the next try
  auto sent = outgoing();
  EXPECT_EQ(sent->room, EntryRoom::kReserve);
  EXPECT_EQ(decode_entry(sent->bytes.view())->commands.size(), 1u);
}

TEST_F(ProposerTest, AFullLogDecidesNothingOnceTheFateIsInDoubt) {
  propose();
  auto sent = outgoing();
  proposer.outcome_unknown(sent->key);
  proposer.refused_as_full(sent->key, "full");
  EXPECT_TRUE(is_open(completions[0]));
  EXPECT_EQ(outgoing()->key, sent->key);
}

// While it is in doubt nothing else can go, not even what makes room.
TEST_F(ProposerTest, AnEntryInDoubtMayUseTheReserveOfAFullLog) {
  propose();
  auto sent = outgoing();
  EXPECT_EQ(sent->room, EntryRoom::kNormal);
  proposer.outcome_unknown(sent->key);
  proposer.refused_as_full(sent->key, "full");
  auto again = outgoing();
  EXPECT_EQ(again->room, EntryRoom::kReserve);
  EXPECT_EQ(to_hex(again->bytes.view()), to_hex(sent->bytes.view()));
}

// Its number may carry no other entry: the log would take that for this one, and this one's outcome for its.
TEST_F(ProposerTest, AFullLogDecidesNothingOnceTheEntryIsThere) {
  propose();
  auto sent = outgoing();
  proposer.appended(sent->key);
  propose();
  // Not seen applied in time, so it was sent again.
  proposer.refused_as_full(sent->key, "full");
  EXPECT_TRUE(is_open(completions[0]));
  EXPECT_EQ(to_hex(outgoing()->bytes.view()), to_hex(sent->bytes.view()));
}

TEST_F(ProposerTest, StoppingAnswersEverybody) {
  propose();
  auto sent = outgoing();
  ASSERT_TRUE(sent);
  propose();
  proposer.stop();
  EXPECT_FALSE(is_open(completions[0]));
  EXPECT_FALSE(is_open(completions[1]));
  propose();
  EXPECT_FALSE(is_open(completions[2]));
}

TEST_F(ProposerTest, CommitsOfOffsetsMayWaitUntilSomethingElseComesOrAnEntryIsFull) {
  auto commit = [this](size_t bytes) {
    completions.emplace_back();
    proposer.propose({CommitOffsets{.group = std::string(bytes, 'g')}}, completions.back());
  };
  commit(10);
  EXPECT_TRUE(proposer.may_wait());
  auto until = proposer.work_that_cannot_wait();
  commit(10);
  EXPECT_FALSE(until.is_set());
  propose();
  EXPECT_TRUE(until.is_set());
  EXPECT_FALSE(proposer.may_wait());
  EXPECT_TRUE(proposer.work_that_cannot_wait().is_set());
  auto sent = outgoing();
  EXPECT_EQ(decode_entry(sent->bytes.view())->commands.size(), 3U);
  proposer.applied(applied_outcome(sent->key.sequence, 3));

  until = proposer.work_that_cannot_wait();
  for (int i = 0; i < 3; ++i) commit(kMaxEntryBytes / 4);
  EXPECT_FALSE(until.is_set());
  commit(kMaxEntryBytes / 4);
  EXPECT_TRUE(until.is_set()) << "more than an entry holds";

  until = proposer.work_that_cannot_wait();
  EXPECT_TRUE(until.is_set());
}

TEST_F(ProposerTest, AnEntryHoldsAtMostItsLimit) {
  for (int i = 0; i < 40; ++i) {
    completions.emplace_back();
    CreateTopic topic;
    topic.name = std::string(30'000, 'x');
    proposer.propose({topic}, completions.back());
  }
  auto sent = outgoing();
  EXPECT_LE(sent->bytes.size(), kMaxEntryBytes);
  EXPECT_LT(decode_entry(sent->bytes.view())->commands.size(), 40u);

  completions.emplace_back();
  CreateTopic huge;
  huge.name = std::string(kMaxEntryBytes, 'x');
  proposer.propose({huge}, completions.back());
  EXPECT_FALSE(is_open(completions.back())) << "what can never fit is refused at once";
}

}  // namespace
}  // namespace varve::metadata
