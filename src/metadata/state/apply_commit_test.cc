// Commits: offsets, verdicts per batch, each run once, contradictions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using enum BatchVerdict;

class Commit : public ::testing::Test, public StateDriver {
 protected:
  Incarnation broker = register_broker(1);
  std::vector<PartitionHandle> partitions = create_topic(broker, "t", 3);

  std::vector<StoredRun> runs_of(PartitionHandle partition) const {
    return state.plan_fetch(partition, state.partition(partition)->log_start, UINT64_MAX, false)->runs;
  }
  std::vector<BatchVerdict> verdicts(const CommandOutcome& outcome) const {
    std::vector<BatchVerdict> result;
    for (const RunOutcome& run : outcome.runs) {
      for (const BatchOutcome& batch : run.batches) result.push_back(batch.verdict);
    }
    return result;
  }
};

TEST_F(Commit, GivesDenseOffsetsPerPartitionInTheOrderOfRuns) {
  CommandOutcome outcome = commit(broker, {{.partition = partitions[0], .records = 5},
                                           {.partition = partitions[1], .records = 7},
                                           {.partition = partitions[0], .records = 2}});
  EXPECT_EQ(outcome.runs[0].batches[0].base_offset, Offset(0));
  EXPECT_EQ(outcome.runs[1].batches[0].base_offset, Offset(0));
  EXPECT_EQ(outcome.runs[2].batches[0].base_offset, Offset(5));
  EXPECT_EQ(high_watermark(partitions[0]), 7);
  EXPECT_EQ(high_watermark(partitions[1]), 7);
  EXPECT_EQ(high_watermark(partitions[2]), 0);
}

TEST_F(Commit, TellsWhichPartitionsHaveNewRecordsOnceEach) {
  CommitObject object = object_of(broker, {{.partition = partitions[1]},
                                           {.partition = partitions[0]},
                                           {.partition = partitions[1]},
                                           {.partition = PartitionHandle(99)}});
  ApplyOutcome outcome = apply(entry_of(broker, {object}));
  EXPECT_THAT(outcome.changed_partitions, ElementsAre(partitions[0], partitions[1]));
}

TEST_F(Commit, JoinsRunsThatFollowEachOtherInOneObject) {
  commit(broker, {{.partition = partitions[0], .records = 5, .bytes = 50, .max_timestamp = 9},
                  {.partition = partitions[0], .records = 2, .bytes = 20, .max_timestamp = 4}});
  auto runs = runs_of(partitions[0]);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].max_timestamp, 9);
  commit(broker, {{.partition = partitions[1], .max_timestamp = 4},
                  {.partition = partitions[1], .max_timestamp = 9}});
  EXPECT_EQ(runs_of(partitions[1]).at(0).max_timestamp, 9);
  EXPECT_EQ(runs[0].records, 7u);
  EXPECT_EQ(runs[0].bytes, 70u);
}

TEST_F(Commit, DoesNotJoinRunsOfDifferentFlagsObjectsOrPlaces) {
  commit(broker, {{.partition = partitions[0]}, {.partition = partitions[0], .is_log_append_time = true}});
  commit(broker, {{.partition = partitions[0], .is_log_append_time = true}});
  commit(broker, {{.partition = partitions[0], .is_log_append_time = true},
                  {.partition = partitions[1]},
                  {.partition = partitions[0], .is_log_append_time = true}});
  EXPECT_EQ(runs_of(partitions[0]).size(), 5u);
}

TEST_F(Commit, SplitsARunWhereABatchIsRefused) {
  std::vector<BatchOutcome> outcomes = commit_batches(
      broker, partitions[0],
      {batch(1, 0, 0, 2, 10), batch(2, 0, 5, 3, 20), batch(1, 0, 2, 4, 30), batch(1, 0, 6, 1, 7)});
  EXPECT_THAT(verdicts_of(outcomes), ElementsAre(kAccepted, kOutOfOrder, kAccepted, kAccepted));
  EXPECT_EQ(outcomes[2].base_offset, Offset(2));
  EXPECT_EQ(outcomes[3].base_offset, Offset(6));
  auto runs = runs_of(partitions[0]);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].position, 64u);
  EXPECT_EQ(runs[0].bytes, 10u);
  EXPECT_EQ(runs[0].records, 2u);
  EXPECT_EQ(runs[1].position, 94u);
  EXPECT_EQ(runs[1].bytes, 37u);
  EXPECT_EQ(runs[1].base_offset, Offset(2));
  EXPECT_EQ(runs[1].records, 5u);
}

