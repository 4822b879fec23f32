// Idempotence: what apply answers to batches with a producer id (KIP-98).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

using ::testing::ElementsAre;
using enum BatchVerdict;

class Producer : public ::testing::Test, public StateDriver {
 protected:
  Incarnation broker = register_broker(1);
  PartitionHandle partition = create_topic(broker, "t").at(0);

  BatchOutcome send(ProducerBatch one) { return commit_batches(broker, partition, {one}).at(0); }
  BatchVerdict verdict(int64_t producer, int16_t epoch, int32_t first, uint32_t records = 1) {
    return send(batch(producer, epoch, first, records)).verdict;
  }
  std::optional<Sequence> next(int64_t producer, int16_t epoch = 0) const {
    return state.next_sequence(partition, ProducerId(producer), ProducerEpoch(epoch));
  }
};

TEST_F(Producer, ThatIsUnknownMustStartAtZero) {
  EXPECT_EQ(next(1), std::nullopt);
  EXPECT_EQ(verdict(1, 0, 1), kOutOfOrder);
  EXPECT_EQ(next(1), std::nullopt);
  EXPECT_EQ(verdict(1, 0, 0, 3), kAccepted);
  EXPECT_EQ(next(1), Sequence(3));
}

TEST_F(Producer, GetsTheOriginalOffsetForADuplicateOfAnyKeptBatch) {
  commit(broker, {{.partition = partition, .records = 10}});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(verdict(1, 0, i * 2, 2), kAccepted);
  for (int i = 0; i < 5; ++i) {
    BatchOutcome outcome = send(batch(1, 0, i * 2, 2));
    EXPECT_EQ(outcome.verdict, kDuplicate);
    EXPECT_EQ(outcome.base_offset, Offset(10 + i * 2));
  }
  EXPECT_EQ(high_watermark(partition), 20);
}

TEST_F(Producer, IsOutOfOrderBelowTheKeptBatchesInAGapAndWhereBatchesOverlap) {
  for (int i = 0; i < 6; ++i) EXPECT_EQ(verdict(1, 0, i * 2, 2), kAccepted);
  EXPECT_EQ(verdict(1, 0, 0, 2), kOutOfOrder) << "the sixth before last is forgotten";
  EXPECT_EQ(verdict(1, 0, 2, 2), kDuplicate);
  EXPECT_EQ(verdict(1, 0, 10, 1), kOutOfOrder) << "first known, last not";
  EXPECT_EQ(verdict(1, 0, 11, 1), kOutOfOrder) << "last known, first not";
  EXPECT_EQ(verdict(1, 0, 13, 1), kOutOfOrder) << "a gap";
  EXPECT_EQ(verdict(1, 0, 12, 1), kAccepted);
}

TEST_F(Producer, KeepsAsManyBatchesAsTheLimitInStateSays) {
  EXPECT_EQ(propose(broker, SetLimits{.producer_batches_kept = 2}).verdict, CommandVerdict::kDone);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(verdict(1, 0, i), kAccepted);
  EXPECT_EQ(verdict(1, 0, 1), kOutOfOrder);
  EXPECT_EQ(verdict(1, 0, 2), kDuplicate);
  EXPECT_EQ(propose(broker, SetLimits{.producer_batches_kept = 1}).verdict, CommandVerdict::kDone);
  EXPECT_EQ(verdict(1, 0, 4), kAccepted);
  EXPECT_EQ(verdict(1, 0, 3), kOutOfOrder);
  EXPECT_EQ(verdict(1, 0, 4), kDuplicate);
}

TEST_F(Producer, OfAnOlderEpochIsStaleAndANewerOneStartsAtZero) {
  EXPECT_EQ(verdict(1, 3, 0), kAccepted);
  EXPECT_EQ(verdict(1, 2, 0), kStaleEpoch);
  EXPECT_EQ(verdict(1, 2, 1), kStaleEpoch);
  EXPECT_EQ(next(1, 2), std::nullopt);
  EXPECT_EQ(next(1, 4), Sequence(0));
  EXPECT_EQ(verdict(1, 4, 1), kOutOfOrder);
  EXPECT_EQ(verdict(1, 3, 1), kAccepted) << "a refused epoch changes nothing";
  EXPECT_EQ(verdict(1, 4, 0), kAccepted);
  EXPECT_EQ(verdict(1, 3, 2), kStaleEpoch);
  EXPECT_EQ(verdict(1, 4, 0), kDuplicate);
}

TEST_F(Producer, IsKnownPerPartition) {
  PartitionHandle other = create_topic(broker, "other").at(0);
  EXPECT_EQ(verdict(1, 0, 0), kAccepted);
  EXPECT_THAT(verdicts_of(commit_batches(broker, other, {batch(1, 0, 1)})), ElementsAre(kOutOfOrder));
  EXPECT_THAT(verdicts_of(commit_batches(broker, other, {batch(1, 0, 0)})), ElementsAre(kAccepted));
}

TEST_F(Producer, ARefusedBatchMakesTheLaterOnesOfItsRunOutOfOrder) {
  auto outcomes =
      commit_batches(broker, partition, {batch(1, 0, 1), batch(1, 0, 2), batch(2, 0, 0), batch(1, 0, 0)});
  EXPECT_THAT(verdicts_of(outcomes), ElementsAre(kOutOfOrder, kOutOfOrder, kAccepted, kAccepted));
}

