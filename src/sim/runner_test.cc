#include "sim/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <sstream>

#include "base/check.h"
#include "sim/coverage.h"
#include "sim/planted_bug_names.h"
#include "sim/toy_scenario.h"

namespace varve::sim {
namespace {

constexpr std::array<std::string_view, 2> kExpected = {"often", "never"};

Outcome passed(const RunOptions& options) {
  Outcome outcome;
  outcome.trace_hash = options.seed;
  outcome.happenings = {{"often", 3}};
  return outcome;
}

Outcome wrong_at_7(const RunOptions& options) {
  Outcome outcome = passed(options);
  if (options.seed == 7) outcome = {.verdict = Verdict::kWrong, .message = "two winners", .happenings = {}};
  return outcome;
}

Outcome stuck_at_7(const RunOptions& options) {
  Outcome outcome = passed(options);
  if (options.seed == 7) outcome = {.verdict = Verdict::kStuck, .message = "not done", .happenings = {}};
  return outcome;
}

Outcome crash_at_7(const RunOptions& options) {
  World world({.seed = options.seed});
  CHECK(options.seed != 7, "a bug");
  return passed(options);
}

Outcome wrong_if_planted(const RunOptions& options) {
  Outcome outcome = passed(options);
  if (options.bugs.no_fence_check && options.seed == 4) outcome.verdict = Verdict::kWrong;
  return outcome;
}

// A hash that differs each time, as from an address or a clock.
Outcome never_the_same(const RunOptions&) {
  static uint64_t calls = 0;
  Outcome outcome;
  outcome.trace_hash = ++calls;
  return outcome;
}

struct Ran {
  int code;
  std::string text;
};

Ran run(Outcome (*function)(const RunOptions&), RunnerOptions options) {
  Scenario scenario{"test", "", function, kExpected};
  std::FILE* out = std::tmpfile();
  options.out = out;
  int code = run_seeds(scenario, options);
  std::rewind(out);
  std::string text(100'000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  return {code, text};
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Runner, PassesWhenAllSeedsPassAndPrintsTheTable) {
  Ran ran = run(passed, {.seeds = 40});
  EXPECT_EQ(ran.code, kExitPassed);
  EXPECT_TRUE(contains(ran.text, "often")) << ran.text;
  EXPECT_TRUE(contains(ran.text, "test: 40 seeds from 1,")) << ran.text;
  EXPECT_FALSE(contains(ran.text, " 0 replayed")) << "one seed in twenty is replayed";
}

TEST(Runner, StopsAtAWrongSeedWithALineThatRepeatsIt) {
  Ran ran = run(wrong_at_7, {.seeds = 40});
  EXPECT_EQ(ran.code, kExitWrong);
  EXPECT_TRUE(contains(ran.text, "WRONG: two winners")) << ran.text;
  EXPECT_TRUE(contains(ran.text, "varve_sim --scenario test --seed 7\n")) << ran.text;
  EXPECT_EQ(run(wrong_at_7, {.first_seed = 8, .seeds = 10}).code, kExitPassed);
}

TEST(Runner, TellsStuckFromWrong) { EXPECT_EQ(run(stuck_at_7, {.seeds = 40}).code, kExitStuck); }

TEST(Runner, ACrashEndsTheProcessWithItsCodeAndTheLine) {
  EXPECT_EXIT(run(crash_at_7, {.seeds = 40}), testing::ExitedWithCode(kExitCrash),
              "CRASHED: varve_sim --scenario test --seed 7");
}

TEST(Runner, AReplayThatDiffersIsWrong) {
  Ran ran = run(never_the_same, {.seeds = 200});
  EXPECT_EQ(ran.code, kExitWrong);
  EXPECT_TRUE(contains(ran.text, "NOT DETERMINISTIC")) << ran.text;
}

TEST(Runner, APlantedBugMustBeFound) {
  Ran found = run(wrong_if_planted, {.seeds = 10, .planted = "no_fence_check"});
  EXPECT_EQ(found.code, kExitPassed);
  EXPECT_TRUE(contains(found.text, "FOUND: no_fence_check")) << found.text;
  EXPECT_TRUE(contains(found.text, "--seed 4 --planted no_fence_check")) << found.text;
  EXPECT_EQ(run(wrong_if_planted, {.seeds = 3, .planted = "no_fence_check"}).code, kExitNotFound);
  EXPECT_EQ(run(wrong_if_planted, {.seeds = 10, .planted = "no_such_bug"}).code, kExitUsage);
  EXPECT_EXIT(run(crash_at_7, {.seeds = 40, .planted = "no_fence_check"}),
              testing::ExitedWithCode(kExitPassed), "FOUND by a crash");
}

TEST(Runner, MissingCoverageFailsWhereItIsAskedFor) {
  Ran ran = run(passed, {.seeds = 40, .requires_coverage = true});
  EXPECT_EQ(ran.code, kExitNotFound);
  EXPECT_TRUE(contains(ran.text, "never")) << ran.text;
}

TEST(Coverage, CountsRunsAndTimes) {
  Coverage coverage(kExpected);
  coverage.add({{"often", 2}});
  coverage.add({{"often", 1}, {"other", 1}});
  EXPECT_EQ(coverage.missing(), std::vector<std::string>{"never"});
  EXPECT_TRUE(contains(coverage.table(), fmt::format("{:<40} {:>8} {:>6.1f}% {:>10}", "often", 2, 100.0, 3)));
  EXPECT_TRUE(contains(coverage.table(), fmt::format("{:<40} {:>8}", "never", 0)));
}

TEST(PlantedBugNames, EachNamePlantsItsOwnBug) {
  for (const PlantedBugName& bug : planted_bug_names()) {
    PlantedBugs bugs;
    EXPECT_TRUE(plant(bugs, bug.name));
    EXPECT_TRUE(bugs.*bug.member) << bug.name;
    int planted = 0;
    for (const PlantedBugName& other : planted_bug_names()) planted += bugs.*other.member;
    EXPECT_EQ(planted, 1) << bug.name;
  }
}

TEST(PlantedBugNames, EachBugIsLookedForInATest) {
  std::vector<std::string> names;
  for (const PlantedBugName& bug : planted_bug_names()) names.emplace_back(bug.name);
  std::istringstream words(VARVE_PLANTED_BUGS_TESTED);
  std::vector<std::string> tested((std::istream_iterator<std::string>(words)),
                                  std::istream_iterator<std::string>());
  EXPECT_THAT(tested, ::testing::UnorderedElementsAreArray(names)) << "the list is in src/sim/CMakeLists.txt";
}

TEST(Toy, SeedsPassAndReplayToTheSameHash) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Outcome first = run_toy({.seed = seed});
    EXPECT_EQ(first.verdict, Verdict::kPassed) << first.message;
    Outcome second = run_toy({.seed = seed});
    EXPECT_EQ(first.trace_hash, second.trace_hash);
    EXPECT_EQ(first.steps, second.steps);
    EXPECT_EQ(first.happenings, second.happenings);
  }
  EXPECT_NE(run_toy({.seed = 1}).trace_hash, run_toy({.seed = 2}).trace_hash);
}

TEST(Toy, ItsPlantedBugIsFound) {
  RunOptions options;
  plant(options.bugs, "ack_after_reject");
  EXPECT_EQ(run_toy(options).verdict, Verdict::kWrong);
}

}  // namespace
}  // namespace varve::sim
