#include "sim/scenarios/power_cut_scenario.h"

#include <gtest/gtest.h>

namespace varve::sim {
namespace {

TEST(PowerCutScenario, HasItsCutsInEachRunAndReplaysToTheSameHash) {
  Outcome first = run_power_cuts({.seed = 3});
  Outcome second = run_power_cuts({.seed = 3});
  EXPECT_EQ(first.verdict, Verdict::kPassed) << first.message;
  EXPECT_EQ(first.happenings.at("node.power_cut"), kPowerCutsPerRun);
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.happenings, second.happenings);
}

// Otherwise the cuts would show nothing.
TEST(PowerCutScenario, SeesThatADiskLost) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    found += run_power_cuts_on_lying_disk({.seed = seed}).verdict != Verdict::kPassed;
  }
  EXPECT_GE(found, 3);
}

}  // namespace
}  // namespace varve::sim
