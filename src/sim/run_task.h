// Lets a test's straight-line code run a coroutine in a simulated world.
#pragma once

#include "runtime/task_scope.h"
#include "sim/world.h"

namespace varve::sim {

// Runs `task` on `executor` as a root of its own and steps the world until it has ended. CHECKs that it does.
inline void run_task(World& world, runtime::Executor& executor, runtime::Task<> task) {
  runtime::TaskScope scope;
  scope.spawn(executor, "test", std::move(task));
  RunEnd end = world.run_until([&scope] { return scope.size() == 0; });
  CHECK(end == RunEnd::kDone, "the task never ended");
}

}  // namespace varve::sim
