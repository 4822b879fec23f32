// From the first reference to the deletion: the fence, the pending list and what may be deleted (invariant 7).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

using ::testing::ElementsAre;
using enum BatchVerdict;

class ObjectLife : public ::testing::Test, public StateDriver {
 protected:
  Incarnation broker = register_broker(1);
  std::vector<PartitionHandle> partitions = create_topic(broker, "t", 3);
  PartitionHandle other_topics = create_topic(broker, "other").at(0);

  std::vector<ObjectId> deletable() const {
    std::vector<ObjectId> ids;
    for (const PendingDeletion& pending : state.deletable(100)) ids.push_back(pending.object);
    return ids;
  }
  BatchVerdict first_verdict(const CommitObject& object) {
    return propose(broker, object).runs.at(0).batches.at(0).verdict;
  }
  CommitObject committed(const std::vector<RunSpec>& specs) {
    CommitObject object = object_of(broker, specs);
    EXPECT_EQ(first_verdict(object), kAccepted);
    return object;
  }
  void raise_fence() { propose(broker, AdvanceGcFence{state.fence_epoch().plus(1)}); }
  void pass(int64_t ms) {
    time = time.plus(ms);
    propose(broker, Beat{});
  }
  CommandOutcome delete_objects(std::vector<ObjectId> ids) {
    return propose(broker, ObjectsDeleted{std::move(ids)});
  }
  void delete_topic() { propose(broker, DeleteTopic{state.find_topic("t")->id}); }
};

TEST_F(ObjectLife, IsKnownWithItsEpochFromItsFirstRunOn) {
  CommitObject object = object_of(broker, {{.partition = partitions[0]}});
  EXPECT_FALSE(state.knows_object(object.object));
  EXPECT_EQ(state.object_epoch(object.object), std::nullopt);
  propose(broker, object);
  EXPECT_TRUE(state.knows_object(object.object));
  EXPECT_EQ(state.object_epoch(object.object), FenceEpoch(0));
  EXPECT_EQ(state.pending_deletions(), 0u);
}

TEST_F(ObjectLife, WaitsForTheFenceAndNeedsNoGraceAfterTheTopicIsDeleted) {
  CommitObject object = committed({{.partition = partitions[0]}, {.partition = partitions[1]}});
  delete_topic();
  EXPECT_EQ(state.pending_deletions(), 1u);
  EXPECT_TRUE(state.knows_object(object.object));
  EXPECT_TRUE(deletable().empty()) << "the fence has not passed its epoch";
  EXPECT_EQ(delete_objects({object.object}).detail, "not_deletable");
  raise_fence();
  EXPECT_THAT(deletable(), ElementsAre(object.object));
  EXPECT_FALSE(state.deletable(1).at(0).needs_grace);
  EXPECT_EQ(delete_objects({object.object}).verdict, CommandVerdict::kDone);
  EXPECT_FALSE(state.knows_object(object.object));
  EXPECT_EQ(first_verdict(object), kObjectFenced) << "and for ever after";
}

TEST_F(ObjectLife, IsNotPendingWhileAnyRunOfAnyTopicRefersToIt) {
  CommitObject object = committed({{.partition = partitions[0]}, {.partition = other_topics}});
  raise_fence();
  delete_topic();
  EXPECT_EQ(state.pending_deletions(), 0u);
  EXPECT_EQ(delete_objects({object.object}).verdict, CommandVerdict::kRefused);
  EXPECT_TRUE(state.knows_object(object.object));
}

