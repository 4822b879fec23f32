// varve_sim: runs seeds of a scenario in the simulator. See README.md.
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "sim/planted_bug_names.h"
#include "sim/runner.h"
#include "sim/settings.h"

namespace varve::sim {
namespace {

void print_usage() {
  fmt::print(
      "varve_sim [--scenario NAME] [--seeds N] [--from N] [--seconds N] [--planted NAME] [--coverage]\n"
      "varve_sim [--scenario NAME] --seed N [--trace]\n\n"
      "  --seeds N      how many seeds to run (VARVE_SIM_SEEDS, or 20; 200 to find a planted bug;\n"
      "                 for power cuts as many as make VARVE_POWER_CUTS, or 10)\n"
      "  --from N       the first of them (1)\n"
      "  --seconds N    stop after so much processor time (to find a planted bug: VARVE_BUG_SECONDS)\n"
      "  --seed N       run this one\n"
      "  --trace        print what happens\n"
      "  --planted NAME switch a planted bug on; passes if a seed finds it\n"
      "  --coverage     fail if an expected fault happened in fewer than 1 % of the runs\n\n"
      "Exit codes: 0 passed, 2 usage, 3 planted bug or coverage missing, 127 crash, 128 stuck, 129 wrong.\n\n"
      "Scenarios:\n");
  for (const Scenario& scenario : all_scenarios()) fmt::print("  {:<12} {}\n", scenario.name, scenario.about);
  fmt::print("Planted bugs:\n");
  for (const PlantedBugName& bug : planted_bug_names()) fmt::print("  {}\n", bug.name);
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const Scenario* find_scenario(std::string_view name) {
  for (const Scenario& scenario : all_scenarios()) {
    if (scenario.name == name) return &scenario;
  }
  return nullptr;
}

// Each planted bug has to be found within so many.
constexpr uint64_t kSeedsToFindABug = 200;
constexpr uint64_t kDefaultPowerCuts = 10;

uint64_t default_seeds(const Scenario& scenario, uint64_t otherwise) {
  uint64_t cuts_per_run = scenario.power_cuts_per_run;
  if (cuts_per_run == 0) return seeds_wanted(otherwise);
  return (power_cuts_wanted(kDefaultPowerCuts) + cuts_per_run - 1) / cuts_per_run;
}

struct CommandLine {
  const Scenario* scenario = &all_scenarios().front();
  RunnerOptions options;
};

std::optional<CommandLine> parse(int count, char** words) {
  CommandLine line;
  std::optional<uint64_t> seeds;
  for (int i = 1; i < count; ++i) {
    std::string_view flag = words[i];
    if (flag == "--trace") {
      line.options.trace = stdout;
      continue;
    }
    if (flag == "--coverage") {
      line.options.requires_coverage = true;
      continue;
    }
    if (++i == count) return std::nullopt;
    std::string_view value = words[i];
    std::optional<uint64_t> as_number = number(value);
    if (flag == "--scenario") {
      line.scenario = find_scenario(value);
      if (line.scenario == nullptr) return std::nullopt;
    } else if (flag == "--planted") {
      line.options.planted = value;
    } else if (flag == "--seeds" && as_number) {
      seeds = *as_number;
    } else if (flag == "--from" && as_number) {
      line.options.first_seed = *as_number;
    } else if (flag == "--seconds" && as_number) {
      line.options.seconds = static_cast<double>(*as_number);
    } else if (flag == "--seed" && as_number) {
      line.options.first_seed = *as_number;
      seeds = 1;
    } else {
      return std::nullopt;
    }
  }
  if (seeds) {
    line.options.seeds = *seeds;
  } else if (line.options.planted.empty()) {
    line.options.seeds = default_seeds(*line.scenario, line.options.seeds);
  } else {
    line.options.seeds = kSeedsToFindABug;
    line.options.seconds = bug_seconds_wanted(line.options.seconds);
  }
  return line;
}

}  // namespace
}  // namespace varve::sim

int main(int count, char** words) {
  auto line = varve::sim::parse(count, words);
  if (!line) {
    varve::sim::print_usage();
    return varve::sim::kExitUsage;
  }
  return varve::sim::run_seeds(*line->scenario, line->options);
}
