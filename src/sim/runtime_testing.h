// One simulated node as a runtime, for suites that run on any.
#pragma once

#include <memory>

#include "runtime/runtime_under_test.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::sim {

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

inline runtime::RuntimeCase with_seed(uint64_t seed) {
  return {fmt::format("Seed{}", seed), [seed] { return std::make_unique<SimUnderTest>(seed); }};
}

}  // namespace varve::sim
