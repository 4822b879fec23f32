#include "sim/scenarios/brokers_scenario.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "metadata/state/state.h"

namespace varve::sim {
namespace {

TEST(BrokersScenario, ExpectsEachRefusalOfApply) {
  for (const auto& [name, count] : metadata::State().refusal_counts()) {
    EXPECT_NE(std::ranges::find(kBrokersExpected, "apply." + name), kBrokersExpected.end()) << name;
  }
}

TEST(BrokersScenario, ReplaysASeedToTheSameHash) {
  Outcome first = run_brokers({.seed = 1});
  Outcome second = run_brokers({.seed = 1});
  EXPECT_EQ(first.verdict, Verdict::kPassed) << first.message;
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.steps, second.steps);
  EXPECT_EQ(first.happenings, second.happenings);
  EXPECT_NE(run_brokers({.seed = 2}).trace_hash, first.trace_hash);
}

}  // namespace
}  // namespace varve::sim
