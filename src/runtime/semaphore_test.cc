#include "runtime/semaphore.h"

#include <gtest/gtest.h>

#include "runtime/task_scope.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::runtime {
namespace {

class SemaphoreTest : public testing::Test {
 protected:
  Executor& io(size_t index = 0) { return node_.process().io(index); }
  void settle() { world_.run_for(1s); }

  sim::World world_{{.seed = 1}};
  sim::Node node_{world_, {.host = "a"}};
};

// Takes `units`, notes `name`, holds them for `span`.
Task<> hold(Semaphore* semaphore, uint64_t units, std::string name, Duration span,
            std::vector<std::string>* seen) {
  auto permit = co_await semaphore->acquire(units);
  seen->push_back(permit ? name : name + " stopped");
  if (permit) co_await sleep_for(span);
}

TEST_F(SemaphoreTest, GrantsInOrderOfArrivalAndDoesNotLetSmallWishesOvertake) {
  Semaphore semaphore(10);
  std::vector<std::string> seen;
  TaskScope scope;
  scope.spawn(io(), "a", hold(&semaphore, 6, "a", 10s, &seen));
  settle();
  scope.spawn(io(), "b", hold(&semaphore, 8, "b", 10s, &seen));
  settle();
  scope.spawn(io(), "c", hold(&semaphore, 1, "c", 10s, &seen));
  settle();
  EXPECT_EQ(seen, std::vector<std::string>{"a"});
  EXPECT_EQ(semaphore.held(), 6u);
  EXPECT_EQ(semaphore.waiting(), 2u);
  EXPECT_FALSE(semaphore.try_acquire(1)) << "not ahead of those who wait";
  world_.run_for(15s);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"}));
  world_.run_for(15s);
  EXPECT_EQ(semaphore.held(), 0u);
  EXPECT_EQ(scope.size(), 0u);
}

TEST_F(SemaphoreTest, AStoppedWaiterLeavesAndLetsTheNextIn) {
  Semaphore semaphore(10);
  std::vector<std::string> seen;
  TaskScope scope;
  TaskScope stopped;
  scope.spawn(io(), "a", hold(&semaphore, 6, "a", 1000s, &seen));
  settle();
  stopped.spawn(io(1), "b", hold(&semaphore, 8, "b", 10s, &seen));
  settle();
  scope.spawn(io(), "c", hold(&semaphore, 4, "c", 1000s, &seen));
  settle();
  stopped.request_stop();
  settle();
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b stopped", "c"}));
  EXPECT_EQ(semaphore.waiting(), 0u);
  EXPECT_EQ(semaphore.held(), 10u);
  scope.request_stop();
  settle();
}

TEST_F(SemaphoreTest, AWishAboveTheCapacityIsGrantedAlone) {
  Semaphore semaphore(10);
  std::vector<std::string> seen;
  TaskScope scope;
  scope.spawn(io(), "small", hold(&semaphore, 1, "small", 10s, &seen));
  settle();
  scope.spawn(io(), "huge", hold(&semaphore, 50, "huge", 10s, &seen));
  settle();
  EXPECT_EQ(seen.size(), 1u);
  world_.run_for(10s);
  EXPECT_EQ(semaphore.held(), 50u);
  EXPECT_FALSE(semaphore.try_acquire(1));
  world_.run_for(20s);
  EXPECT_TRUE(semaphore.try_acquire(1));
}

TEST_F(SemaphoreTest, ARaisedCapacityWakesAndALoweredOneWaitsForPermitsToComeBack) {
  Semaphore semaphore(1);
  auto first = semaphore.try_acquire(1);
  std::vector<std::string> seen;
  TaskScope scope;
  scope.spawn(io(), "a", hold(&semaphore, 1, "a", 10s, &seen));
  settle();
  EXPECT_TRUE(seen.empty());
  semaphore.set_capacity(2);
  settle();
  EXPECT_EQ(seen.size(), 1u);
  semaphore.set_capacity(1);
  EXPECT_EQ(semaphore.held(), 2u);
  first.reset();
  EXPECT_FALSE(semaphore.try_acquire(1)) << "one is still held";
  world_.run_for(10s);
  EXPECT_TRUE(semaphore.try_acquire(1));
}

TEST_F(SemaphoreTest, APermitGrantedToADestroyedFrameComesBack) {
  Semaphore semaphore(1);
  auto first = semaphore.try_acquire(1);
  std::vector<std::string> seen;
  {
    TaskScope scope;
    scope.spawn(io(), "a", hold(&semaphore, 1, "a", 10s, &seen));
    settle();
    EXPECT_EQ(semaphore.waiting(), 1u);
  }
  first->release();
  first->release();  // once counts
  EXPECT_EQ(semaphore.held(), 0u);
  EXPECT_TRUE(semaphore.try_acquire(1));
  EXPECT_TRUE(seen.empty());
}

TEST_F(SemaphoreTest, AMovedPermitGivesItsUnitsBackOnce) {
  Semaphore semaphore(5);
  auto a = semaphore.try_acquire(2);
  auto b = semaphore.try_acquire(3);
  *a = std::move(*b);
  EXPECT_EQ(semaphore.held(), 3u);
  b.reset();
  EXPECT_EQ(semaphore.held(), 3u);
  a.reset();
  EXPECT_EQ(semaphore.held(), 0u);
}

TEST_F(SemaphoreTest, ManyWaitersOnManyExecutorsNeverHoldMoreThanTheCapacity) {
  Semaphore semaphore(7);
  uint64_t most = 0;
  int granted = 0;
  auto worker = [](Semaphore* shared, uint64_t units, uint64_t* peak, int* count) -> Task<> {
    for (int i = 0; i < 20; ++i) {
      auto permit = co_await shared->acquire(units);
      *peak = std::max(*peak, shared->held());
      ++*count;
      co_await sleep_for(std::chrono::milliseconds(units));
    }
  };
  TaskScope scope;
  for (uint64_t i = 0; i < 20; ++i) {
    scope.spawn(io(i % 2), "worker", worker(&semaphore, 1 + i % 7, &most, &granted));
  }
  EXPECT_EQ(world_.run_until([&] { return scope.size() == 0; }), sim::RunEnd::kDone);
  EXPECT_EQ(granted, 400);
  EXPECT_EQ(most, 7u);
  EXPECT_EQ(semaphore.held(), 0u);
}

}  // namespace
}  // namespace varve::runtime
