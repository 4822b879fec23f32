#include "runtime/asio/asio_runtime.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <latch>
#include <set>
#include <thread>

#include "runtime/asio/run_blocking.h"
#include "runtime/semaphore.h"
#include "runtime/task_scope.h"

namespace varve::runtime {
namespace {

std::string this_thread_name() {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  return name;
}

Task<int> add_on(Executor& other, int a, int b) {
  co_return co_await call(other, [a, b] { return a + b; });
}

TEST(AsioRuntime, RunsACallOnAnotherExecutorAndComesBack) {
  AsioRuntime runtime({.io_threads = 2});
  auto task = [](AsioRuntime* world) -> Task<std::string> {
    std::string there = co_await call(world->core(), [] { return this_thread_name(); });
    int sum = co_await add_on(world->io(1), 2, 3);
    co_return fmt::format("{} {} {}", there, sum, this_thread_name());
  };
  EXPECT_EQ(run_blocking(runtime.io(0), task(&runtime)), "varve-core 5 varve-io-0");
}

TEST(AsioRuntime, NamesItsLanesAndLowersOnlyTheBulkLane) {
  AsioRuntime runtime({.io_threads = 1, .disk_threads = 1});
  auto task = [](AsioRuntime* world, Lane lane) -> Task<std::pair<std::string, int>> {
    co_return co_await offload(*world, lane, [] {
      return std::pair(this_thread_name(), getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())));
    });
  };
  int normal = getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(run_blocking(runtime.io(0), task(&runtime, Lane::kLog)),
            std::pair(std::string("varve-log"), normal));
  EXPECT_EQ(run_blocking(runtime.io(0), task(&runtime, Lane::kDisk)),
            std::pair(std::string("varve-disk"), normal));
  EXPECT_EQ(run_blocking(runtime.io(0), task(&runtime, Lane::kResolve)),
            std::pair(std::string("varve-resolve"), normal));
  auto [name, priority] = run_blocking(runtime.io(0), task(&runtime, Lane::kBulk));
  EXPECT_EQ(name, "varve-bulk");
  EXPECT_GT(priority, normal);
}

TEST(AsioRuntime, KeepsJobsOfOnePosterInOrder) {
  AsioRuntime runtime({.io_threads = 1});
  std::vector<int> seen;
  std::latch done(1);
  for (int i = 0; i < 10000; ++i) {
    runtime.core().post([&seen, i] { seen.push_back(i); });
  }
  runtime.core().post([&done] { done.count_down(); });
  done.wait();
  ASSERT_EQ(seen.size(), 10000u);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST(AsioRuntime, LosesNoJobPostedByManyThreads) {
  AsioRuntime runtime({.io_threads = 2});
  constexpr int kThreads = 4;
  constexpr int kJobs = 20000;
  int count = 0;  // touched on the core only
  std::latch done(kThreads);
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kJobs; ++i) runtime.core().post([&count] { ++count; });
      runtime.core().post([&done] { done.count_down(); });
    });
  }
  done.wait();
  EXPECT_EQ(count, kThreads * kJobs);
}

TEST(AsioRuntime, NeverRunsAJobInsidePost) {
  AsioRuntime runtime({.io_threads = 1});
  auto task = [](AsioRuntime* world) -> Task<bool> {
    bool ran = false;
    world->io(0).post([&ran] { ran = true; });
    bool ran_inside = ran;
    co_await sleep_for(1ms);
    co_return ran && !ran_inside;
  };
  EXPECT_TRUE(run_blocking(runtime.io(0), task(&runtime)));
}

TEST(AsioTimers, FireInOrderOfTimeAndThenOfStart) {
  AsioRuntime runtime({.io_threads = 1});
  auto task = [](AsioRuntime* world) -> Task<std::vector<int>> {
    std::vector<int> fired;
    std::vector<std::unique_ptr<Timer>> timers;
    MonotonicTime start = world->now();
    auto add = [&](Duration after, int name) {
      timers.push_back(world->io(0).start_timer(start + after, [&fired, name] { fired.push_back(name); }));
    };
    add(20ms, 3);
    add(10ms, 1);
    add(10ms, 2);
    add(-5ms, 0);
    add(30ms, 4);
    co_await sleep_until(start + 40ms);
    co_return fired;
  };
  EXPECT_EQ(run_blocking(runtime.io(0), task(&runtime)), (std::vector{0, 1, 2, 3, 4}));
}

