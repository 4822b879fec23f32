// What every Runtime must do, and what Task, TaskScope and Completion do on it. Included by the test of each
// runtime, which instantiates RuntimeConformance with its factory:
//
//   INSTANTIATE_TEST_SUITE_P(Asio, RuntimeConformance, testing::Values(RuntimeCase{"asio", make_asio}), case_name);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/runtime_under_test.h"
#include "runtime/task_scope.h"

namespace varve::runtime {

class RuntimeConformance : public testing::TestWithParam<RuntimeCase> {
 protected:
  // The body of a test: a plain function that is a coroutine, run on io(0).
  void run(Task<> (*body)(Runtime&)) {
    std::unique_ptr<RuntimeUnderTest> world = GetParam().make();
    world->run(world->runtime().io(0), body(world->runtime()));
  }
};

namespace conformance {

inline Task<Executor*> current_executor() {
  TaskContext& context = co_await this_context();
  co_return context.executor;
}

// Returns after every job posted to `executor` before.
inline Task<> drain(Executor& executor) {
  co_await call(executor, [] {});
}

inline Task<> jobs_in_order(Runtime& runtime) {
  auto seen = std::make_shared<std::vector<int>>();
  for (int i = 0; i < 100; ++i) runtime.core().post([seen, i] { seen->push_back(i); });
  co_await drain(runtime.core());
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(*seen, expected);
}

inline Task<> post_is_later(Runtime& runtime) {
  Executor* self = co_await current_executor();
  auto has_run = std::make_shared<bool>(false);
  self->post([has_run] { *has_run = true; });
  EXPECT_FALSE(*has_run);
  co_await drain(*self);
  EXPECT_TRUE(*has_run);
  EXPECT_EQ(self, &runtime.io(0));
}

inline Task<> knows_current(Runtime& runtime) {
  EXPECT_TRUE(runtime.io(0).is_current());
  EXPECT_FALSE(runtime.core().is_current());
  bool core_is_current = co_await call(runtime.core(), [&runtime] { return runtime.core().is_current(); });
  EXPECT_TRUE(core_is_current);
  EXPECT_TRUE(runtime.io(0).is_current());
  for (size_t i = 0; i < runtime.io_count(); ++i) {
    Executor& io = runtime.io(i);
    bool is_current = co_await call(io, [&io] { return io.is_current(); });
    EXPECT_TRUE(is_current);
  }
}

inline Task<> timers_in_order(Runtime& runtime) {
  Executor& self = *co_await current_executor();
  auto fired = std::make_shared<std::vector<int>>();
  MonotonicTime start = runtime.now();
  std::vector<std::unique_ptr<Timer>> timers;
  Completion<MonotonicTime> last;
  timers.push_back(self.start_timer(start + 9ms, [fired, last, &self] {
    fired->push_back(3);
    last.set(self.now());
  }));
  timers.push_back(self.start_timer(start + 3ms, [fired] { fired->push_back(1); }));
  timers.push_back(self.start_timer(start + 6ms, [fired] { fired->push_back(2); }));
  MonotonicTime end = co_await last.wait();
  EXPECT_EQ(*fired, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(end - start, 9ms);
}

inline Task<> destroyed_timer(Runtime& runtime) {
  Executor& self = *co_await current_executor();
  auto fired = std::make_shared<std::vector<int>>();
  auto second = std::make_shared<std::unique_ptr<Timer>>();
  MonotonicTime when = runtime.now() + 2ms;
  // Both are due together; the first to run cancels the other, which must not run even if it is queued already.
  auto first = self.start_timer(when, [fired, second] {
    fired->push_back(1);
    second->reset();
  });
  *second = self.start_timer(when, [fired] { fired->push_back(2); });
  auto never = self.start_timer(runtime.now() + 1ms, [fired] { fired->push_back(3); });
  never.reset();
  co_await sleep_for(10ms);
  EXPECT_EQ(*fired, std::vector<int>{1});
}

inline Task<> timer_destroys_itself(Runtime& runtime) {
  Executor& self = *co_await current_executor();
  Completion<Done> done;
  auto own = std::make_shared<std::unique_ptr<Timer>>();
  *own = self.start_timer(runtime.now() + 1ms, [own, done] {
    own->reset();
    done.set(Done{});
  });
  co_await done.wait();
  EXPECT_EQ(own->get(), nullptr);
}

inline Task<> past_timer(Runtime&) {
  Executor& self = *co_await current_executor();
  auto has_run = std::make_shared<bool>(false);
  Completion<Done> done;
  co_await sleep_for(1ms);
  auto timer = self.start_timer(MonotonicTime(), [has_run, done] {
    *has_run = true;
    done.set(Done{});
  });
  EXPECT_FALSE(*has_run);
  co_await done.wait();
  EXPECT_TRUE(*has_run);
}

inline Task<> call_crosses(Runtime& runtime) {
  Executor* before = co_await current_executor();
  auto value = std::make_unique<int>(41);
  std::unique_ptr<int> result = co_await call(runtime.core(), [value = std::move(value)]() mutable {
    ++*value;
    return std::move(value);
  });
  EXPECT_EQ(*result, 42);
  EXPECT_TRUE(before->is_current());
}

inline Task<> offload_leaves_executors(Runtime& runtime) {
  for (Lane lane : {Lane::kLog, Lane::kDisk, Lane::kBulk, Lane::kResolve}) {
    bool is_on_an_executor = co_await offload(runtime, lane, [&runtime] {
      bool any = runtime.core().is_current();
      for (size_t i = 0; i < runtime.io_count(); ++i) any = any || runtime.io(i).is_current();
      return any;
    });
    EXPECT_FALSE(is_on_an_executor);
    EXPECT_TRUE(runtime.io(0).is_current());
  }
}

inline Task<> log_lane_in_order(Runtime& runtime) {
  auto seen = std::make_shared<std::vector<int>>();
  for (int i = 0; i < 50; ++i) runtime.offload(Lane::kLog, [seen, i] { seen->push_back(i); });
  co_await offload(runtime, Lane::kLog, [] {});
  EXPECT_EQ(seen->size(), 50u);
  EXPECT_TRUE(std::is_sorted(seen->begin(), seen->end()));
}

inline Task<> first_set_wins(Runtime&) {
  Completion<int> completion;
  EXPECT_FALSE(completion.is_set());
  EXPECT_TRUE(completion.set(1));
  EXPECT_FALSE(completion.set(2));
  EXPECT_TRUE(completion.is_set());
  int value = co_await completion.wait();
  EXPECT_EQ(value, 1);
}

// Two executors race to set each of many completions: one of them wins, and the waiter sees the winner's value.
inline Task<> one_of_two_wins(Runtime& runtime) {
  for (int round = 0; round < 300; ++round) {
    Completion<int> completion;
    auto set_one = [completion](int value) { return completion.set(value) ? value : 0; };
    Completion<int> by_core;
    runtime.core().post([=] { by_core.set(set_one(1)); });
    Completion<int> by_io;
    runtime.io(runtime.io_count() - 1).post([=] { by_io.set(set_one(2)); });
    int value = co_await completion.wait();
    EXPECT_TRUE(runtime.io(0).is_current());
    int from_core = co_await by_core.wait();
    int from_io = co_await by_io.wait();
    EXPECT_EQ(from_core + from_io, value);
  }
}

inline Task<> wait_until_deadline(Runtime& runtime) {
  Completion<int> late;
  MonotonicTime when = runtime.now() + 3ms;
  int value = co_await wait_until(late, when, -1);
  EXPECT_EQ(value, -1);
  EXPECT_GE(runtime.now(), when);
  EXPECT_FALSE(late.set(5)) << "a late setter must learn that it came late";

  Completion<int> in_time;
  runtime.core().post([in_time] { in_time.set(7); });
  value = co_await wait_until(in_time, MonotonicTime::never(), -1);
  EXPECT_EQ(value, 7);
}

inline Task<> record_wake(std::shared_ptr<std::vector<Wake>> wakes, Duration span) {
  Wake wake = co_await sleep_for(span);
  wakes->push_back(wake);
}

inline Task<> close_stops_sleepers(Runtime& runtime) {
  auto wakes = std::make_shared<std::vector<Wake>>();
  TaskScope scope;
  EXPECT_TRUE(scope.spawn(runtime.io(0), "short", record_wake(wakes, 1ms)));
  EXPECT_TRUE(scope.spawn(runtime.io(0), "long", record_wake(wakes, 60min)));
  EXPECT_EQ(scope.size(), 2u);
  co_await sleep_for(20ms);
  EXPECT_EQ(*wakes, std::vector<Wake>{Wake::kTimeReached});
  EXPECT_EQ(scope.size(), 1u);
  MonotonicTime before = runtime.now();
  co_await scope.close();
  EXPECT_EQ(*wakes, (std::vector<Wake>{Wake::kTimeReached, Wake::kStopped}));
  EXPECT_EQ(scope.size(), 0u);
  EXPECT_LT(runtime.now() - before, 30min);
}

inline Task<> hold(std::shared_ptr<int> held) {
  co_await sleep_until(MonotonicTime::never());
  EXPECT_NE(held, nullptr);
}

inline Task<> spawn_after_close(Runtime& runtime) {
  TaskScope scope;
  co_await scope.close();
  auto held = std::make_shared<int>(1);
  EXPECT_FALSE(scope.spawn(runtime.io(0), "late", hold(held)));
  EXPECT_EQ(held.use_count(), 1) << "a refused task is freed";
  EXPECT_EQ(scope.size(), 0u);
}

inline Task<> frames_are_freed(Runtime& runtime) {
  auto held = std::make_shared<int>(1);
  TaskScope scope;
  for (size_t i = 0; i < 50; ++i) {
    scope.spawn(runtime.io(i % runtime.io_count()), "holder", hold(held));
  }
  scope.request_stop();
  EXPECT_TRUE(scope.stop_token().stop_requested());
  co_await scope.close();
  EXPECT_EQ(held.use_count(), 1) << "frames, with their parameters, are gone when close() returns";
}

inline Task<> spawn_child(TaskScope& scope, Executor& executor, std::shared_ptr<int> count, int depth) {
  ++*count;
  if (depth > 0) scope.spawn(executor, "child", spawn_child(scope, executor, count, depth - 1));
  co_return;
}

inline Task<> tasks_spawn_tasks(Runtime& runtime) {
  auto count = std::make_shared<int>(0);
  TaskScope scope;
  scope.spawn(runtime.io(0), "parent", spawn_child(scope, runtime.io(0), count, 30));
  for (int i = 0; i < 1000 && scope.size() > 0; ++i) co_await drain(runtime.io(0));
  co_await scope.close();
  EXPECT_EQ(*count, 31);
}

inline Task<Wake> sleep_deep(int depth) {
  if (depth == 0) {
    Wake wake = co_await sleep_for(60min);
    co_return wake;
  }
  co_return co_await sleep_deep(depth - 1);
}

inline Task<> record_deep(std::shared_ptr<std::vector<Wake>> wakes) {
  Wake wake = co_await sleep_deep(1000);
  wakes->push_back(wake);
}

inline Task<> stop_reaches_the_deepest(Runtime& runtime) {
  auto wakes = std::make_shared<std::vector<Wake>>();
  TaskScope scope;
  scope.spawn(runtime.io(0), "deep", record_deep(wakes));
  co_await drain(runtime.io(0));
  co_await scope.close();
  EXPECT_EQ(*wakes, std::vector<Wake>{Wake::kStopped});
}

inline Task<int> one() { co_return 1; }

// Symmetric transfer: neither a long loop nor a long chain may grow the stack.
inline Task<> long_loops(Runtime&) {
  int sum = 0;
  for (int i = 0; i < 200'000; ++i) sum += co_await one();
  EXPECT_EQ(sum, 200'000);
}

inline Task<> deadline_is_inner(Runtime& runtime) {
  MonotonicTime start = runtime.now();
  Wake wake = co_await with_deadline(start + 3ms, sleep_deep(3));
  EXPECT_EQ(wake, Wake::kStopped);
  EXPECT_GE(runtime.now() - start, 3ms);
  TaskContext& context = co_await this_context();
  EXPECT_FALSE(context.stop.stop_requested());
  wake = co_await with_deadline(runtime.now() + 60min, sleep_for(1ms));
  EXPECT_EQ(wake, Wake::kTimeReached);
}

inline Task<> record_with_deadline(std::shared_ptr<std::vector<Wake>> wakes) {
  Wake wake = co_await with_deadline(MonotonicTime::never(), sleep_deep(3));
  wakes->push_back(wake);
}

inline Task<> outer_stop_reaches_inner(Runtime& runtime) {
  auto wakes = std::make_shared<std::vector<Wake>>();
  TaskScope scope;
  scope.spawn(runtime.io(0), "with deadline", record_with_deadline(wakes));
  co_await drain(runtime.io(0));
  co_await scope.close();
  EXPECT_EQ(*wakes, std::vector<Wake>{Wake::kStopped});
  scope.spawn(runtime.io(0), "after close", record_with_deadline(wakes));
  EXPECT_EQ(wakes->size(), 1u);
}

inline Task<> clocks_and_seeds(Runtime& runtime) {
  EXPECT_NE(runtime.random_seed(), runtime.random_seed());
  EXPECT_GT(runtime.wall_now().value(), 1'500'000'000'000) << "milliseconds since 1970";
  EXPECT_GE(runtime.io_count(), 1u);
  MonotonicTime before = runtime.now();
  co_await sleep_for(2ms);
  EXPECT_GE(runtime.now() - before, 2ms);
  EXPECT_LE(before, runtime.io(0).now());
}

}  // namespace conformance

TEST_P(RuntimeConformance, JobsOfOneExecutorRunInTheOrderPosted) { run(conformance::jobs_in_order); }
TEST_P(RuntimeConformance, PostNeverRunsTheJobInsideTheCall) { run(conformance::post_is_later); }
TEST_P(RuntimeConformance, AnExecutorKnowsWhetherItIsCurrent) { run(conformance::knows_current); }
TEST_P(RuntimeConformance, TimersFireInOrderOfTimeAndNeverEarly) { run(conformance::timers_in_order); }
TEST_P(RuntimeConformance, ADestroyedTimerDoesNotFire) { run(conformance::destroyed_timer); }
TEST_P(RuntimeConformance, ATimerMayBeDestroyedByItsOwnJob) { run(conformance::timer_destroys_itself); }
TEST_P(RuntimeConformance, ATimerInThePastFiresSoonButNotInsideTheCall) { run(conformance::past_timer); }
TEST_P(RuntimeConformance, CallRunsElsewhereAndReturnsHere) { run(conformance::call_crosses); }
TEST_P(RuntimeConformance, OffloadedWorkRunsOnNoExecutor) { run(conformance::offload_leaves_executors); }
TEST_P(RuntimeConformance, TheLogLaneKeepsOrder) { run(conformance::log_lane_in_order); }
TEST_P(RuntimeConformance, TheFirstSetOfACompletionWins) { run(conformance::first_set_wins); }
TEST_P(RuntimeConformance, OfTwoSettersOnOtherExecutorsOneWins) { run(conformance::one_of_two_wins); }
TEST_P(RuntimeConformance, WaitUntilEndsAtItsDeadlineOrWithTheValue) {
  run(conformance::wait_until_deadline);
}
TEST_P(RuntimeConformance, ClosingAScopeWakesSleepersAndWaitsForThem) {
  run(conformance::close_stops_sleepers);
}
TEST_P(RuntimeConformance, AClosedScopeRefusesTasks) { run(conformance::spawn_after_close); }
TEST_P(RuntimeConformance, AClosedScopeHasFreedItsFrames) { run(conformance::frames_are_freed); }
TEST_P(RuntimeConformance, TasksMaySpawnIntoTheirOwnScope) { run(conformance::tasks_spawn_tasks); }
TEST_P(RuntimeConformance, AStopReachesTheDeepestTask) { run(conformance::stop_reaches_the_deepest); }
TEST_P(RuntimeConformance, LongLoopsOfAwaitsDoNotGrowTheStack) { run(conformance::long_loops); }
TEST_P(RuntimeConformance, ADeadlineStopsTheInnerTaskOnly) { run(conformance::deadline_is_inner); }
TEST_P(RuntimeConformance, AStopPassesThroughADeadline) { run(conformance::outer_stop_reaches_inner); }
TEST_P(RuntimeConformance, ClocksGoOnAndSeedsDiffer) { run(conformance::clocks_and_seeds); }

}  // namespace varve::runtime
