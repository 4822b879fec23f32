// The planted bugs of apply do what they are named for: on a history that a sound state answers rightly, a state
// with the bug answers otherwise, and without a bug nothing differs.
#include <gtest/gtest.h>

#include "metadata/state/random_history.h"
#include "sim/planted_bug_names.h"

namespace varve::sim {
namespace {

using metadata::ApplyOutcome;
using metadata::RandomHistory;
using metadata::State;

PlantedBugs planted(std::string_view name) {
  PlantedBugs bugs;
  EXPECT_TRUE(plant(bugs, name));
  return bugs;
}

// Histories in which a state with `bugs`, of broker 1, comes to another hash than the sound one.
int histories_that_differ(PlantedBugs bugs) {
  int differ = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RandomHistory history(seed);
    State state(bugs);
    state.set_local_broker(BrokerId(1));
    for (int i = 0; i < 300; ++i) {
      RandomHistory::Step step = history.next();
      state.apply(step.position, step.bytes);
    }
    if (state.hash() != history.state.hash()) ++differ;
  }
  return differ;
}

TEST(PlantedApply, NothingDiffersWithoutABug) { EXPECT_EQ(histories_that_differ({}), 0); }

TEST(PlantedApply, ReadingTheLocalBrokerShowsInTheHash) {
  EXPECT_GT(histories_that_differ(planted("apply_reads_local_broker")), 10);
}
TEST(PlantedApply, WithoutTheSequenceCheckRepeatedEntriesApply) {
  EXPECT_GT(histories_that_differ(planted("no_sequence_check")), 10);
}
TEST(PlantedApply, WithoutTheFenceCheckFencedBrokersWrite) {
  EXPECT_GT(histories_that_differ(planted("no_fence_check")), 10);
}
TEST(PlantedApply, ARunCommitsTwice) { EXPECT_GT(histories_that_differ(planted("run_commits_twice")), 10); }
TEST(PlantedApply, AnObjectBelowTheFenceIsReferredToAgain) {
  EXPECT_GT(histories_that_differ(planted("delete_without_fence")), 10);
}

}  // namespace
}  // namespace varve::sim
