// World: one simulated universe. One thread, one virtual clock, one seeded generator; everything that happens is
// a step, and the same seed takes the same steps.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "runtime/executor.h"

namespace varve::sim {

class SimExecutor;

struct WorldOptions {
  uint64_t seed = 1;
  // Beyond either limit run_until() gives up: the system did not get done what it should (liveness).
  uint64_t steps_max = 20'000'000;
  Duration time_max = std::chrono::hours(24);
  // Virtual time that a step takes, so that jobs which post each other for ever run into time_max.
  Duration step_cost = 1us;
  // Where to print what happens, or null.
  std::FILE* trace = nullptr;
};

enum class RunEnd : uint8_t {
  kDone,
  kIdle,  // nothing can ever happen again
  kStepLimit,
  kTimeLimit,
};

// Life: made first and destroyed last; nodes, stores, logs and networks refer to it. While it lives, a failed
// CHECK prints its seed. Single-threaded.
class World {
 public:
  explicit World(WorldOptions options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  uint64_t seed() const { return options_.seed; }
  Random& random() { return random_; }
  MonotonicTime now() const { return now_; }
  uint64_t steps() const { return steps_; }

  // A new queue of jobs; lives as long as the world.
  SimExecutor& make_executor(std::string name);
  // Events of the world itself (a reply arrives, a lease runs out): run at that time, before any executor's job.
  void at(MonotonicTime when, runtime::Job event);
  void after(Duration delay, runtime::Job event) { at(now_ + delay, std::move(event)); }

  // Does the next thing: an event that is due, else the first job of an executor chosen at random, else the
  // clock jumps to the next event. False if there is none.
  bool step();
  // Steps until `done` says so (asked before each step), or something ends it.
  RunEnd run_until(const std::function<bool()>& done);
  // Steps for `span` of virtual time.
  RunEnd run_for(Duration span);

  // Makes `value` part of the history that the hash stands for. Every random decision that does not show in
  // the order of steps belongs here.
  void fold(uint64_t value);
  uint64_t trace_hash() const { return hash_; }

  // Counts a fault, or anything else that a run should be known to have met. Part of the history.
  void happened(std::string_view what);
  const std::map<std::string, uint64_t, std::less<>>& happenings() const { return happenings_; }

  bool is_tracing() const { return options_.trace != nullptr; }
  // One line with the virtual time, if tracing.
  template <class... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) {
    if (is_tracing()) print_trace(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  friend class SimExecutor;

  struct TimerKey {
    MonotonicTime when;
    uint64_t number;
    auto operator<=>(const TimerKey&) const = default;
  };
  // `job` is empty once the timer ran or was cancelled.
  struct TimerState {
    TimerKey key;
    SimExecutor* executor = nullptr;  // null: an event of the world
    runtime::Job job;
  };
  class SimTimer;

  std::shared_ptr<TimerState> add_timer(MonotonicTime when, SimExecutor* executor, runtime::Job job);
  void drop_timers_of(const SimExecutor& executor);
  bool take_step();
  // True if it ran an event.
  bool fire_due_timers();
  void run_job_of(SimExecutor& executor);
  void begin_step(uint64_t what);
  void print_trace(const std::string& text);

  WorldOptions options_;
  Random random_;
  MonotonicTime now_;
  uint64_t steps_ = 0;
  uint64_t hash_;
  uint64_t next_timer_number_ = 1;
  std::map<TimerKey, std::shared_ptr<TimerState>> timers_;
  std::vector<std::unique_ptr<SimExecutor>> executors_;
  std::vector<SimExecutor*> ready_;
  std::map<std::string, uint64_t, std::less<>> happenings_;
  SimExecutor* current_ = nullptr;
  bool in_step_ = false;
  const World* outer_world_ = nullptr;  // whose seed a CHECK printed before this one was made
};

// One logical thread of a simulated node. Closing it is how a crash looks from below: what waits is dropped and
// whatever is posted later never runs.
class SimExecutor final : public runtime::Executor {
 public:
  SimExecutor(World& world, std::string name, uint64_t index);

  void post(runtime::Job job) override;
  std::unique_ptr<runtime::Timer> start_timer(MonotonicTime when, runtime::Job job) override;
  MonotonicTime now() const override { return world_.now(); }
  bool is_current() const override { return world_.current_ == this; }
  std::string_view name() const override { return name_; }

  // As start_timer, from anywhere and for good: how a lane's thread finishes a job later.
  void post_at(MonotonicTime when, runtime::Job job);

  // From now on what is posted is dropped.
  void refuse_jobs() { is_closed_ = true; }
  // And frees all jobs and timers that wait. Not from one of its own jobs.
  void close();
  bool is_closed() const { return is_closed_; }
  // A paused executor keeps its jobs; timers that fire meanwhile queue up.
  void set_paused(bool paused);

 private:
  friend class World;

  static constexpr size_t kNotReady = SIZE_MAX;

  void update_ready();

  World& world_;
  std::string name_;
  uint64_t index_;
  std::deque<runtime::Job> jobs_;
  size_t ready_slot_ = kNotReady;
  bool is_closed_ = false;
  bool is_paused_ = false;
};

}  // namespace varve::sim
