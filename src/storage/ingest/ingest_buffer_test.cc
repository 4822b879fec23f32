#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/ingest/ingest_buffer_testing.h"

namespace varve::storage {
namespace {

using metadata::BatchVerdict;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(IngestBufferTest, nothing_waits_so_nothing_is_due) {
  make();
  EXPECT_EQ(buffer_->next_due(now_), MonotonicTime::never());
  EXPECT_FALSE(take_upload());
  EXPECT_THAT(proposals(), IsEmpty());
}

TEST_F(IngestBufferTest, a_request_without_batches_is_answered_at_once) {
  make();
  EXPECT_THAT(answers_[submit({})], testing::Optional(IsEmpty()));
}

TEST_F(IngestBufferTest, a_full_buffer_is_sealed_without_waiting) {
  make({.seal = {.bytes_max = 1'000}});
  submit({{kP0, -1, -1, 0, 600}});
  EXPECT_FALSE(take_upload());
  submit({{kP0, -1, -1, 0, 600}});
  EXPECT_TRUE(take_upload());
}

TEST_F(IngestBufferTest, a_sequence_gap_is_held_until_its_predecessor_comes) {
  make();
  next_sequences_[{kP0, ProducerId(7)}] = Sequence(0);
  size_t third = submit({{kP0, 7, 2}}, 1);
  size_t second = submit({{kP0, 7, 1}}, 2);
  pass(500ms);
  EXPECT_FALSE(take_upload());
  size_t first = submit({{kP0, 7, 0}}, 3);
  Upload upload = start_upload();
  ASSERT_THAT(upload.runs, SizeIs(1));
  ASSERT_THAT(upload.runs[0]->batches, SizeIs(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(upload.runs[0]->batches[i].first_sequence, Sequence(i));
  succeed(upload);
  accept_all();
  EXPECT_TRUE(is_answered(first) && is_answered(second) && is_answered(third));
}

TEST_F(IngestBufferTest, a_held_batch_goes_on_when_another_broker_has_stored_its_predecessor) {
  make();
  submit({{kP0, 7, 4}});
  pass(300ms);
  EXPECT_FALSE(take_upload());
  next_sequences_[{kP0, ProducerId(7)}] = Sequence(4);
  buffer_->partition_changed(kP1, now_);
  pass(250ms);
  EXPECT_FALSE(take_upload());
  buffer_->partition_changed(kP0, now_);
  EXPECT_THAT(start_upload().runs, SizeIs(1));
}

TEST_F(IngestBufferTest,
       a_chain_with_batches_open_here_goes_on_when_another_broker_has_stored_what_follows_them) {
  make();
  size_t first = submit({{kP0, 7, 0}});
  succeed(start_upload());
  size_t third = submit({{kP0, 7, 2}});
  accept_all();
  EXPECT_EQ(verdict(first), AppendVerdict::kAccepted);
  // 1 went through another broker.
  next_sequences_[{kP0, ProducerId(7)}] = Sequence(2);
  buffer_->partition_changed(kP0, now_);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(third), AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, a_gap_is_held_a_second_and_then_proposed_as_it_is) {
  make();
  size_t gap = submit({{kP0, 7, 6}});
  pass(1ms);
  size_t earlier_gap = submit({{kP0, 7, 5}});
  pass(998ms);
  EXPECT_FALSE(take_upload());
  pass(1ms);
  Upload upload = start_upload();
  ASSERT_THAT(upload.runs.at(0)->batches, SizeIs(2));
  EXPECT_EQ(upload.runs[0]->batches[0].first_sequence, Sequence(5));
  succeed(upload);
  auto proposed = proposals();
  buffer_->proposal_ended(proposed.at(0).serial, judge(proposed[0], BatchVerdict::kOutOfOrder), now_);
  EXPECT_EQ(verdict(gap), AppendVerdict::kOutOfOrder);
  EXPECT_EQ(verdict(earlier_gap), AppendVerdict::kOutOfOrder);
}

TEST_F(IngestBufferTest, an_unknown_producer_that_starts_at_0_is_not_held) {
  make();
  submit({{kP0, 7, 0}});
  EXPECT_THAT(start_upload().runs, SizeIs(1));
}

TEST_F(IngestBufferTest, sequences_wrap) {
  make();
  next_sequences_[{kP0, ProducerId(7)}] = Sequence(INT32_MAX);
  submit({{kP0, 7, 0}});
  submit({{kP0, 7, INT32_MAX}});
  Upload upload = start_upload();
  ASSERT_THAT(upload.runs.at(0)->batches, SizeIs(2));
  EXPECT_EQ(upload.runs[0]->batches[0].first_sequence, Sequence(INT32_MAX));
  EXPECT_EQ(upload.runs[0]->batches[1].first_sequence, Sequence(0));
}

TEST_F(IngestBufferTest, a_new_epoch_has_to_start_at_0_and_an_old_one_is_apply_s_business) {
  make();
  next_sequences_[{kP0, ProducerId(7)}] = Sequence(3);
  submit({{kP0, 7, 3, 1}});
  submit({{kP0, 7, 1, 2}});
  submit({{kP0, 7, 0, 2}});
  submit({{kP0, 7, 99, 0}});
  Upload upload = start_upload();
  std::vector<int32_t> sequences;
  for (const WalBatch& batch : upload.runs.at(0)->batches) sequences.push_back(batch.first_sequence.value());
  EXPECT_THAT(sequences, ElementsAre(3, 0, 1, 99));
}

TEST_F(IngestBufferTest, held_batches_fail_with_their_chain) {
  make();
  size_t first = submit({{kP0, 7, 0}});
  Upload upload = start_upload();
  size_t gap = submit({{kP0, 7, 2}});
  buffer_->upload_failed(upload.serial, AppendVerdict::kStoreFull, now_);
  EXPECT_EQ(verdict(first), AppendVerdict::kStoreFull);
  EXPECT_EQ(verdict(gap), AppendVerdict::kPredecessorFailed);
  EXPECT_TRUE(buffer_->is_empty());
  EXPECT_EQ(buffer_->next_due(now_), MonotonicTime::never());
}

TEST_F(IngestBufferTest, a_full_budget_makes_requests_wait_in_their_order_and_fails_none) {
  make({.memory_bytes_max = 10'000});
  size_t first = submit({{kP0, -1, -1, 0, 2'000}}, 1);
  size_t second = submit({{kP0, -1, -1, 0, 2'000}}, 2);
  size_t third = submit({{kP0, -1, -1, 0, 2'000}}, 3);
  size_t small = submit({{kP0, -1, -1, 0, 1}}, 4);
  EXPECT_EQ(buffer_->requests_waiting(), 2u);
  EXPECT_LE(buffer_->memory_bytes(), 10'000u);
  Upload upload = start_upload();
  EXPECT_THAT(upload.runs.at(0)->batches, SizeIs(2));
  pass(10s);
  EXPECT_FALSE(take_upload());
  succeed(upload);
  accept_all();
  EXPECT_TRUE(is_answered(first) && is_answered(second));
  EXPECT_EQ(buffer_->requests_waiting(), 0u);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(third), AppendVerdict::kAccepted);
  EXPECT_EQ(verdict(small), AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, a_request_larger_than_the_budget_goes_alone) {
  make({.memory_bytes_max = 1'000});
  size_t large = submit({{kP0, -1, -1, 0, 5'000}});
  size_t next = submit({{kP0, -1, -1, 0, 1}});
  EXPECT_EQ(buffer_->requests_waiting(), 1u);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(large), AppendVerdict::kAccepted);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(next), AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, requests_that_wait_for_room_fail_with_their_chain) {
  make({.memory_bytes_max = 1'000});
  submit({{kP0, -1, -1, 0, 2'000}}, 1);
  size_t waiting = submit({{kP0, -1, -1}, {kP1, -1, -1}}, 1);
  buffer_->upload_failed(start_upload().serial, AppendVerdict::kStoreFailed, now_);
  EXPECT_FALSE(is_answered(waiting));
  Upload upload = start_upload();
  EXPECT_THAT(upload.runs, SizeIs(1));
  succeed(upload);
  accept_all();
  EXPECT_EQ(verdict(waiting, 0), AppendVerdict::kPredecessorFailed);
  EXPECT_EQ(verdict(waiting, 1), AppendVerdict::kAccepted);
}

TEST_F(IngestBufferTest, a_chain_has_a_limit_of_waiting_batches) {
  make({.chain_batches_max = 2});
  size_t request = submit({{kP0, -1, -1}, {kP0, -1, -1}, {kP0, -1, -1}, {kP1, -1, -1}});
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(request, 1), AppendVerdict::kAccepted);
  EXPECT_EQ(verdict(request, 2), AppendVerdict::kTooManyWaiting);
  EXPECT_EQ(verdict(request, 3), AppendVerdict::kAccepted);
  EXPECT_EQ(buffer_->memory_bytes(), 0u);
}

TEST_F(IngestBufferTest, what_waits_for_room_behind_a_batch_over_the_chain_s_limit_fails_too) {
  make({.memory_bytes_max = 1'000, .chain_batches_max = 2});
  size_t room = submit({{kP1, -1, -1, 0, 1'000}}, 2);
  size_t request = submit({{kP0, -1, -1}, {kP0, -1, -1}, {kP0, -1, -1}}, 1);
  size_t behind = submit({{kP0, -1, -1}, {kP1, -1, -1}}, 1);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(room), AppendVerdict::kAccepted);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(request, 2), AppendVerdict::kTooManyWaiting);
  succeed(start_upload());
  accept_all();
  EXPECT_EQ(verdict(behind, 0), AppendVerdict::kPredecessorFailed);
  EXPECT_EQ(verdict(behind, 1), AppendVerdict::kAccepted);
  EXPECT_TRUE(buffer_->is_empty());
}

TEST_F(IngestBufferTest, large_batches_are_referenced_only_where_they_fill_their_frame) {
  make();
  submit({{kP0, -1, -1, 0, 10'000}, {kP0, -1, -1, 0, 100}}, 1);
  AppendRequest sparse{
      .connection = 2, .frame_bytes = 1'000'000, .batches = {append_batch({kP1, -1, -1, 0, 10'000})}};
  buffer_->submit(std::move(sparse), [](AppendResults) {}, now_);
  Upload upload = start_upload();
  EXPECT_FALSE(upload.runs.at(0)->batches.at(0).is_copied);
  EXPECT_TRUE(upload.runs.at(0)->batches.at(1).is_copied);
  EXPECT_TRUE(upload.runs.at(1)->batches.at(0).is_copied);
}

TEST_F(IngestBufferTest, draining_takes_nothing_new_and_seals_at_once) {
  make();
  size_t last = submit({{kP0, -1, -1}});
  buffer_->drain();
  EXPECT_EQ(verdict(submit({{kP0, -1, -1}})), AppendVerdict::kStopping);
  buffer_->advance(now_);
  succeed(*take_upload());
  accept_all();
  EXPECT_EQ(verdict(last), AppendVerdict::kAccepted);
  EXPECT_TRUE(buffer_->is_empty());
}

TEST_F(IngestBufferTest, stopping_answers_everything_and_claims_nothing) {
  make({.memory_bytes_max = 1'500});
  std::vector<size_t> stopping;
  next_sequences_[{kP1, ProducerId(7)}] = Sequence(0);
  size_t proposed = submit({{kP0, -1, -1}}, 1);
  succeed(start_upload());
  proposals();
  stopping.push_back(submit({{kP0, -1, -1}}, 1));
  start_upload();
  stopping.push_back(submit({{kP1, 7, 3}}));
  stopping.push_back(submit({{kP0, -1, -1}}, 1));
  stopping.push_back(submit({{kP0, -1, -1, 0, 3'000}}, 9));
  buffer_->stop();
  EXPECT_EQ(verdict(proposed), AppendVerdict::kUnknownFate);
  for (size_t index : stopping) EXPECT_EQ(verdict(index), AppendVerdict::kStopping);
  EXPECT_TRUE(buffer_->is_empty());
  EXPECT_EQ(verdict(submit({{kP0, -1, -1}})), AppendVerdict::kStopping);
}

}  // namespace
}  // namespace varve::storage
