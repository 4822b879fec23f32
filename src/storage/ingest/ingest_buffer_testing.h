// What tests of IngestBuffer share: the buffer with a clock, and a test that plays store, log and cluster state.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "storage/format/test_batch.h"
#include "storage/ingest/ingest_buffer.h"

namespace varve::storage {

inline constexpr PartitionHandle kP0{0};
inline constexpr PartitionHandle kP1{1};

struct BatchSpec {
  PartitionHandle partition = kP0;
  int64_t producer = -1;
  int32_t sequence = -1;
  int16_t epoch = 0;
  size_t bytes = 0;  // of the value
  bool is_log_append_time = false;
};

inline AppendBatch append_batch(const BatchSpec& spec) {
  TestBatch content{.value_bytes = spec.bytes};
  AppendBatch batch;
  batch.partition = spec.partition;
  batch.is_log_append_time = spec.is_log_append_time;
  if (spec.producer >= 0) {
    batch.producer_id = content.producer_id = ProducerId(spec.producer);
    batch.producer_epoch = content.producer_epoch = ProducerEpoch(spec.epoch);
    batch.first_sequence = content.first_sequence = Sequence(spec.sequence);
  }
  batch.bytes = make_batch(content);
  batch.records = 1;
  batch.max_timestamp = 1'000;
  return batch;
}

// The buffer with a clock, answers as they come, and cluster state's answers as the test sets them.
class IngestBufferTest : public testing::Test {
 protected:
  void make(IngestBufferConfig config = {}, PlantedBugs bugs = {}) {
    config_ = config;
    buffer_ = std::make_unique<IngestBuffer>(
        config,
        StateQueries{[this](PartitionHandle partition, ProducerId producer,
                            ProducerEpoch epoch) -> std::optional<Sequence> {
                       auto found = next_sequences_.find({partition, producer});
                       if (found == next_sequences_.end()) return std::nullopt;
                       if (epoch > newest_epoch_) return Sequence(0);
                       return found->second;
                     },
                     [](PartitionHandle) { return Offset(1'000'000); }},
        metrics_, bugs);
  }

  // The index of the request's answer in answers_.
  size_t submit(std::vector<BatchSpec> specs, uint64_t connection = 1) {
    AppendRequest request{.connection = connection, .frame_bytes = 0, .batches = {}};
    for (const BatchSpec& spec : specs) {
      request.batches.push_back(append_batch(spec));
      request.frame_bytes += request.batches.back().bytes.size();
    }
    size_t index = answers_.size();
    answers_.emplace_back();
    buffer_->submit(
        std::move(request), [this, index](AppendResults results) { answers_[index] = std::move(results); },
        now_);
    return index;
  }
  bool is_answered(size_t index) const { return answers_[index].has_value(); }
  AppendVerdict verdict(size_t index, size_t batch = 0) const {
    EXPECT_TRUE(answers_[index].has_value());
    return answers_[index] ? answers_[index]->at(batch).verdict : AppendVerdict::kRefused;
  }

  void pass(Duration span) {
    MonotonicTime until = now_ + span;
    while (buffer_->next_due(now_) <= until) {
      now_ = std::max(now_, buffer_->next_due(now_));
      buffer_->advance(now_);
      if (buffer_->next_due(now_) <= now_) break;  // something for the test to do: an upload
    }
    now_ = until;
    buffer_->advance(now_);
  }

  std::optional<Upload> take_upload(uint64_t epoch = 1) {
    return buffer_->take_upload(Incarnation(5), FenceEpoch(epoch), now_);
  }
  // Seals what waits and starts its upload.
  Upload start_upload(uint64_t epoch = 1) {
    pass(config_.seal.interval);
    std::optional<Upload> upload = take_upload(epoch);
    EXPECT_TRUE(upload.has_value());
    return upload.value_or(Upload{});
  }
  void succeed(const Upload& upload) {
    WalHeader header;
    header.object = upload.object;
    header.epoch = upload.epoch;
    buffer_->upload_succeeded(upload.serial, build_wal_object(header, LogPosition(1), upload.runs), now_);
  }
  std::vector<CommitProposal> proposals() { return buffer_->take_proposals(now_); }

  // What apply would say if it accepted everything, from the offset on.
  metadata::ProposeResult accept(const CommitProposal& proposal, int64_t base_offset = 0) {
    return judge(proposal, metadata::BatchVerdict::kAccepted, base_offset);
  }
  metadata::ProposeResult judge(const CommitProposal& proposal, metadata::BatchVerdict verdict,
                                int64_t base_offset = -1) {
    std::vector<metadata::CommandOutcome> outcomes;
    for (const metadata::Command& command : proposal.commands) {
      metadata::CommandOutcome outcome;
      for (const metadata::Run& run : std::get<metadata::CommitObject>(command).runs) {
        metadata::RunOutcome run_outcome{.index = run.index, .batches = {}};
        for (size_t i = 0; i < std::max<size_t>(1, run.producers.size()); ++i) {
          run_outcome.batches.push_back({verdict, Offset(base_offset), Offset(0), -1});
        }
        outcome.runs.push_back(run_outcome);
      }
      outcomes.push_back(outcome);
    }
    return outcomes;
  }
  static const metadata::CommitObject& commit_in(const CommitProposal& proposal, size_t command = 0) {
    return std::get<metadata::CommitObject>(proposal.commands.at(command));
  }
  void accept_all() {
    for (auto& proposal : proposals()) buffer_->proposal_ended(proposal.serial, accept(proposal), now_);
  }

  MonotonicTime now_{std::chrono::hours(1)};
  IngestBufferConfig config_;
  MetricRegistry registry_;
  IngestMetrics metrics_{registry_};
  std::map<std::pair<PartitionHandle, ProducerId>, Sequence> next_sequences_;
  ProducerEpoch newest_epoch_{1};  // that cluster state knows
  std::unique_ptr<IngestBuffer> buffer_;
  std::vector<std::optional<AppendResults>> answers_;
};

}  // namespace varve::storage
