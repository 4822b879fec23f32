#include "metadata/client/sync_queue.h"

#include <gtest/gtest.h>

namespace varve::metadata {
namespace {

using Waiter = SyncQueue::Waiter;

// A caller whose deadline has passed has set its completion itself.
void give_up(const Waiter& waiter) { waiter.set(fail(SyncErrc::kTimeout, "late")); }

TEST(SyncQueue, WhoComesWhileARoundRunsWaitsForTheNext) {
  SyncQueue queue;
  queue.add(Waiter());
  EXPECT_TRUE(queue.wanted().is_set());
  EXPECT_EQ(queue.begin_round().size(), 1u);
  auto wanted = queue.wanted();
  EXPECT_FALSE(wanted.is_set());
  queue.add(Waiter());
  EXPECT_TRUE(wanted.is_set());
  EXPECT_EQ(queue.begin_round().size(), 1u);
}

TEST(SyncQueue, CallersThatGaveUpDoNotPileUpWhileNoRoundBegins) {
  SyncQueue queue;
  for (int i = 0; i < 10'000; ++i) {
    Waiter waiter;
    queue.add(waiter);
    give_up(waiter);
  }
  EXPECT_LE(queue.size(), 64u);
}

TEST(SyncQueue, CallersThatGaveUpAreNotPutBackAfterARoundThatFailed) {
  SyncQueue queue;
  Waiter gone;
  Waiter patient;
  queue.add(gone);
  queue.add(patient);
  auto round = queue.begin_round();
  give_up(gone);
  queue.put_back(std::move(round));
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_FALSE(patient.is_set());
}

TEST(SyncQueue, StoppingAnswersThoseWhoWaitThoseOfARoundThatFailsAndThoseToCome) {
  SyncQueue queue;
  Waiter in_round;
  queue.add(in_round);
  auto round = queue.begin_round();
  Waiter waiting;
  queue.add(waiting);
  queue.stop();
  EXPECT_TRUE(waiting.is_set());
  queue.put_back(std::move(round));
  EXPECT_TRUE(in_round.is_set());
  Waiter late;
  queue.add(late);
  EXPECT_TRUE(late.is_set());
}

}  // namespace
}  // namespace varve::metadata
