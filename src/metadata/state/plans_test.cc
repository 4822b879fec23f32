// Fetch plans and time lookups, compared with a plain walk over all runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

class Plans : public ::testing::Test, public StateDriver {
 protected:
  Incarnation broker = register_broker(1);
  PartitionHandle partition = create_topic(broker, "t").at(0);

  void commit_run(uint32_t records, uint32_t bytes = 100, int64_t max_timestamp = 1000) {
    commit(broker,
           {{.partition = partition, .records = records, .bytes = bytes, .max_timestamp = max_timestamp}});
  }
  std::vector<int64_t> bases(std::optional<FetchPlan> plan) const {
    std::vector<int64_t> result;
    for (const StoredRun& run : plan.value().runs) result.push_back(run.base_offset.value());
    return result;
  }
  std::vector<int64_t> fetch(int64_t from, uint64_t max_bytes = UINT64_MAX) const {
    return bases(state.plan_fetch(partition, Offset(from), max_bytes, false));
  }
};

using Offsets = std::vector<int64_t>;

TEST_F(Plans, OfAnUnknownPartitionAreNone) {
  PartitionHandle unknown(77);
  EXPECT_FALSE(state.plan_fetch(unknown, Offset(0), 1, false).has_value());
  EXPECT_FALSE(state.plan_time_lookup(unknown, 0, Offset(0), 1).has_value());
  EXPECT_FALSE(state.plan_max_timestamp(unknown).has_value());
  EXPECT_FALSE(state.partition(unknown).has_value());
  EXPECT_FALSE(state.next_sequence(unknown, ProducerId(1), ProducerEpoch(0)).has_value());
}

TEST_F(Plans, BeginWithTheRunThatHoldsTheOffset) {
  for (int i = 0; i < 3; ++i) commit_run(10);
  EXPECT_EQ(fetch(0), (Offsets{0, 10, 20}));
  EXPECT_EQ(fetch(9), (Offsets{0, 10, 20}));
  EXPECT_EQ(fetch(10), (Offsets{10, 20}));
  EXPECT_EQ(fetch(29), (Offsets{20}));
}

