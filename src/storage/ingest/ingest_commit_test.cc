#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/ingest/ingest_buffer_testing.h"

namespace varve::storage {
namespace {

using metadata::BatchVerdict;
using metadata::CommitObject;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(IngestBufferTest, one_object_carries_the_batches_of_all_partitions_grouped_and_in_order) {
  make();
  size_t first = submit({{kP1, -1, -1}, {kP0, -1, -1}});
  size_t second = submit({{kP1, -1, -1}}, 2);
  Upload upload = start_upload();
  EXPECT_EQ(upload.object, (metadata::ObjectId{Incarnation(5), ObjectNumber(1)}));
  ASSERT_THAT(upload.runs, SizeIs(2));
  EXPECT_EQ(upload.runs[0]->partition, kP0);
  EXPECT_EQ(upload.runs[1]->partition, kP1);
  EXPECT_THAT(upload.runs[1]->batches, SizeIs(2));
  EXPECT_FALSE(is_answered(first));
  succeed(upload);
  auto proposed = proposals();
  ASSERT_THAT(proposed, SizeIs(1));
  EXPECT_EQ(commit_in(proposed[0]).run_count, 2u);
  EXPECT_THAT(commit_in(proposed[0]).runs, SizeIs(2));
  EXPECT_FALSE(is_answered(first));
  buffer_->proposal_ended(proposed[0].serial, accept(proposed[0], 40), now_);
  ASSERT_TRUE(is_answered(first) && is_answered(second));
  // One verdict stands for the run: its batches follow one another.
  EXPECT_EQ(answers_[first]->at(0).base_offset, Offset(40));
  EXPECT_EQ(answers_[first]->at(1).base_offset, Offset(40));
  EXPECT_EQ(answers_[second]->at(0).base_offset, Offset(41));
  EXPECT_TRUE(buffer_->is_empty());
  EXPECT_EQ(buffer_->memory_bytes(), 0u);
}

TEST_F(IngestBufferTest, commits_do_not_wait_for_a_slow_upload_of_other_chains) {
  make();
  size_t slow = submit({{kP0, -1, -1}}, 1);
  Upload slow_upload = start_upload();
  size_t quick = submit({{kP0, -1, -1}}, 2);
  Upload quick_upload = start_upload();
  succeed(quick_upload);
  accept_all();
  EXPECT_EQ(verdict(quick), AppendVerdict::kAccepted);
  EXPECT_FALSE(is_answered(slow));
  succeed(slow_upload);
  accept_all();
  EXPECT_EQ(verdict(slow), AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, a_chains_run_waits_for_its_earlier_object_and_the_rest_of_its_object_does_not) {
  make();
  size_t earlier = submit({{kP0, -1, -1}}, 1);
  Upload slow = start_upload();
  size_t later = submit({{kP0, -1, -1}}, 1);
  size_t other = submit({{kP0, -1, -1}}, 2);
  Upload quick = start_upload();
  // Same partition, yet two runs, so that one can go ahead.
  ASSERT_THAT(quick.runs, SizeIs(2));
  succeed(quick);
  auto first = proposals();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_THAT(commit_in(first[0]).runs, SizeIs(1));
  EXPECT_EQ(commit_in(first[0]).run_count, 2u);
  buffer_->proposal_ended(first[0].serial, accept(first[0], 0), now_);
  EXPECT_EQ(verdict(other), AppendVerdict::kAccepted);
  EXPECT_FALSE(is_answered(later));

  succeed(slow);
  auto second = proposals();
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(commit_in(second[0]).object, slow.object);
  // Nothing of the chain is proposed before the earlier batch has its verdict.
  EXPECT_THAT(proposals(), IsEmpty());
  buffer_->proposal_ended(second[0].serial, accept(second[0], 1), now_);
  EXPECT_EQ(verdict(earlier), AppendVerdict::kAccepted);
  auto third = proposals();
  ASSERT_THAT(third, SizeIs(1));
  EXPECT_EQ(commit_in(third[0]).object, quick.object);
  EXPECT_THAT(commit_in(third[0]).runs, SizeIs(1));
  buffer_->proposal_ended(third[0].serial, accept(third[0], 2), now_);
  EXPECT_EQ(verdict(later), AppendVerdict::kAccepted);
  EXPECT_TRUE(buffer_->is_empty());
}

TEST_F(IngestBufferTest, a_failed_upload_fails_its_batches_and_the_later_ones_of_their_chains) {
  make();
  size_t doomed = submit({{kP0, -1, -1}, {kP1, -1, -1}}, 1);
  Upload upload = start_upload();
  size_t uploading = submit({{kP0, -1, -1}}, 1);
  size_t bystander = submit({{kP0, -1, -1}}, 2);
  Upload second = start_upload();
  size_t buffered = submit({{kP1, -1, -1}}, 1);
  size_t other_buffered = submit({{kP1, -1, -1}}, 3);
  buffer_->upload_failed(upload.serial, AppendVerdict::kStoreFailed, now_);
  EXPECT_EQ(verdict(doomed, 0), AppendVerdict::kStoreFailed);
  EXPECT_EQ(verdict(doomed, 1), AppendVerdict::kStoreFailed);
  EXPECT_EQ(verdict(uploading), AppendVerdict::kPredecessorFailed);
  EXPECT_EQ(verdict(buffered), AppendVerdict::kPredecessorFailed);
  EXPECT_FALSE(is_answered(bystander) || is_answered(other_buffered));

  succeed(second);
  auto proposed = proposals();
  ASSERT_THAT(proposed, SizeIs(1));
  // The failed run lies in the object, and is never committed.
  EXPECT_THAT(commit_in(proposed[0]).runs, SizeIs(1));
  EXPECT_EQ(commit_in(proposed[0]).run_count, 2u);
  buffer_->proposal_ended(proposed[0].serial, accept(proposed[0]), now_);
  EXPECT_EQ(verdict(bystander), AppendVerdict::kAccepted);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(other_buffered), AppendVerdict::kAccepted);
  EXPECT_TRUE(buffer_->is_empty());
  EXPECT_EQ(buffer_->memory_bytes(), 0u);
}

TEST_F(IngestBufferTest, a_new_batch_of_the_chain_after_its_failure_is_taken) {
  make();
  submit({{kP0, -1, -1}}, 1);
  buffer_->upload_failed(start_upload().serial, AppendVerdict::kStoreFailed, now_);
  size_t again = submit({{kP0, -1, -1}}, 1);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(again), AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, what_comes_after_a_failure_still_waits_for_what_came_before_it) {
  make();
  size_t first = submit({{kP0, -1, -1}});
  Upload slow = start_upload();
  size_t second = submit({{kP0, -1, -1}});
  Upload failing = start_upload();
  size_t third = submit({{kP0, -1, -1}});
  start_upload();
  buffer_->upload_failed(failing.serial, AppendVerdict::kStoreFailed, now_);
  EXPECT_EQ(verdict(second), AppendVerdict::kStoreFailed);
  EXPECT_EQ(verdict(third), AppendVerdict::kPredecessorFailed);
  size_t fourth = submit({{kP0, -1, -1}});
  succeed(start_upload());
  EXPECT_THAT(proposals(), IsEmpty()) << "the first is not stored yet";
  succeed(slow);
  auto proposed = proposals();
  ASSERT_THAT(proposed, SizeIs(1));
  buffer_->proposal_ended(proposed[0].serial, accept(proposed[0]), now_);
  EXPECT_EQ(verdict(first), AppendVerdict::kAccepted);
  EXPECT_FALSE(is_answered(fourth));
  accept_all();
  EXPECT_EQ(verdict(fourth), AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, an_unknown_fate_is_never_an_acknowledgement) {
  make();
  size_t proposed_batch = submit({{kP0, -1, -1}}, 1);
  succeed(start_upload());
  auto proposed = proposals();
  size_t next = submit({{kP0, -1, -1}}, 1);
  Upload second = start_upload();
  succeed(second);
  EXPECT_THAT(proposals(), IsEmpty());
  buffer_->proposal_ended(proposed[0].serial, fail(metadata::ProposeErrc::kUnknown, "snapshot"), now_);
  EXPECT_EQ(verdict(proposed_batch), AppendVerdict::kUnknownFate);
  EXPECT_EQ(verdict(next), AppendVerdict::kPredecessorFailed);
  EXPECT_THAT(proposals(), IsEmpty());
  EXPECT_TRUE(buffer_->is_empty());
}

TEST_F(IngestBufferTest, what_the_log_refuses_fails_with_its_reason) {
  make();
  for (auto [error, expected] : {std::pair{metadata::ProposeErrc::kRejected, AppendVerdict::kNotStored},
                                 std::pair{metadata::ProposeErrc::kFull, AppendVerdict::kLogFull},
                                 std::pair{metadata::ProposeErrc::kStopping, AppendVerdict::kStopping}}) {
    size_t batch = submit({{kP0, -1, -1}});
    succeed(start_upload());
    auto proposed = proposals();
    buffer_->proposal_ended(proposed.at(0).serial, fail(error, ""), now_);
    EXPECT_EQ(verdict(batch), expected);
  }
}

TEST_F(IngestBufferTest, verdicts_of_apply_are_given_per_batch) {
  make();
  next_sequences_[{kP0, ProducerId(7)}] = Sequence(0);
  size_t request = submit({{kP0, 7, 0}, {kP0, 7, 1}, {kP1, -1, -1}});
  succeed(start_upload());
  auto proposed = proposals();
  const CommitObject& commit = commit_in(proposed.at(0));
  ASSERT_THAT(commit.runs, SizeIs(2));
  ASSERT_THAT(commit.runs[0].producers, SizeIs(2));
  metadata::CommandOutcome outcome;
  outcome.runs = {{0, {{BatchVerdict::kDuplicate, Offset(3), Offset(1), -1}, {BatchVerdict::kOutOfOrder}}},
                  {1, {{BatchVerdict::kUnknownPartition}}}};
  buffer_->proposal_ended(proposed[0].serial, std::vector{outcome}, now_);
  EXPECT_EQ(verdict(request, 0), AppendVerdict::kDuplicate);
  EXPECT_EQ(answers_[request]->at(0).base_offset, Offset(3));
  EXPECT_EQ(answers_[request]->at(0).log_start, Offset(1));
  EXPECT_EQ(verdict(request, 1), AppendVerdict::kOutOfOrder);
  EXPECT_EQ(verdict(request, 2), AppendVerdict::kUnknownPartition);
}

TEST_F(IngestBufferTest, append_time_comes_from_apply) {
  make();
  size_t request = submit({{.partition = kP0, .is_log_append_time = true}});
  succeed(start_upload());
  auto proposed = proposals();
  EXPECT_TRUE(commit_in(proposed.at(0)).runs.at(0).is_log_append_time);
  metadata::CommandOutcome outcome;
  outcome.runs = {{0, {{BatchVerdict::kAccepted, Offset(0), Offset(0), 12'345}}}};
  buffer_->proposal_ended(proposed[0].serial, std::vector{outcome}, now_);
  EXPECT_EQ(answers_[request]->at(0).append_time, 12'345);
}

TEST_F(IngestBufferTest, an_outcome_that_does_not_match_is_refused_and_complained_of) {
  make();
  size_t request = submit({{kP0, -1, -1}});
  succeed(start_upload());
  auto proposed = proposals();
  buffer_->proposal_ended(proposed.at(0).serial, std::vector<metadata::CommandOutcome>{}, now_);
  EXPECT_EQ(verdict(request), AppendVerdict::kRefused);
  EXPECT_THAT(buffer_->take_complaints(), SizeIs(1));
}

TEST_F(IngestBufferTest, an_object_that_the_fence_passed_is_uploaded_again_under_a_new_key_once) {
  make();
  size_t request = submit({{kP0, -1, -1}, {kP1, -1, -1}});
  size_t later = submit({{kP0, -1, -1}});
  Upload upload = start_upload(1);
  succeed(upload);
  auto proposed = proposals();
  buffer_->proposal_ended(proposed.at(0).serial, judge(proposed[0], BatchVerdict::kObjectFenced), now_);
  EXPECT_FALSE(is_answered(request));
  std::optional<Upload> again = take_upload(2);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->object.number, ObjectNumber(2));
  EXPECT_EQ(again->epoch, FenceEpoch(2));
  EXPECT_THAT(again->runs, SizeIs(2));
  succeed(*again);
  proposed = proposals();
  EXPECT_EQ(commit_in(proposed.at(0)).object, again->object);
  buffer_->proposal_ended(proposed[0].serial, judge(proposed[0], BatchVerdict::kObjectFenced), now_);
  EXPECT_EQ(verdict(request), AppendVerdict::kNotStored);
  EXPECT_EQ(verdict(later), AppendVerdict::kNotStored);
  EXPECT_FALSE(take_upload(3));
  EXPECT_TRUE(buffer_->is_empty());
}

TEST_F(IngestBufferTest, later_batches_of_a_chain_wait_while_a_fenced_object_is_uploaded_again) {
  make();
  size_t first = submit({{kP0, -1, -1}});
  Upload upload = start_upload(1);
  size_t second = submit({{kP0, -1, -1}});
  Upload newer = start_upload(2);
  succeed(newer);
  succeed(upload);
  auto proposed = proposals();
  buffer_->proposal_ended(proposed.at(0).serial, judge(proposed[0], BatchVerdict::kObjectFenced), now_);
  EXPECT_THAT(proposals(), IsEmpty());
  succeed(*take_upload(2));
  accept_all();
  EXPECT_TRUE(is_answered(first));
  EXPECT_FALSE(is_answered(second));
  accept_all();
  EXPECT_EQ(verdict(second), AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, an_upload_of_unknown_outcome_goes_on_as_another_object) {
  make();
  size_t request = submit({{kP0, -1, -1}, {kP1, -1, -1}});
  Upload first = start_upload(1);
  std::optional<Upload> second = buffer_->renew_upload(first.serial, Incarnation(5), FenceEpoch(2), now_);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->object, (metadata::ObjectId{Incarnation(5), ObjectNumber(2)}));
  EXPECT_EQ(second->epoch, FenceEpoch(2));
  EXPECT_THAT(second->runs, SizeIs(2));
  EXPECT_EQ(buffer_->uploads(), 1u);
  succeed(*second);
  auto proposed = proposals();
  EXPECT_EQ(commit_in(proposed.at(0)).object, second->object);
  EXPECT_EQ(commit_in(proposed[0]).epoch, FenceEpoch(2));
  buffer_->proposal_ended(proposed[0].serial, accept(proposed[0]), now_);
  EXPECT_EQ(verdict(request, 0), AppendVerdict::kAccepted);
  EXPECT_EQ(verdict(request, 1), AppendVerdict::kAccepted);
  EXPECT_TRUE(buffer_->is_empty());
}

TEST_F(IngestBufferTest, a_renewed_upload_leaves_out_what_has_failed_and_ends_if_that_is_all) {
  make();
  submit({{kP0, -1, -1}, {kP1, -1, -1}}, 1);
  Upload doomed = start_upload();
  submit({{kP0, -1, -1}}, 1);
  size_t bystander = submit({{kP0, -1, -1}}, 2);
  Upload mixed = start_upload();
  submit({{kP1, -1, -1}}, 1);
  Upload later = start_upload();
  buffer_->upload_failed(doomed.serial, AppendVerdict::kStoreFailed, now_);
  EXPECT_FALSE(buffer_->renew_upload(later.serial, Incarnation(5), FenceEpoch(1), now_));
  EXPECT_EQ(buffer_->uploads(), 1u);
  std::optional<Upload> renewed = buffer_->renew_upload(mixed.serial, Incarnation(5), FenceEpoch(1), now_);
  ASSERT_TRUE(renewed);
  EXPECT_THAT(renewed->runs, SizeIs(1));
  succeed(*renewed);
  accept_all();
  EXPECT_EQ(verdict(bystander), AppendVerdict::kAccepted);
  EXPECT_TRUE(buffer_->is_empty());
  EXPECT_EQ(buffer_->memory_bytes(), 0u);
}

TEST_F(IngestBufferTest, uploads_run_in_parallel_up_to_their_limit) {
  make({.seal = {.bytes_max = 100, .uploads_max = 2}});
  for (uint64_t i = 0; i < 3; ++i) submit({{kP0, -1, -1, 0, 100}}, i);
  auto first = take_upload();
  auto second = take_upload();
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(take_upload());
  succeed(*second);
  EXPECT_TRUE(take_upload());
}

TEST_F(IngestBufferTest, large_commits_are_split_over_proposals_and_over_runs) {
  make({.commit_bytes_max = 200});
  std::vector<BatchSpec> specs;
  for (int i = 0; i < 10; ++i) specs.push_back({kP0, 7, i});
  for (uint32_t i = 0; i < 6; ++i) specs.push_back({PartitionHandle(i + 1), -1, -1});
  size_t request = submit(specs);
  Upload upload = start_upload();
  ASSERT_THAT(upload.runs, SizeIs(9));  // 4 + 4 + 2 batches of the producer, and six others
  succeed(upload);
  auto proposed = proposals();
  // The producer's later runs wait for the first.
  EXPECT_THAT(proposed, SizeIs(3));
  for (int rounds = 0; !proposed.empty() && rounds < 10; ++rounds) {
    for (auto& proposal : proposed) buffer_->proposal_ended(proposal.serial, accept(proposal), now_);
    proposed = proposals();
  }
  ASSERT_TRUE(is_answered(request));
  for (const AppendResult& result : *answers_[request]) EXPECT_EQ(result.verdict, AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, early_acknowledged_batches_are_answered_from_the_buffer_and_kept_until_stored) {
  make({.early_acks = true});
  size_t early = submit({{kP0, -1, -1}});
  EXPECT_EQ(verdict(early), AppendVerdict::kBuffered);
  EXPECT_EQ(answers_[early]->at(0).base_offset, Offset(-1));
  size_t exact = submit({{kP0, 7, 0}});
  EXPECT_FALSE(is_answered(exact));
  Upload upload = start_upload();
  ASSERT_THAT(upload.runs, SizeIs(2));
  buffer_->upload_failed(upload.serial, AppendVerdict::kStoreFailed, now_);
  EXPECT_EQ(verdict(exact), AppendVerdict::kStoreFailed);
  EXPECT_FALSE(take_upload());
  pass(1s);
  std::optional<Upload> again = take_upload();
  ASSERT_TRUE(again);
  EXPECT_THAT(again->runs, SizeIs(1));
  succeed(*again);
  auto refused = proposals();
  buffer_->proposal_ended(refused.at(0).serial, fail(metadata::ProposeErrc::kRejected, ""), now_);
  EXPECT_THAT(proposals(), IsEmpty());
  pass(1s);
  accept_all();
  EXPECT_TRUE(buffer_->is_empty());
}

TEST_F(IngestBufferTest, early_acknowledged_batches_of_unknown_fate_count_as_done) {
  make({.early_acks = true});
  submit({{kP0, -1, -1}});
  succeed([&] {
    pass(500ms);
    return *take_upload();
  }());
  auto proposed = proposals();
  buffer_->proposal_ended(proposed.at(0).serial, fail(metadata::ProposeErrc::kUnknown, ""), now_);
  EXPECT_TRUE(buffer_->is_empty());
}

TEST_F(IngestBufferTest, object_numbers_start_again_with_a_new_incarnation) {
  make();
  submit({{kP0, -1, -1}});
  EXPECT_EQ(start_upload().object, (metadata::ObjectId{Incarnation(5), ObjectNumber(1)}));
  submit({{kP0, -1, -1}}, 2);
  EXPECT_EQ(start_upload().object, (metadata::ObjectId{Incarnation(5), ObjectNumber(2)}));
  submit({{kP0, -1, -1}}, 3);
  pass(250ms);
  EXPECT_EQ(buffer_->take_upload(Incarnation(9), FenceEpoch(1), now_)->object,
            (metadata::ObjectId{Incarnation(9), ObjectNumber(1)}));
}

}  // namespace
}  // namespace varve::storage
