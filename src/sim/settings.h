// How ./test says how much the simulator runs (docs/testing.md).
#pragma once

#include <cstdint>

namespace varve::sim {

// VARVE_SIM_SEEDS: seeds of each scenario.
uint64_t seeds_wanted(uint64_t otherwise);
// VARVE_BUG_SECONDS: processor time at most to find a planted bug.
double bug_seconds_wanted(double otherwise);
// VARVE_POWER_CUTS.
uint64_t power_cuts_wanted(uint64_t otherwise);

}  // namespace varve::sim
