#include "sim/checkers/group_history.h"

#include <gtest/gtest.h>

namespace varve::sim {
namespace {

using client::Commits;
using client::GroupIdentity;
using client::TopicPartition;

const TopicPartition kAt{"t", PartitionIndex(0)};

class GroupHistoryTest : public ::testing::Test {
 protected:
  GroupHistoryTest() {
    id_.bytes[0] = 1;
    topics_.told_of("t", id_, 1);
  }
  void wait() {
    bool is_over = false;
    world_.after(1s, [&] { is_over = true; });
    world_.run_until([&] { return is_over; });
  }
  uint64_t commit(int64_t offset, int32_t generation = 1) {
    wait();
    GroupIdentity who{.member_id = "m", .instance_id = std::nullopt, .generation = generation};
    return history_.committing("g", who, Commits{{kAt, {Offset(offset), -1, ""}}});
  }
  void acked(int64_t offset, int32_t generation = 1) {
    uint64_t number = commit(offset, generation);
    wait();
    history_.answered(number, CommitAnswer::kAcked);
  }
  void found(std::optional<int64_t> offset) {
    wait();
    client::GroupOffsets::Committed committed;
    committed[kAt] = std::nullopt;
    if (offset) committed[kAt] = client::CommitPosition{Offset(*offset), -1, ""};
    history_.found("g", world_.now(), committed, "somebody");
  }
  void led(int32_t generation, std::vector<std::string> members, const std::string& share = "share") {
    GroupHistory::Members names;
    GroupHistory::Shares shares;
    for (const std::string& member : members) {
      names[member] = std::nullopt;
      shares[member] = Slice::copy_of(as_bytes(share + member));
    }
    history_.led("g", generation, names, shares);
  }
  void joined(const std::string& member, int32_t generation, const Slice& share) {
    GroupIdentity who{.member_id = member, .instance_id = std::nullopt, .generation = generation};
    history_.joined("g", who, share);
  }

  Uuid id_;
  World world_{{.seed = 1}};
  Findings findings_;
  TopicBook topics_{world_, findings_};
  GroupHistory history_{world_, topics_, findings_, {}};
};

TEST_F(GroupHistoryTest, TheLastAcknowledgedCommitIsFound) {
  found(std::nullopt);
  acked(5);
  acked(9);
  found(9);
  acked(3, 2);  // a member may go back by itself
  found(3);
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
  found(9);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, NoneAfterAnAcknowledgedCommitIsAFinding) {
  acked(5);
  found(std::nullopt);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, WhatNobodyCommittedIsAFinding) {
  acked(5);
  found(6);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, WhatWasRefusedIsAFinding) {
  acked(5);
  history_.answered(commit(6), CommitAnswer::kRefused);
  found(5);
  EXPECT_TRUE(findings_.empty());
  found(6);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, WithoutAnAnswerItMayBeStoredUntilALaterGenerationHasCommitted) {
  acked(5);
  history_.answered(commit(6), CommitAnswer::kUnknown);
  found(5);
  found(6);
  acked(7);
  found(6);
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
  acked(8, 2);
  found(8);
  EXPECT_TRUE(findings_.empty());
  found(6);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, AnAnswerUnderWayMayBeOfBothSides) {
  acked(5);
  uint64_t open = commit(6);
  found(5);
  found(6);
  wait();
  history_.answered(open, CommitAnswer::kAcked);
  EXPECT_TRUE(findings_.empty());
}

TEST_F(GroupHistoryTest, AfterADeletionOfTheGroupThereIsNoneAndNothingOfBefore) {
  acked(5, -1);
  uint64_t deletion = history_.deleting("g");
  found(5);  // it is under way
  found(std::nullopt);
  wait();
  history_.deletion_answered(deletion, CommitAnswer::kAcked);
  found(std::nullopt);
  acked(6, -1);
  found(6);
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
  found(5);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, WhatWasCommittedAfterADeletionIsNotForgotten) {
  uint64_t deletion = history_.deleting("g");
  wait();
  history_.deletion_answered(deletion, CommitAnswer::kAcked);
  acked(5, -1);
  found(std::nullopt);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, ADeletionWithoutAnAnswerMayComeLaterAndOneThatWasRefusedDoesNot) {
  history_.deletion_answered(history_.deleting("g"), CommitAnswer::kUnknown);
  acked(5, -1);
  found(5);
  found(std::nullopt);
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
}

TEST_F(GroupHistoryTest, ARefusedDeletionForgetsNothing) {
  acked(5, -1);
  history_.deletion_answered(history_.deleting("g"), CommitAnswer::kRefused);
  found(std::nullopt);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, WithItsTopicAnOffsetGoesAndDoesNotComeBackInTheNextLife) {
  acked(5);
  wait();
  topics_.ask_deletion(id_);
  found(5);
  found(std::nullopt);
  topics_.deleted(id_);
  found(std::nullopt);
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
  found(5);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, ACommitOfAPastGenerationIsAFinding) {
  led(2, {"m"});
  joined("m", 2, Slice::copy_of(as_bytes("sharem")));
  uint64_t late = commit(5, 1);
  EXPECT_TRUE(findings_.empty()) << findings_.to_string();
  history_.answered(late, CommitAnswer::kAcked);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, AShareIsWhatTheLeaderWrote) {
  led(1, {"a", "b"}, "first ");
  led(1, {"a", "b"}, "second ");  // it had no answer, and tried again
  joined("a", 1, Slice::copy_of(as_bytes("second a")));
  joined("b", 1, Slice::copy_of(as_bytes("second b")));
  EXPECT_TRUE(findings_.empty());
  joined("b", 1, Slice::copy_of(as_bytes("first b")));
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, AGenerationHasOneSetOfMembers) {
  led(1, {"a", "b"});
  EXPECT_TRUE(findings_.empty());
  led(1, {"a"});
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, APartitionHasOneOwnerInAGeneration) {
  Slice share = client::encode_assignment({kAt});
  history_.led("g", 1, {{"a", std::nullopt}, {"b", std::nullopt}}, {{"a", share}, {"b", share}});
  joined("a", 1, share);
  EXPECT_TRUE(findings_.empty());
  joined("b", 1, share);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(GroupHistoryTest, AStaticMemberThatComesBackHasItsInstancesShare) {
  Slice share = client::encode_assignment({kAt});
  history_.led("g", 1, {{"old", "i"}}, {{"old", share}});
  history_.joined("g", {.member_id = "new", .instance_id = "i", .generation = 1}, share);
  EXPECT_TRUE(findings_.empty());
  history_.joined("g", {.member_id = "new", .instance_id = "other", .generation = 1}, share);
  EXPECT_FALSE(findings_.empty());
}

}  // namespace
}  // namespace varve::sim