TEST(AsioTimers, DoNotFireOnceDestroyedNotEvenWhenDueInTheSameRound) {
  AsioRuntime runtime({.io_threads = 1});
  auto task = [](AsioRuntime* world) -> Task<int> {
    int fired = 0;
    MonotonicTime when = world->now() + 5ms;
    std::unique_ptr<Timer> second;
    auto first = world->io(0).start_timer(when, [&] {
      ++fired;
      second.reset();
    });
    second = world->io(0).start_timer(when, [&fired] { fired += 100; });
    auto dropped = world->io(0).start_timer(when, [&fired] { fired += 1000; });
    dropped.reset();
    co_await sleep_until(when + 10ms);
    co_return fired;
  };
  EXPECT_EQ(run_blocking(runtime.io(0), task(&runtime)), 1);
}

TEST(AsioTimers, NeverFireEarly) {
  AsioRuntime runtime({.io_threads = 1});
  auto task = [](AsioRuntime* world) -> Task<bool> {
    bool early = false;
    for (int i = 0; i < 50; ++i) {
      MonotonicTime when = world->now() + std::chrono::microseconds(37 * i);
      if (co_await sleep_until(when) != Wake::kTimeReached) early = true;
      if (world->now() < when) early = true;
    }
    co_return early;
  };
  EXPECT_FALSE(run_blocking(runtime.io(0), task(&runtime)));
}

TEST(AsioTimers, ATimerRestartingItselfInThePastDoesNotStarveJobs) {
  AsioRuntime runtime({.io_threads = 1});
  auto task = [](AsioRuntime* world) -> Task<bool> {
    struct Restarting {
      Executor& executor;
      std::unique_ptr<Timer> timer;
      void start() {
        timer = executor.start_timer(MonotonicTime(), [this] { start(); });
      }
    };
    Restarting restarting{world->io(0), nullptr};
    restarting.start();
    co_await sleep_for(2ms);
    co_return true;
  };
  EXPECT_TRUE(run_blocking(runtime.io(0), task(&runtime)));
}

TEST(AsioRuntime, AStopRequestEndsASleep) {
  AsioRuntime runtime({.io_threads = 1});
  TaskScope scope;
  std::atomic<int> wake = -1;
  auto sleeper = [](std::atomic<int>* seen) -> Task<> {
    *seen = static_cast<int>(co_await sleep_for(60min));
  };
  scope.spawn(runtime.io(0), "sleeper", sleeper(&wake));
  auto closer = [](TaskScope* tasks) -> Task<> {
    co_await sleep_for(5ms);
    co_await tasks->close();
  };
  run_blocking(runtime.io(0), closer(&scope));
  EXPECT_EQ(wake, static_cast<int>(Wake::kStopped));
}

TEST(AsioRuntime, TheDiskLaneRunsJobsSideBySideAndTheLogLaneOneByOne) {
  AsioRuntime runtime({.io_threads = 1, .disk_threads = 3});
  std::latch together(3);
  std::latch ended(3);
  for (int i = 0; i < 3; ++i) {
    runtime.offload(Lane::kDisk, [&] {
      together.arrive_and_wait();  // ends only if three threads are here at once
      ended.count_down();
    });
  }
  ended.wait();

  std::vector<int> order;
  std::latch log_done(1);
  for (int i = 0; i < 1000; ++i) runtime.offload(Lane::kLog, [&order, i] { order.push_back(i); });
  runtime.offload(Lane::kLog, [&log_done] { log_done.count_down(); });
  log_done.wait();
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(order.size(), 1000u);
}