TEST_F(Commit, CommitsEachRunAtMostOnceOverManyEntries) {
  CommitObject whole = object_of(
      broker, {{.partition = partitions[0]}, {.partition = partitions[1]}, {.partition = partitions[2]}});
  CommitObject first = whole;
  first.runs = {whole.runs[0], whole.runs[2]};
  CommitObject second = whole;
  second.runs = {whole.runs[1], whole.runs[2]};
  EXPECT_THAT(verdicts(propose(broker, first)), ElementsAre(kAccepted, kAccepted));
  EXPECT_THAT(verdicts(propose(broker, second)), ElementsAre(kAccepted, kAlreadyCommitted));
  EXPECT_THAT(verdicts(propose(broker, whole)), Each(kAlreadyCommitted))
      << "the bitmap is gone, the fact is not";
  for (PartitionHandle partition : partitions) EXPECT_EQ(high_watermark(partition), 1);
}

TEST_F(Commit, ARunTwiceInOneCommandCommitsOnce) {
  CommitObject object = object_of(broker, {{.partition = partitions[0]}, {.partition = partitions[0]}});
  object.runs[1] = object.runs[0];
  EXPECT_THAT(verdicts(propose(broker, object)), ElementsAre(kAccepted, kAlreadyCommitted));
  EXPECT_EQ(high_watermark(partitions[0]), 1);
}

TEST_F(Commit, ARefusalOfARunIsFinal) {
  CommitObject object = object_of(broker, {{.partition = partitions[0], .producers = {batch(1, 0, 5)}}});
  EXPECT_THAT(verdicts(propose(broker, object)), ElementsAre(kOutOfOrder));
  commit_batches(broker, partitions[0], {batch(1, 0, 0, 5)});
  EXPECT_THAT(verdicts(propose(broker, object)), ElementsAre(kAlreadyCommitted));
}

TEST_F(Commit, IntoAnUnknownPartitionIsRefusedAndTheRestIsTaken) {
  EXPECT_THAT(verdicts(commit(broker, {{.partition = PartitionHandle(1000)}, {.partition = partitions[0]}})),
              ElementsAre(kUnknownPartition, kAccepted));
}

TEST_F(Commit, OfATransactionalRunIsRefusedWithoutAnOpenTransaction) {
  CommandOutcome outcome = commit(
      broker,
      {{.partition = partitions[0], .producers = {batch(1, 0, 0), batch(1, 0, 1)}, .is_transactional = true},
       {.partition = partitions[0]}});
  EXPECT_THAT(verdicts(outcome), ElementsAre(kInvalidTxnState, kInvalidTxnState, kAccepted));
}

TEST_F(Commit, AnObjectBelowTheFenceIsRefusedForEverEvenIfItIsReferenced) {
  CommitObject whole = object_of(broker, {{.partition = partitions[0]}, {.partition = partitions[1]}});
  CommitObject first = whole;
  first.runs.pop_back();
  propose(broker, first);
  propose(broker, AdvanceGcFence{FenceEpoch(1)});
  EXPECT_THAT(verdicts(propose(broker, whole)), Each(kObjectFenced));
  EXPECT_EQ(high_watermark(partitions[1]), 0);
  EXPECT_EQ(refusals("batch.object_fenced"), 2u);
}

TEST_F(Commit, ANewIncarnationMayCommitAnObjectOfAnEarlierOneButNoOtherBroker) {
  CommitObject object = object_of(broker, {{.partition = partitions[0]}});
  Incarnation other = register_broker(2);
  EXPECT_THAT(verdicts(propose(other, object)), ElementsAre(kBadRun));
  Incarnation next = register_broker(1);
  EXPECT_THAT(verdicts(propose(next, object)), ElementsAre(kAccepted));
}

