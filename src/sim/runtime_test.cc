#include "runtime/network_conformance.h"
#include "runtime/runtime_conformance.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

class SimUnderTest final : public runtime::RuntimeUnderTest {
 public:
  explicit SimUnderTest(uint64_t seed) : world_({.seed = seed}) {}
  runtime::Runtime& runtime() override { return node_.process(); }
  void run(runtime::Executor& executor, runtime::Task<> task) override {
    run_task(world_, executor, std::move(task));
  }

 private:
  World world_;
  SimNetwork network_{world_};
  Node node_{world_, {.host = "node"}, &network_};
};

runtime::RuntimeCase with_seed(uint64_t seed) {
  return {fmt::format("Seed{}", seed), [seed] { return std::make_unique<SimUnderTest>(seed); }};
}

}  // namespace
}  // namespace varve::sim

namespace varve::runtime {
INSTANTIATE_TEST_SUITE_P(Sim, RuntimeConformance,
                         testing::Values(sim::with_seed(1), sim::with_seed(2), sim::with_seed(3)), case_name);
INSTANTIATE_TEST_SUITE_P(Sim, NetworkConformance,
                         testing::Values(sim::with_seed(1), sim::with_seed(2), sim::with_seed(3)), case_name);
}  // namespace varve::runtime
