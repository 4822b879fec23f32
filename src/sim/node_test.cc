#include "sim/node.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/task_scope.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using runtime::Task;
using runtime::TaskScope;

Task<> count_ticks(std::shared_ptr<int> ticks) {
  for (;;) {
    if (co_await runtime::sleep_for(10ms) == runtime::Wake::kStopped) co_return;
    ++*ticks;
  }
}

TEST(World, SameSeedSameHistoryAndAnotherSeedAnother) {
  auto history = [](uint64_t seed) {
    World world({.seed = seed});
    Node a(world, {.host = "a"});
    Node b(world, {.host = "b"});
    auto ticks = std::make_shared<int>(0);
    TaskScope scope;
    for (Node* node : {&a, &b}) {
      for (size_t i = 0; i < 2; ++i) scope.spawn(node->process().io(i), "ticks", count_ticks(ticks));
    }
    world.run_for(1s);
    a.crash(CrashKind::kKilled);
    b.crash(CrashKind::kKilled);
    return world.trace_hash();
  };
  EXPECT_EQ(history(1), history(1));
  EXPECT_NE(history(1), history(2));
}

TEST(World, TheOrderBetweenExecutorsVariesAndWithinOneDoesNot) {
  bool core_first = false;
  bool io_first = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    World world({.seed = seed});
    Node node(world, {.host = "a"});
    std::vector<int> order;
    node.process().core().post([&] { order.push_back(1); });
    node.process().core().post([&] { order.push_back(2); });
    node.process().io(0).post([&] { order.push_back(3); });
    world.run_for(1ms);
    ASSERT_EQ(order.size(), 3u);
    EXPECT_LT(std::ranges::find(order, 1), std::ranges::find(order, 2));
    (order[0] == 3 ? io_first : core_first) = true;
  }
  EXPECT_TRUE(core_first && io_first);
}

TEST(World, JumpsTheClockWhenNothingIsReady) {
  World world({.seed = 1});
  bool has_fired = false;
  world.after(300min, [&] { has_fired = true; });
  EXPECT_EQ(world.run_until([&] { return has_fired; }), RunEnd::kDone);
  EXPECT_GE(world.now().since_zero(), 300min);
  EXPECT_LT(world.steps(), 10u);
}

TEST(World, TellsHowARunThatNeverGetsDoneEnds) {
  auto never = [] { return false; };
  World idle({.seed = 1});
  EXPECT_EQ(idle.run_until(never), RunEnd::kIdle);

  World slow({.seed = 1, .time_max = 10s});
  slow.after(1min, [] {});
  EXPECT_EQ(slow.run_until(never), RunEnd::kTimeLimit);

  World busy({.seed = 1, .steps_max = 1000});
  Node node(busy, {.host = "a"});
  std::function<void()> spin = [&] { node.process().core().post(spin); };
  spin();
  EXPECT_EQ(busy.run_until(never), RunEnd::kStepLimit);
}

TEST(World, AFailedCheckPrintsItsSeed) {
  EXPECT_DEATH(
      {
        World world({.seed = 4711});
        world.after(1s, [] { CHECK(1 + 1 == 3); });
        world.run_for(2s);
      },
      "seed 4711");
}

TEST(Node, ACrashFreesWhatWaitsAndTheNextLifeStartsClean) {
  World world({.seed = 1});
  Node node(world, {.host = "a"});
  auto held = std::make_shared<int>(0);
  Process& first = node.process();
  auto scope = std::make_unique<TaskScope>();
  scope->spawn(first.io(0), "ticks", count_ticks(held));
  world.run_for(95ms);
  EXPECT_EQ(*held, 9);
  bool queued_ran = false;
  first.core().post([held, &queued_ran] { queued_ran = true; });
  first.offload(runtime::Lane::kDisk, [held, &queued_ran] { queued_ran = true; });

  node.crash(CrashKind::kKilled);
  EXPECT_FALSE(node.is_up());
  scope.reset();
  EXPECT_EQ(held.use_count(), 1) << "nothing of the dead process is kept";
  first.core().post([&queued_ran] { queued_ran = true; });

  node.boot();
  EXPECT_EQ(node.process().life(), 2u);
  EXPECT_NE(&node.process().core(), &first.core());
  world.run_for(1s);
  EXPECT_FALSE(queued_ran);
  EXPECT_EQ(*held, 9);
}