TEST_F(Plans, CountARunByItsShareOfTheRecordsButNotLessThanAByteWhileAnyIsLeft) {
  commit_run(10, 100);
  commit_run(1'000, 10);
  std::vector<StoredRun> runs = state.plan_fetch(partition, Offset(0), UINT64_MAX, false)->runs;
  EXPECT_EQ(runs.at(0).bytes_from(Offset(-1)), 100u);
  EXPECT_EQ(runs[0].bytes_from(Offset(0)), 100u);
  EXPECT_EQ(runs[0].bytes_from(Offset(7)), 30u);
  EXPECT_EQ(runs[0].bytes_from(Offset(10)), 0u);
  EXPECT_EQ(runs.at(1).bytes_from(Offset(510)), 5u);
  EXPECT_EQ(runs[1].bytes_from(Offset(1'009)), 1u);
  EXPECT_EQ(runs[1].bytes_from(Offset(1'010)), 0u);
  EXPECT_EQ(runs[1].bytes_from(Offset(9'999)), 0u);
  StoredRun large{.bytes = UINT32_MAX, .records = INT32_MAX};
  EXPECT_EQ(large.bytes_from(Offset(1)), UINT32_MAX - 3) << "without overflow";
}

TEST_F(Plans, AreEmptyAtTheEndBeyondItAndBelowTheLogStart) {
  EXPECT_TRUE(fetch(0).empty());
  commit_run(10);
  commit_run(10);
  propose(broker, SetLogStart{partition, Offset(12)});
  EXPECT_TRUE(fetch(20).empty());
  EXPECT_TRUE(fetch(21).empty());
  EXPECT_TRUE(fetch(11).empty());
  EXPECT_TRUE(fetch(-1).empty());
  EXPECT_EQ(fetch(12), (Offsets{10}));
}

TEST_F(Plans, StopOnceTheBytesAreThereButNeverBeforeOneRun) {
  for (int i = 0; i < 4; ++i) commit_run(1, 100);
  EXPECT_EQ(fetch(0, 0), (Offsets{0}));
  EXPECT_EQ(fetch(0, 100), (Offsets{0}));
  EXPECT_EQ(fetch(0, 101), (Offsets{0, 1}));
  EXPECT_EQ(fetch(0, 400), (Offsets{0, 1, 2, 3}));
}

TEST_F(Plans, CarryThePartitionAndTheRunAsTheyAre) {
  CommitObject object =
      object_of(broker, {{.partition = partition, .records = 3, .bytes = 77, .max_timestamp = 55}});
  propose(broker, object);
  FetchPlan plan = *state.plan_fetch(partition, Offset(0), 1, true);
  EXPECT_EQ(plan.partition.high_watermark, Offset(3));
  EXPECT_EQ(plan.partition.last_stable, Offset(3));
  EXPECT_EQ(plan.partition.log_start, Offset(0));
  EXPECT_TRUE(plan.aborted.empty());
  const StoredRun& run = plan.runs.at(0);
  EXPECT_EQ(run.object, object.object);
  EXPECT_EQ(run.position, 64u);
  EXPECT_EQ(run.bytes, 77u);
  EXPECT_EQ(run.records, 3u);
  EXPECT_EQ(run.max_timestamp, 55);
  EXPECT_EQ(run.append_time, -1);
  EXPECT_FALSE(run.is_log_append_time || run.is_transactional || run.is_marker);
}

TEST_F(Plans, OfAppendTimeRunsGoByTheAppendTime) {
  commit(broker, {{.partition = partition, .max_timestamp = 9'999'999, .is_log_append_time = true}});
  const StoredRun run = state.plan_fetch(partition, Offset(0), 1, false)->runs.at(0);
  EXPECT_TRUE(run.is_log_append_time);
  EXPECT_EQ(run.append_time, time.value());
  EXPECT_EQ(run.max_timestamp, time.value());
  EXPECT_TRUE(bases(state.plan_time_lookup(partition, time.value() + 1, Offset(0), 9)).empty());
  EXPECT_EQ(bases(state.plan_time_lookup(partition, time.value(), Offset(0), 9)), (Offsets{0}));
}

TEST_F(Plans, ForATimeNameTheRunsThatMayHoldIt) {
  for (int64_t timestamp : {100, 300, 200, 50, 400}) commit_run(1, 100, timestamp);
  auto lookup = [&](int64_t timestamp, int64_t from = 0, size_t max = 99) {
    return bases(state.plan_time_lookup(partition, timestamp, Offset(from), max));
  };
  EXPECT_EQ(lookup(0), (Offsets{0, 1, 2, 3, 4}));
  EXPECT_EQ(lookup(150), (Offsets{1, 2, 4}));
  EXPECT_EQ(lookup(150, 0, 2), (Offsets{1, 2}));
  EXPECT_EQ(lookup(150, 2), (Offsets{2, 4}));
  EXPECT_EQ(lookup(400), (Offsets{4}));
  EXPECT_TRUE(lookup(401).empty());
  EXPECT_TRUE(lookup(0, 5).empty());
  propose(broker, SetLogStart{partition, Offset(2)});
  EXPECT_EQ(lookup(150), (Offsets{2, 4}));
}

TEST_F(Plans, TheLargestTimestampIsTheFirstOfEquals) {
  EXPECT_TRUE(bases(state.plan_max_timestamp(partition)).empty());
  for (int64_t timestamp : {100, 300, 200, 300}) commit_run(1, 100, timestamp);
  EXPECT_EQ(bases(state.plan_max_timestamp(partition)), (Offsets{1}));
  propose(broker, SetLogStart{partition, Offset(2)});
  EXPECT_EQ(bases(state.plan_max_timestamp(partition)), (Offsets{3}));
}

TEST_F(Plans, OfALongPartitionAgreeWithAWalkOverAllRuns) {
  Random random(3);
  for (int i = 0; i < 1500; ++i) {
    commit_run(static_cast<uint32_t>(random.below(5) + 1), static_cast<uint32_t>(random.below(100) + 1),
               random.between(0, 100'000));
  }
  for (int round = 0; round < 4; ++round) {
    PartitionView view = *state.partition(partition);
    std::vector<StoredRun> all = state.plan_fetch(partition, view.log_start, UINT64_MAX, false)->runs;
    for (int i = 0; i < 300; ++i) {
      int64_t from = random.between(view.log_start.value(), view.high_watermark.value());
      uint64_t max_bytes = random.below(3000);
      int64_t timestamp = random.between(90'000, 100'000);
      Offsets fetched;
      Offsets timed;
      uint64_t bytes = 0;
      for (const StoredRun& run : all) {
        if (run.end_offset().value() <= from) continue;
        if (fetched.empty() || bytes < max_bytes) {
          fetched.push_back(run.base_offset.value());
          // Of the first run only what is asked for counts, by its share of the records.
          int64_t skipped = std::max<int64_t>(0, from - run.base_offset.value());
          bytes += run.bytes * static_cast<uint64_t>(run.records - skipped) / run.records;
        }
        if (run.max_timestamp >= timestamp && timed.size() < 10) timed.push_back(run.base_offset.value());
      }
      ASSERT_EQ(fetch(from, max_bytes), fetched);
      ASSERT_EQ(bases(state.plan_time_lookup(partition, timestamp, Offset(from), 10)), timed);
    }
    auto latest = std::max_element(all.begin(), all.end(), [](const StoredRun& a, const StoredRun& b) {
      return a.max_timestamp < b.max_timestamp;
    });
    ASSERT_EQ(bases(state.plan_max_timestamp(partition)), (Offsets{latest->base_offset.value()}));
    int64_t middle = (view.log_start.value() + view.high_watermark.value()) / 2;
    propose(broker, SetLogStart{partition, Offset(middle)});
  }
}

}  // namespace
}  // namespace varve::metadata
