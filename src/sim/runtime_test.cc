#include "runtime/network_conformance.h"
#include "runtime/runtime_conformance.h"
#include "sim/runtime_testing.h"

namespace varve::runtime {
INSTANTIATE_TEST_SUITE_P(Sim, RuntimeConformance,
                         testing::Values(sim::with_seed(1), sim::with_seed(2), sim::with_seed(3)), case_name);
INSTANTIATE_TEST_SUITE_P(Sim, NetworkConformance,
                         testing::Values(sim::with_seed(1), sim::with_seed(2), sim::with_seed(3)), case_name);
}  // namespace varve::runtime
