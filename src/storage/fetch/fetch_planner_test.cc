#include "storage/fetch/fetch_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"

namespace varve::storage {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class FetchPlannerTest : public testing::Test {
 protected:
  void commit(uint32_t bytes, uint32_t records) {
    driver_.commit(broker_, {{.partition = partition_, .records = records, .bytes = bytes}});
  }
  PlannedPartition plan(int64_t from, uint32_t bytes_max, const SequentialReaders* readers = nullptr) {
    FetchRequest request{.partitions = {{partition_, Offset(from), bytes_max}}};
    PlanOptions options{.log_id = {}, .readers = readers, .read_ahead_bytes = 1'000};
    return plan_fetch(driver_.state, request, options).partitions.at(0);
  }

  metadata::StateDriver driver_;
  Incarnation broker_ = driver_.register_broker(1);
  PartitionHandle partition_ = driver_.create_topic(broker_, "t").at(0);
};

TEST_F(FetchPlannerTest, takes_runs_until_they_have_the_bytes_asked_for) {
  for (int i = 0; i < 3; ++i) commit(100, 10);
  EXPECT_THAT(plan(0, 100).runs, SizeIs(1));
  EXPECT_THAT(plan(0, 101).runs, SizeIs(2));
  EXPECT_THAT(plan(5, 50).runs, SizeIs(1));
  EXPECT_THAT(plan(5, 51).runs, SizeIs(2));
  EXPECT_EQ(plan(5, 1'000).bytes_estimate, 250u);
}

// Cluster state and the planner must agree on what a run has, or a run that nobody wants is read.
TEST_F(FetchPlannerTest, reads_nothing_ahead_for_a_reader_who_does_not_go_on) {
  commit(5, 10);
  commit(100, 1);
  for (int64_t from = 0; from <= 10; ++from) {
    for (uint32_t bytes_max = 0; bytes_max <= 10; ++bytes_max) {
      PlannedPartition planned = plan(from, bytes_max);
      EXPECT_THAT(planned.read_ahead, IsEmpty()) << "from " << from << ", " << bytes_max << " bytes";
      EXPECT_FALSE(planned.runs.empty());
    }
  }
}

TEST_F(FetchPlannerTest, reads_ahead_for_a_reader_who_goes_on) {
  for (int i = 0; i < 3; ++i) commit(100, 10);
  SequentialReaders readers;
  readers.note(partition_, Offset(0), Offset(10));
  PlannedPartition planned = plan(10, 1, &readers);
  EXPECT_THAT(planned.runs, SizeIs(1));
  EXPECT_THAT(planned.read_ahead, SizeIs(1));
}

}  // namespace
}  // namespace varve::storage