TEST_F(ObjectLife, WaitsAMinuteOfLogTimeForReadersBelowALogStart) {
  CommitObject object = committed({{.partition = partitions[0], .records = 4}});
  raise_fence();
  propose(broker, SetLogStart{partitions[0], Offset(3)});
  EXPECT_EQ(state.pending_deletions(), 0u) << "one record is still above";
  propose(broker, SetLogStart{partitions[0], Offset(4)});
  EXPECT_EQ(state.pending_deletions(), 1u);
  EXPECT_TRUE(deletable().empty());
  pass(59'999);
  EXPECT_TRUE(deletable().empty());
  pass(1);
  EXPECT_THAT(deletable(), ElementsAre(object.object));
}

TEST_F(ObjectLife, ReadersBelowALogStartAreSparedEvenIfATopicsDeletionTakesTheLastReference) {
  CommitObject object = committed({{.partition = other_topics}, {.partition = partitions[0]}});
  raise_fence();
  propose(broker, SetLogStart{other_topics, Offset(1)});
  delete_topic();
  EXPECT_TRUE(deletable().empty());
  pass(60'000);
  EXPECT_THAT(deletable(), ElementsAre(object.object));
}

TEST_F(ObjectLife, WaitsUntilEveryRetainedSnapshotIsYoungerThanTheDereference) {
  CommitObject object = committed({{.partition = partitions[0]}});
  raise_fence();
  auto snapshot = [&] {
    EXPECT_EQ(propose(broker, SnapshotTaken{.position = state.position(), .bytes = 1}).verdict,
              CommandVerdict::kDone);
  };
  snapshot();
  snapshot();
  delete_topic();
  EXPECT_TRUE(deletable().empty());
  snapshot();
  snapshot();
  EXPECT_EQ(state.snapshots().size(), 3u);
  EXPECT_TRUE(deletable().empty()) << "one retained snapshot still refers to it";
  snapshot();
  EXPECT_THAT(deletable(), ElementsAre(object.object));
}

TEST_F(ObjectLife, ASnapshotAtTheDereferenceItselfIsYoungEnough) {
  committed({{.partition = partitions[0]}});
  raise_fence();
  delete_topic();
  propose(broker, SnapshotTaken{.position = state.position(), .bytes = 1});
  EXPECT_EQ(deletable().size(), 1u);
}

TEST_F(ObjectLife, WhoseRunsWereAllRefusedIsPendingAtOnce) {
  CommitObject object = object_of(broker, {{.partition = PartitionHandle(999)}});
  EXPECT_EQ(first_verdict(object), kUnknownPartition);
  EXPECT_EQ(state.pending_deletions(), 1u);
  raise_fence();
  EXPECT_THAT(deletable(), ElementsAre(object.object));
}

TEST_F(ObjectLife, ALaterLegalCommitTakesItOutOfThePendingList) {
  CommitObject whole = object_of(broker, {{.partition = partitions[0]}, {.partition = other_topics}});
  CommitObject first = whole;
  first.runs.pop_back();
  CommitObject second = whole;
  second.runs.erase(second.runs.begin());
  EXPECT_EQ(first_verdict(first), kAccepted);
  delete_topic();
  EXPECT_EQ(state.pending_deletions(), 1u);
  EXPECT_EQ(first_verdict(second), kAccepted);
  EXPECT_EQ(state.pending_deletions(), 0u);
  raise_fence();
  EXPECT_TRUE(deletable().empty());
  EXPECT_EQ(high_watermark(other_topics), 1);
}

TEST_F(ObjectLife, AFencedPartlyCommittedObjectIsNeverReferredToAgain) {
  CommitObject whole = object_of(broker, {{.partition = partitions[0]}, {.partition = other_topics}});
  CommitObject first = whole;
  first.runs.pop_back();
  EXPECT_EQ(first_verdict(first), kAccepted);
  raise_fence();
  delete_topic();
  EXPECT_EQ(first_verdict(whole), kObjectFenced);
  EXPECT_THAT(deletable(), ElementsAre(whole.object));
}

TEST_F(ObjectLife, TheOldestPendingComeFirstAndNoMoreThanAsked) {
  std::vector<ObjectId> ids;
  for (int i = 0; i < 5; ++i) {
    CommitObject object = object_of(broker, {{.partition = PartitionHandle(999)}});
    propose(broker, object);
    ids.push_back(object.object);
  }
  raise_fence();
  EXPECT_EQ(deletable(), ids);
  EXPECT_EQ(state.deletable(2).size(), 2u);
  EXPECT_EQ(state.deletable(2)[1].object, ids[1]);
}

TEST_F(ObjectLife, OfManyConfirmedDeletionsOnlyTheLegalOnesCount) {
  CommitObject live = committed({{.partition = other_topics}});
  CommitObject dead = committed({{.partition = partitions[0]}});
  raise_fence();
  delete_topic();
  ObjectId unknown{broker, ObjectNumber(1234)};
  EXPECT_EQ(delete_objects({live.object, unknown, dead.object}).verdict, CommandVerdict::kRefused);
  EXPECT_TRUE(state.knows_object(live.object));
  EXPECT_FALSE(state.knows_object(dead.object));
}

TEST_F(ObjectLife, TheFenceOnlyRises) {
  raise_fence();
  raise_fence();
  EXPECT_EQ(propose(broker, AdvanceGcFence{FenceEpoch(2)}).detail, "fence_not_raised");
  EXPECT_EQ(propose(broker, AdvanceGcFence{FenceEpoch(1)}).verdict, CommandVerdict::kRefused);
  EXPECT_EQ(state.fence_epoch(), FenceEpoch(2));
  EXPECT_EQ(propose(broker, AdvanceGcFence{FenceEpoch(7)}).verdict, CommandVerdict::kDone);
  EXPECT_EQ(state.fence_epoch(), FenceEpoch(7));
}

class Snapshots : public ObjectLife {};

TEST_F(Snapshots, MustBeOfThePastAndAboveTheNewest) {
  auto take = [&](LogPosition position) {
    return propose(broker, SnapshotTaken{.position = position}).detail;
  };
  EXPECT_EQ(take(state.position().plus(gap)), "snapshot_out_of_order") << "it cannot hold its own entry";
  LogPosition now = state.position();
  EXPECT_EQ(take(now), "");
  EXPECT_EQ(take(now), "snapshot_out_of_order");
  EXPECT_EQ(state.snapshots().size(), 1u);
}

TEST_F(Snapshots, ThreeAreRetainedAndTheOldestOfThemIsWhereTrimmingEnds) {
  std::vector<LogPosition> taken;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(state.trimmable(), i < 3 ? LogPosition() : taken[0]);
    taken.push_back(state.position());
    propose(broker, SnapshotTaken{.position = state.position(), .state_hash = 5, .bytes = 6});
  }
  EXPECT_EQ(state.snapshots().size(), 3u);
  EXPECT_EQ(state.snapshots()[0].position, taken[1]);
  EXPECT_EQ(state.snapshots()[2].state_hash, 5u);
  EXPECT_EQ(state.trimmable(), taken[1]);
}

TEST_F(Snapshots, MayReuseChunksOfARetainedOneOnly) {
  LogPosition first = state.position();
  propose(broker, SnapshotTaken{.position = first});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(propose(broker, SnapshotTaken{.position = state.position(), .predecessor = first}).detail, "");
  }
  EXPECT_EQ(propose(broker, SnapshotTaken{.position = state.position(), .predecessor = first}).detail,
            "predecessor_gone");
}

}  // namespace
}  // namespace varve::metadata