TEST(AsioRuntime, StopRunsWhatTheLanesHoldAndDeliversTheirResults) {
  std::atomic<int> ran = 0;
  std::atomic<int> delivered = 0;
  TaskScope scope;
  AsioRuntime runtime({.io_threads = 1});
  auto worker = [](AsioRuntime* world, std::atomic<int>* count, std::atomic<int>* after) -> Task<> {
    co_await offload(*world, Lane::kLog, [count] {
      usleep(1000);
      ++*count;
    });
    ++*after;
  };
  std::latch spawned(1);
  for (int i = 0; i < 20; ++i) scope.spawn(runtime.io(0), "worker", worker(&runtime, &ran, &delivered));
  runtime.io(0).post([&spawned] { spawned.count_down(); });
  spawned.wait();
  runtime.stop();
  EXPECT_EQ(ran, 20);
  EXPECT_EQ(delivered, 20);
  EXPECT_EQ(scope.size(), 0u);
}

TEST(AsioRuntime, FreesWaitingFramesOfAnUnclosedScopeAfterStop) {
  struct Sentinel {
    std::shared_ptr<int> counted;
  };
  auto counted = std::make_shared<int>(0);
  AsioRuntime runtime({.io_threads = 1});
  {
    TaskScope scope;
    auto waiter = [](Sentinel) -> Task<> { co_await sleep_for(60min); };
    scope.spawn(runtime.io(0), "waiter", waiter(Sentinel{counted}));
    std::latch started(1);
    runtime.io(0).post([&started] { started.count_down(); });
    started.wait();
    runtime.stop();
    EXPECT_GT(counted.use_count(), 1);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(AsioRuntime, ASemaphoreHoldsItsLimitBetweenThreads) {
  AsioRuntime runtime({.io_threads = 2});
  Semaphore semaphore(3);
  std::atomic<int> inside = 0;
  std::atomic<bool> too_many = false;
  TaskScope scope;
  TaskScope impatient;
  auto worker = [](Semaphore* shared, std::atomic<int>* count, std::atomic<bool>* seen_too_many) -> Task<> {
    for (int i = 0; i < 500; ++i) {
      auto permit = co_await shared->acquire();
      if (!permit) co_return;
      if (++*count > 3) *seen_too_many = true;
      if (i % 50 == 0) co_await sleep_for(10us);
      --*count;
    }
  };
  for (size_t i = 0; i < 10; ++i) {
    scope.spawn(runtime.io(i % 2), "worker", worker(&semaphore, &inside, &too_many));
    impatient.spawn(runtime.io(i % 2), "impatient", worker(&semaphore, &inside, &too_many));
  }
  auto finish = [](TaskScope* workers, TaskScope* others) -> Task<> {
    co_await sleep_for(2ms);
    co_await others->close();
    while (workers->size() > 0) co_await sleep_for(1ms);
  };
  run_blocking(runtime.io(0), finish(&scope, &impatient));
  EXPECT_FALSE(too_many);
  EXPECT_EQ(semaphore.held(), 0u);
  EXPECT_EQ(semaphore.waiting(), 0u);
}

TEST(AsioRuntime, GivesASignalOnceAndThenLeavesItToItsOldEffect) {
  AsioRuntime runtime({.io_threads = 1});
  std::signal(SIGUSR1, SIG_IGN);
  auto task = [](Completion<int> arrived) -> Task<int> { co_return co_await arrived.wait(); };
  std::array signals{SIGUSR1, SIGUSR2};
  Completion<int> arrived = runtime.on_signal(signals);
  kill(getpid(), SIGUSR1);
  EXPECT_EQ(run_blocking(runtime.io(0), task(arrived)), SIGUSR1);
  std::signal(SIGUSR1, SIG_IGN);
  kill(getpid(), SIGUSR1);  // would end the process if its effect were not the former one
}

TEST(AsioRuntime, ASignalWaitThatNeverEndsIsFreedWithTheRuntime) {
  std::array signals{SIGUSR2};
  AsioRuntime runtime({.io_threads = 1});
  EXPECT_FALSE(runtime.on_signal(signals).is_set());
}

TEST(AsioRuntime, ClocksAndSeedsMakeSense) {
  AsioRuntime runtime({.io_threads = 1});
  MonotonicTime before = runtime.now();
  EXPECT_GE(runtime.io(0).now(), before);
  EXPECT_GT(runtime.wall_now().value(), 1'700'000'000'000);
  std::set<uint64_t> seeds;
  for (int i = 0; i < 100; ++i) seeds.insert(runtime.random_seed());
  EXPECT_EQ(seeds.size(), 100u);
}

}  // namespace
}  // namespace varve::runtime
