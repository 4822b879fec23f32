#include "sim/runner.h"

#include <ctime>
#include <optional>

#include "base/hash.h"
#include "sim/coverage.h"
#include "sim/planted_bug_names.h"

namespace varve::sim {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// What many runs added up to.
struct Totals {
  uint64_t runs = 0;
  uint64_t replays = 0;
  uint64_t steps = 0;
  Duration time{0};
};

class Runner {
 public:
  Runner(const Scenario& scenario, const RunnerOptions& options)
      : scenario_(scenario), options_(options), coverage_(scenario.expected_happenings) {}

  int run() {
    if (!options_.planted.empty() && !plant(bugs_, options_.planted)) {
      print("no planted bug is named {}\n", options_.planted);
      return kExitUsage;
    }
    double started_at = processor_seconds();
    int code = kExitPassed;
    for (uint64_t i = 0; i < options_.seeds && code == kExitPassed; ++i) {
      if (options_.seconds > 0 && processor_seconds() - started_at >= options_.seconds) break;
      code = run_one(options_.first_seed + i);
      if (was_found_) return kExitPassed;
    }
    print_summary(processor_seconds() - started_at);
    if (code != kExitPassed) return code;
    if (!options_.planted.empty()) {
      print("NOT FOUND: {} in {} seeds of {}\n", options_.planted, totals_.runs, scenario_.name);
      return kExitNotFound;
    }
    return check_coverage();
  }

 private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::print(options_.out, format, std::forward<Args>(args)...);
    std::fflush(options_.out);
  }

  int run_one(uint64_t seed) {
    std::string repro = repro_line(scenario_, seed, options_.planted);
    bool is_planted = !options_.planted.empty();
    std::string report = fmt::format("{}: {}\n", is_planted ? "FOUND by a crash" : "CRASHED", repro);
    crash_report_.set(report, is_planted ? kExitPassed : kExitCrash);

    Outcome outcome = scenario_.run({.seed = seed, .bugs = bugs_, .trace = options_.trace});
    ++totals_.runs;
    totals_.steps += outcome.steps;
    totals_.time += outcome.time;
    coverage_.add(outcome.happenings);
    if (outcome.verdict != Verdict::kPassed) return report_failure(outcome, repro);

    if (options_.replay_one_in == 0 || hash64(fmt::format("{}", seed)) % options_.replay_one_in != 0) {
      return kExitPassed;
    }
    ++totals_.replays;
    Outcome replay = scenario_.run({.seed = seed, .bugs = bugs_});
    if (replay.trace_hash == outcome.trace_hash && replay.steps == outcome.steps) return kExitPassed;
    print("NOT DETERMINISTIC: {:016x} after {} steps, then {:016x} after {}\nrepeat with: {}\n",
          outcome.trace_hash, outcome.steps, replay.trace_hash, replay.steps, repro);
    return kExitWrong;
  }

  int report_failure(const Outcome& outcome, const std::string& repro) {
    bool is_stuck = outcome.verdict == Verdict::kStuck;
    if (!options_.planted.empty()) {
      print("FOUND: {} as {} in run {}: {}\nrepeat with: {}\n", options_.planted,
            is_stuck ? "STUCK" : "WRONG", totals_.runs, outcome.message, repro);
      was_found_ = true;
      return kExitPassed;
    }
    print("{}: {}\nrepeat with: {}\n", is_stuck ? "STUCK" : "WRONG", outcome.message, repro);
    return is_stuck ? kExitStuck : kExitWrong;
  }

  void print_summary(double seconds) {
    if (totals_.runs > 1) print("{}", coverage_.table());
    print("{}: {} seeds from {}, {} replayed, {} steps, {} virtual seconds in {:.1f} s\n", scenario_.name,
          totals_.runs, options_.first_seed, totals_.replays, totals_.steps,
          std::chrono::duration_cast<std::chrono::seconds>(totals_.time).count(), seconds);
  }

  int check_coverage() {
    std::vector<std::string> missing = coverage_.missing();
    if (!options_.requires_coverage || missing.empty()) return kExitPassed;
    print("TOO RARE: in fewer than 1 % of the runs: {}\n", fmt::join(missing, ", "));
    return kExitNotFound;
  }

  const Scenario& scenario_;
  const RunnerOptions& options_;
  PlantedBugs bugs_;
  Coverage coverage_;
  Totals totals_;
  CrashReport crash_report_;
  bool was_found_ = false;
};

}  // namespace

std::string repro_line(const Scenario& scenario, uint64_t seed, std::string_view planted) {
  std::string line = fmt::format("varve_sim --scenario {} --seed {}", scenario.name, seed);
  if (!planted.empty()) line += fmt::format(" --planted {}", planted);
  return line;
}

int run_seeds(const Scenario& scenario, const RunnerOptions& options) {
  return Runner(scenario, options).run();
}

}  // namespace varve::sim
