#include "storage/fetch/fetch_waiters.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "metadata/state/state_testing.h"

namespace varve::storage {
namespace {

class FetchWaitersTest : public testing::Test {
 protected:
  FetchWaitersTest() {
    broker_ = driver_.register_broker(1);
    partitions_ = driver_.create_topic(broker_, "t", 3);
  }

  // A run of so many bytes; tells the waiters, as apply does.
  void commit(size_t partition, uint32_t bytes, uint32_t records = 1) {
    driver_.commit(broker_, {{.partition = partitions_[partition], .records = records, .bytes = bytes}});
    waiters_.partition_changed(driver_.state, partitions_[partition]);
  }
  FetchWaiters::Ticket wait(std::vector<FetchPartition> partitions, uint32_t bytes_min) {
    FetchRequest request{.partitions = std::move(partitions), .bytes_min = bytes_min};
    PlannedFetch plan = plan_fetch(driver_.state, request, {});
    EXPECT_FALSE(plan.has_error);
    EXPECT_LT(plan.bytes_estimate, bytes_min);
    return waiters_.add(request, plan);
  }

  metadata::StateDriver driver_;
  Incarnation broker_;
  std::vector<PartitionHandle> partitions_;
  FetchWaiters waiters_;
};

TEST_F(FetchWaitersTest, wakes_when_the_bytes_over_all_partitions_suffice) {
  commit(0, 100);
  auto ticket = wait({{partitions_[0], Offset(0)}, {partitions_[1], Offset(0)}}, 301);
  commit(1, 100);
  commit(2, 1'000);
  commit(0, 100);
  EXPECT_FALSE(ticket.woken.is_set());
  commit(1, 1);
  EXPECT_TRUE(ticket.woken.is_set());
}

TEST_F(FetchWaitersTest, counts_no_byte_twice_and_none_before_the_offset) {
  commit(0, 1'000, 10);
  auto whole = wait({{partitions_[0], Offset(0)}}, 1'201);
  auto half = wait({{partitions_[0], Offset(5)}}, 701);
  for (int i = 0; i < 2; ++i) {
    commit(0, 100);
    // Told again without anything new.
    for (int again = 0; again < 5; ++again) waiters_.partition_changed(driver_.state, partitions_[0]);
  }
  EXPECT_FALSE(whole.woken.is_set());
  EXPECT_FALSE(half.woken.is_set());
  commit(0, 1);
  EXPECT_TRUE(whole.woken.is_set());
  EXPECT_TRUE(half.woken.is_set());
}

TEST_F(FetchWaitersTest, counts_what_came_between_two_of_its_looks) {
  auto ticket = wait({{partitions_[0], Offset(0)}}, 300);
  for (int i = 0; i < 3; ++i) {
    driver_.commit(broker_, {{.partition = partitions_[0], .bytes = 100}});
  }
  EXPECT_FALSE(ticket.woken.is_set());
  waiters_.partition_changed(driver_.state, partitions_[0]);
  EXPECT_TRUE(ticket.woken.is_set());
}

// Runs of one object that follow one another are one run in state, which so grows at its end.
TEST_F(FetchWaitersTest, counts_all_of_what_a_run_grows_by) {
  auto object = driver_.object_of(broker_, {{.partition = partitions_[0], .bytes = 100},
                                            {.partition = partitions_[0], .bytes = 10'000},
                                            {.partition = partitions_[0], .bytes = 1}});
  auto commit_run = [&](size_t index) {
    auto part = object;
    part.runs = {object.runs[index]};
    driver_.propose(broker_, part);
    waiters_.partition_changed(driver_.state, partitions_[0]);
  };
  commit_run(0);
  auto early = wait({{partitions_[0], Offset(0)}}, 10'100);
  auto more = wait({{partitions_[0], Offset(0)}}, 10'102);
  commit_run(1);
  EXPECT_TRUE(early.woken.is_set());
  commit_run(2);
  EXPECT_FALSE(more.woken.is_set());
  commit(0, 1);
  EXPECT_TRUE(more.woken.is_set());
}

// Whatever happens, who waits is told exactly when a plan would say that it is worth it.
TEST_F(FetchWaitersTest, agrees_with_the_planner_over_random_histories) {
  Random random(11);
  struct Waiting {
    FetchRequest request;
    FetchWaiters::Ticket ticket;
  };
  std::vector<Waiting> waiting;
  metadata::CommitObject object;
  size_t told = 0;
  for (int step = 0; step < 4'000; ++step) {
    PartitionHandle partition = partitions_[random.below(partitions_.size())];
    auto view = driver_.state.partition(partition);
    ASSERT_TRUE(view);
    uint64_t choice = random.below(10);
    if (choice == 0) {
      Offset start(random.between(view->log_start.value(), view->high_watermark.value()));
      driver_.propose(broker_, metadata::SetLogStart{partition, start});
    } else if (choice <= 4) {
      if (object.runs.empty()) {
        std::vector<metadata::RunSpec> specs;
        for (int i = 0; i < 4; ++i) {
          specs.push_back({.partition = partition,
                           .records = static_cast<uint32_t>(random.between(1, 5)),
                           .bytes = static_cast<uint32_t>(random.between(1, 3'000))});
        }
        object = driver_.object_of(broker_, specs);
      }
      metadata::CommitObject part = object;
      part.runs = {object.runs.front()};
      partition = part.runs.front().partition;
      object.runs.erase(object.runs.begin());
      driver_.propose(broker_, part);
    } else {
      FetchRequest request{.bytes_min = static_cast<uint32_t>(random.between(1, 10'000))};
      for (PartitionHandle asked : partitions_) {
        auto place = driver_.state.partition(asked);
        Offset end = place->high_watermark;
        Offset from(random.chance(1, 2) ? end.value()
                                        : random.between(place->log_start.value(), end.value()));
        request.partitions.push_back({asked, from, static_cast<uint32_t>(random.between(1, 8'000))});
      }
      PlannedFetch plan = plan_fetch(driver_.state, request, {});
      if (plan.bytes_estimate >= request.bytes_min) continue;
      auto ticket = waiters_.add(request, plan);
      waiting.push_back({std::move(request), std::move(ticket)});
    }
    waiters_.partition_changed(driver_.state, partition);
    std::erase_if(waiting, [&](const Waiting& one) {
      PlannedFetch plan = plan_fetch(driver_.state, one.request, {});
      bool is_worth_it = plan.has_error || plan.bytes_estimate >= one.request.bytes_min;
      EXPECT_EQ(one.ticket.woken.is_set(), is_worth_it) << "step " << step;
      if (is_worth_it) {
        waiters_.remove(one.ticket.id);
        ++told;
      }
      return is_worth_it;
    });
  }
  EXPECT_GT(told, 500u);
}

TEST_F(FetchWaitersTest, a_partition_counts_up_to_its_own_limit_only) {
  auto ticket = wait({{partitions_[0], Offset(0), 150}, {partitions_[1], Offset(0)}}, 200);
  commit(0, 10'000);
  commit(0, 10'000);
  EXPECT_FALSE(ticket.woken.is_set());
  commit(1, 50);
  EXPECT_TRUE(ticket.woken.is_set());
}

TEST_F(FetchWaitersTest, wakes_when_its_offset_or_its_partition_goes) {
  for (int i = 0; i < 3; ++i) commit(0, 100);
  auto behind = wait({{partitions_[0], Offset(1)}}, 1'000);
  auto at_end = wait({{partitions_[0], Offset(3)}}, 1'000);
  driver_.propose(broker_, metadata::SetLogStart{partitions_[0], Offset(2)});
  waiters_.partition_changed(driver_.state, partitions_[0]);
  EXPECT_TRUE(behind.woken.is_set());
  EXPECT_FALSE(at_end.woken.is_set());
  driver_.propose(broker_, metadata::DeleteTopic{.id = metadata::StateDriver::topic_id(1)});
  waiters_.partition_changed(driver_.state, partitions_[0]);
  EXPECT_TRUE(at_end.woken.is_set());
}

TEST_F(FetchWaitersTest, who_has_left_is_forgotten) {
  auto gone = wait({{partitions_[0], Offset(0)}}, 10);
  auto stays = wait({{partitions_[0], Offset(0)}}, 10);
  waiters_.remove(gone.id);
  commit(0, 100);
  EXPECT_FALSE(gone.woken.is_set());
  EXPECT_TRUE(stays.woken.is_set());
  waiters_.remove(stays.id);
  EXPECT_EQ(waiters_.size(), 0u);
}

}  // namespace
}  // namespace varve::storage