TEST(Node, APausedNodeDoesNothingUntilItResumes) {
  World world({.seed = 1});
  Node node(world, {.host = "a"});
  auto ticks = std::make_shared<int>(0);
  TaskScope scope;
  scope.spawn(node.process().io(0), "ticks", count_ticks(ticks));
  world.run_for(55ms);
  EXPECT_EQ(*ticks, 5);
  node.pause();
  EXPECT_FALSE(node.process().is_running());
  world.run_for(1min);
  EXPECT_EQ(*ticks, 5);
  node.resume();
  world.run_for(15ms);
  EXPECT_GE(*ticks, 6);
  node.crash(CrashKind::kKilled);
}

TEST(Node, WallClocksAreSkewedAndJumpWhileTheMonotonicOneDoesNot) {
  World world({.seed = 1});
  Node exact(world, {.host = "a"});
  Node skewed(world, {.host = "b", .clock_offset = -90s, .clock_drift_parts_per_million = 500});
  EXPECT_EQ(exact.wall_now().value() - skewed.wall_now().value(), 90'000);
  world.run_for(1000s);
  EXPECT_EQ(exact.wall_now().value() - skewed.wall_now().value(), 89'500);
  MonotonicTime before = skewed.process().now();
  skewed.jump_clock(-60min);
  EXPECT_EQ(exact.wall_now().value() - skewed.wall_now().value(), 89'500 + 3'600'000);
  EXPECT_EQ(skewed.process().now(), before);
}

TEST(Node, TheDiskLaneReordersWhatTheLogLaneKeepsInOrder) {
  World world({.seed = 7});
  Node node(world, {.host = "a"});
  std::vector<int> disk;
  std::vector<int> log;
  for (int i = 0; i < 50; ++i) {
    node.process().offload(runtime::Lane::kDisk, [&, i] { disk.push_back(i); });
    node.process().offload(runtime::Lane::kLog, [&, i] { log.push_back(i); });
  }
  world.run_for(1min);
  ASSERT_EQ(disk.size(), 50u);
  ASSERT_EQ(log.size(), 50u);
  EXPECT_TRUE(std::ranges::is_sorted(log));
  EXPECT_FALSE(std::ranges::is_sorted(disk));
}

TEST(Node, ThePowerFailsInTheMiddleOfABlockingJob) {
  World world({.seed = 1});
  Node node(world, {.host = "a"});
  bool was_handled = false;
  bool reply_ran = false;
  node.cut_power_after(2, [&] {
    was_handled = true;
    node.crash(CrashKind::kPowerCut);
  });
  Process& process = node.process();
  process.offload(runtime::Lane::kDisk, [&] {
    auto file = std::move(*process.file_system().open("a", runtime::OpenMode::kCreate));
    EXPECT_FALSE(file->sync());
    EXPECT_FALSE(process.file_system().sync_folder("")) << "the job runs on, but does nothing any more";
    process.core().post([&] { reply_ran = true; });
  });
  world.run_for(1s);
  EXPECT_TRUE(was_handled);
  EXPECT_FALSE(reply_ran);
  node.boot();
  EXPECT_TRUE(node.process().file_system().list(""));
}

TEST(Node, TimersBelongToTheirExecutor) {
  EXPECT_DEATH(
      {
        World world({.seed = 1});
        Node node(world, {.host = "a"});
        auto timer = node.process().core().start_timer(world.now(), [] {});
      },
      "started from another executor");
}

}  // namespace
}  // namespace varve::sim