class ContradictoryRun : public Commit {
 protected:
  void expect_bad(const CommitObject& object) {
    uint64_t hash_before = state.pending_deletions();
    EXPECT_THAT(verdicts(propose(broker, object)), Each(kBadRun));
    EXPECT_EQ(high_watermark(partitions[0]), 0);
    EXPECT_EQ(state.pending_deletions(), hash_before);
    EXPECT_FALSE(state.knows_object(object.object));
  }
  CommitObject good =
      object_of(broker, {{.partition = partitions[0], .producers = {batch(1, 0, 0, 2), batch(1, 0, 2)}}});
};

TEST_F(ContradictoryRun, OutsideItsObjectIsBad) {
  good.bytes = good.runs[0].position + good.runs[0].bytes - 1;
  expect_bad(good);
  good.bytes = 10;
  expect_bad(good);
  good.bytes = UINT64_MAX;
  good.runs[0].position = UINT64_MAX - 1;
  expect_bad(good);
}

TEST_F(ContradictoryRun, OfNoRecordsOrNoBytesIsBad) {
  CommitObject object = good;
  object.runs[0].records = 0;
  expect_bad(object);
  object = good;
  object.runs[0].bytes = 0;
  expect_bad(object);
}

TEST_F(ContradictoryRun, WhoseProducersDoNotAddUpIsBad) {
  for (auto change : {+[](ProducerBatch& b) { b.bytes += 1; }, +[](ProducerBatch& b) { b.records += 1; },
                      +[](ProducerBatch& b) { b.records = 0; }, +[](ProducerBatch& b) { b.bytes = 0; },
                      +[](ProducerBatch& b) { b.producer_id = ProducerId(-2); },
                      +[](ProducerBatch& b) { b.epoch = ProducerEpoch(-1); },
                      +[](ProducerBatch& b) { b.first_sequence = Sequence(-5); }}) {
    CommitObject object = good;
    change(object.runs[0].producers[1]);
    expect_bad(object);
  }
}

TEST_F(ContradictoryRun, BeyondTheRunCountIsBad) {
  good.runs[0].index = 1;
  expect_bad(good);
}

TEST_F(ContradictoryRun, OfAnImpossibleObjectIsBad) {
  CommitObject object = good;
  object.object.number = ObjectNumber(0);
  expect_bad(object);
  object = good;
  object.object.incarnation = Incarnation(12345);
  expect_bad(object);
  object = good;
  object.epoch = FenceEpoch(1);
  expect_bad(object);
  object = good;
  object.run_count = kRunsPerObjectMax + 1;
  expect_bad(object);
  object = good;
  object.bytes = kObjectBytesMax;
  expect_bad(object);
}

TEST_F(ContradictoryRun, OfAnObjectThatIsKnownOtherwiseIsBad) {
  propose(broker, AdvanceGcFence{FenceEpoch(1)});
  CommitObject whole = object_of(broker, {{.partition = partitions[0]}, {.partition = partitions[1]}});
  CommitObject first = whole;
  first.runs.pop_back();
  propose(broker, first);
  for (auto change : {+[](CommitObject& o) { ++o.bytes; }, +[](CommitObject& o) { ++o.crc; },
                      +[](CommitObject& o) { ++o.run_count; }}) {
    CommitObject object = whole;
    change(object);
    EXPECT_THAT(verdicts(propose(broker, object)), Each(kBadRun));
  }
  EXPECT_THAT(verdicts(propose(broker, whole)), ElementsAre(kAlreadyCommitted, kAccepted));
}

TEST_F(ContradictoryRun, DoesNotUseUpItsIndex) {
  CommitObject bad = good;
  bad.runs[0].records += 1;
  expect_bad(bad);
  EXPECT_THAT(verdicts(propose(broker, good)), ElementsAre(kAccepted, kAccepted));
}

}  // namespace
}  // namespace varve::metadata
