#include <array>

#include "sim/scenario.h"
#include "sim/scenarios/brokers_scenario.h"
#include "sim/scenarios/power_cut_scenario.h"
#include "sim/storage/storage_scenario.h"
#include "sim/toy_scenario.h"

namespace varve::sim {

std::span<const Scenario> all_scenarios() {
  static constexpr std::array kScenarios = {
      Scenario{"brokers", "three brokers with producers and consumers, under every fault", run_brokers,
               kBrokersExpected},
      Scenario{"power_cut", "a broker on its own disk, whose power fails at random file operations",
               run_power_cuts, kPowerCutExpected, kPowerCutsPerRun},
      Scenario{"storage",
               "produce, fetch and collect garbage through three brokers, below the Kafka protocol",
               run_storage, kStorageExpected},
      Scenario{"toy", "three nodes claim keys by conditional puts, over every seam", run_toy, kToyExpected},
  };
  return kScenarios;
}

}  // namespace varve::sim
