// Scenario: a system in a world, a workload on it, faults, and what must hold in the end.
#pragma once

#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/planted_bugs.h"
#include "base/time.h"
#include "sim/world.h"

namespace varve::sim {

struct RunOptions {
  uint64_t seed = 1;
  PlantedBugs bugs{};
  std::FILE* trace = nullptr;
};

enum class Verdict : uint8_t {
  kPassed,
  kWrong,  // something happened that must not
  kStuck,  // something did not happen that must, though the faults had stopped
};

struct Outcome {
  Verdict verdict = Verdict::kPassed;
  std::string message;
  uint64_t trace_hash = 0;
  uint64_t steps = 0;
  Duration time{0};
  std::map<std::string, uint64_t, std::less<>> happenings;
};

// What checkers found. The first few are kept; one is enough to fail.
class Findings {
 public:
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    if (!holds) add(fmt::format(format, std::forward<Args>(args)...));
  }
  void add(std::string text);
  bool empty() const { return texts_.empty(); }
  std::string to_string() const;

 private:
  std::vector<std::string> texts_;
};

// `end` is how the last phase ended, in which everything had to finish.
Outcome make_outcome(const World& world, const Findings& findings, RunEnd end);

struct Scenario {
  std::string_view name;
  std::string_view about;  // one line
  Outcome (*run)(const RunOptions& options);
  // What must happen in at least 1 % of many runs.
  std::span<const std::string_view> expected_happenings;
  // Not 0: each run has so many power cuts, and they are what is counted, not the seeds.
  uint64_t power_cuts_per_run = 0;
};

// All there are, by name.
std::span<const Scenario> all_scenarios();

}  // namespace varve::sim