TEST_F(Producer, BatchesWithoutAnIdAmongOthersAreTakenAsTheyAre) {
  auto outcomes = commit_batches(broker, partition, {batch(1, 0, 0), batch(-1, -1, -1), batch(-1, -1, -1)});
  EXPECT_THAT(verdicts_of(outcomes), ElementsAre(kAccepted, kAccepted, kAccepted));
  EXPECT_EQ(high_watermark(partition), 3);
}

// C028: sequences wrap from 2147483647 to 0, also inside a batch. A fresh producer may not start there here, so
// the state is brought there in batches of the largest count that a batch can have.
TEST_F(Producer, C028SequencesWrapAlsoInsideABatch) {
  uint32_t most = 2147483646;
  ASSERT_EQ(verdict(1, 0, 0, most), kAccepted);
  ASSERT_EQ(next(1), Sequence(2147483646));
  EXPECT_EQ(verdict(1, 0, 2147483646, 3), kAccepted);
  EXPECT_EQ(next(1), Sequence(1));
  EXPECT_EQ(verdict(1, 0, 0, 1), kOutOfOrder);
  EXPECT_EQ(verdict(1, 0, 1, 1), kAccepted);
  EXPECT_EQ(verdict(1, 0, 2147483646, 3), kDuplicate);

  ASSERT_EQ(verdict(2, 0, 0, most), kAccepted);
  ASSERT_EQ(verdict(2, 0, 2147483646, 1), kAccepted);
  ASSERT_EQ(next(2), Sequence(2147483647));
  EXPECT_EQ(verdict(2, 0, 2147483647, 1), kAccepted);
  EXPECT_EQ(next(2), Sequence(0));
  EXPECT_EQ(verdict(2, 0, 0, 1), kAccepted);
}

TEST_F(Producer, WithAnIdFromBeforeTheTopicMayStartAnywhere) {
  propose(broker, AllocateProducerIds{100});
  partition = create_topic(broker, "later").at(0);
  EXPECT_EQ(verdict(100, 0, 7), kOutOfOrder) << "handed out after the topic was made";
  EXPECT_EQ(verdict(99, 0, 7), kAccepted);
  EXPECT_EQ(verdict(99, 0, 9), kOutOfOrder) << "known from then on";
  EXPECT_EQ(verdict(99, 0, 8), kAccepted);
}

TEST_F(Producer, IsForgottenWhenIdleAndMayThenGoOnWhereItWas) {
  ASSERT_EQ(propose(broker, SetLimits{.producer_expiry_ms = 1000}).verdict, CommandVerdict::kDone);
  propose(broker, AllocateProducerIds{10});
  EXPECT_EQ(verdict(1, 0, 0), kAccepted);
  int64_t written = state.log_time();
  time = time.plus(5000);
  EXPECT_EQ(verdict(2, 0, 0), kAccepted);
  EXPECT_EQ(propose(broker, ExpireProducers{state.log_time() - 999}).detail, "cutoff_too_late");
  EXPECT_EQ(propose(broker, ExpireProducers{written}).verdict, CommandVerdict::kDone);
  EXPECT_EQ(next(1), Sequence(1)) << "not older than the cut";
  EXPECT_EQ(propose(broker, ExpireProducers{written + 1}).verdict, CommandVerdict::kDone);
  EXPECT_EQ(next(1), std::nullopt);
  EXPECT_EQ(next(2), Sequence(1));
  EXPECT_EQ(verdict(1, 0, 1), kAccepted);
  EXPECT_EQ(verdict(3, 0, 4), kAccepted) << "handed out before the expiry";
  EXPECT_EQ(verdict(10, 0, 4), kOutOfOrder) << "handed out after it";
}

TEST_F(Producer, ARefusedExpiryDoesNotLetUnknownProducersIn) {
  propose(broker, AllocateProducerIds{10});
  EXPECT_EQ(propose(broker, ExpireProducers{INT64_MAX}).verdict, CommandVerdict::kRefused);
  EXPECT_EQ(verdict(1, 0, 4), kOutOfOrder);
}

TEST_F(Producer, ADuplicateGetsTheAppendTimeOfItsOriginalWhileThatIsThere) {
  auto stamped = [&](int32_t first) {
    return commit(broker,
                  {{.partition = partition, .producers = {batch(1, 0, first)}, .is_log_append_time = true}})
        .runs.at(0)
        .batches.at(0);
  };
  int64_t original = stamped(0).append_time;
  time = time.plus(1000);
  EXPECT_NE(stamped(1).append_time, original);
  EXPECT_EQ(stamped(0).verdict, kDuplicate);
  EXPECT_EQ(stamped(0).append_time, original);
  propose(broker, SetLogStart{partition, Offset(1)});
  EXPECT_EQ(stamped(0).append_time, -1);
  EXPECT_EQ(stamped(0).log_start, Offset(1));
}

TEST_F(Producer, IdsAreHandedOutInBlocksThatNeverMeet) {
  Incarnation other = register_broker(2);
  EXPECT_EQ(propose(broker, AllocateProducerIds{1000}).first_producer_id, ProducerId(0));
  EXPECT_EQ(propose(other, AllocateProducerIds{5}).first_producer_id, ProducerId(1000));
  EXPECT_EQ(propose(broker, AllocateProducerIds{1}).first_producer_id, ProducerId(1005));
  EXPECT_EQ(propose(broker, AllocateProducerIds{0}).detail, "bad_count");
}

}  // namespace
}  // namespace varve::metadata
