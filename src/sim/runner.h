// Runner: many seeds of one scenario, and what to say about them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "sim/crash_report.h"
#include "sim/scenario.h"

namespace varve::sim {

struct RunnerOptions {
  uint64_t first_seed = 1;
  uint64_t seeds = 20;
  // Stop after so much processor time, whatever `seeds` says; 0: no limit.
  double seconds = 0;
  // The name of a planted bug, which the seeds must find; "": none, and no seed may fail.
  std::string planted{};
  // The runs replayed to compare hashes: one in so many; 0: none.
  uint64_t replay_one_in = 20;
  // Fail if something expected happened in fewer than 1 % of the runs.
  bool requires_coverage = false;
  std::FILE* trace = nullptr;
  std::FILE* out = stdout;
};

// Runs the seeds, prints failures, the repro line and the table, and gives the exit code (crash_report.h). A crash
// ends the process inside, with its own code.
int run_seeds(const Scenario& scenario, const RunnerOptions& options);

// The line that repeats one run.
std::string repro_line(const Scenario& scenario, uint64_t seed, std::string_view planted);

}  // namespace varve::sim
