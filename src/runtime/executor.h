// Where code runs: one logical thread of jobs, with timers.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/time.h"

namespace varve::runtime {

using Job = std::move_only_function<void()>;

// A started timer. Destroying it on its executor cancels it: the job will not run any more.
class Timer {
 public:
  virtual ~Timer() = default;
};

// Runs jobs one at a time, in the order they were posted (a simulated executor may pick another order between
// jobs of different executors, never within one). Life: owned by a Runtime, outlives everything that runs on it.
class Executor {
 public:
  virtual ~Executor() = default;

  // Any thread. Never runs the job inside the call.
  virtual void post(Job job) = 0;
  // Only on this executor. The job runs here at `when` or soon after; at once if `when` has passed.
  [[nodiscard]] virtual std::unique_ptr<Timer> start_timer(MonotonicTime when, Job job) = 0;
  // Any thread.
  virtual MonotonicTime now() const = 0;
  // True inside a job of this executor.
  virtual bool is_current() const = 0;
  virtual std::string_view name() const = 0;
};

}  // namespace varve::runtime
