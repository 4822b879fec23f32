// The second half of IngestBuffer: from the upload to the verdict.
#include <algorithm>
#include <tuple>

#include "storage/ingest/ingest_buffer.h"

namespace varve::storage {
namespace {

using metadata::BatchOutcome;
using metadata::BatchVerdict;

size_t commit_bytes(const metadata::Run& run) {
  return kRunCommitBytes + kProducerCommitBytes * run.producers.size();
}

AppendResult result_of(const BatchOutcome& outcome) {
  AppendResult result{
      .base_offset = outcome.base_offset, .log_start = outcome.log_start, .append_time = outcome.append_time};
  switch (outcome.verdict) {
    case BatchVerdict::kAccepted:
      result.verdict = AppendVerdict::kAccepted;
      break;
    case BatchVerdict::kDuplicate:
      result.verdict = AppendVerdict::kDuplicate;
      break;
    case BatchVerdict::kUnknownPartition:
      result.verdict = AppendVerdict::kUnknownPartition;
      break;
    case BatchVerdict::kOutOfOrder:
      result.verdict = AppendVerdict::kOutOfOrder;
      break;
    case BatchVerdict::kStaleEpoch:
      result.verdict = AppendVerdict::kStaleEpoch;
      break;
    case BatchVerdict::kInvalidTxnState:
      result.verdict = AppendVerdict::kInvalidTxnState;
      break;
    case BatchVerdict::kObjectFenced:
      result.verdict = AppendVerdict::kNotStored;
      break;
    // An earlier proposal of ours took effect after all; its offsets are not in this answer.
    case BatchVerdict::kAlreadyCommitted:
      result.verdict = AppendVerdict::kUnknownFate;
      break;
    case BatchVerdict::kBadRun:
      result.verdict = AppendVerdict::kRefused;
      break;
  }
  return result;
}

AppendVerdict verdict_of(metadata::ProposeErrc error) {
  switch (error) {
    case metadata::ProposeErrc::kUnknown:
      return AppendVerdict::kUnknownFate;
    case metadata::ProposeErrc::kRejected:
      return AppendVerdict::kNotStored;
    case metadata::ProposeErrc::kFull:
      return AppendVerdict::kLogFull;
    case metadata::ProposeErrc::kStopping:
      return AppendVerdict::kStopping;
  }
  return AppendVerdict::kUnknownFate;
}

}  // namespace

std::optional<Upload> IngestBuffer::take_upload(Incarnation incarnation, FenceEpoch epoch,
                                                MonotonicTime now) {
  while (!is_stopped_ && uploads() < config_.seal.uploads_max) {
    auto due = std::find_if(upload_queue_.begin(), upload_queue_.end(),
                            [&](uint64_t serial) { return objects_.at(serial)->not_before <= now; });
    if (due == upload_queue_.end()) return std::nullopt;
    SealedObject& object = *objects_.at(*due);
    upload_queue_.erase(due);
    // Runs that failed while they waited for the slot need no upload.
    std::erase_if(object.runs, [](const auto& run) { return run->step == PendingRun::Step::kSettled; });
    if (object.runs.empty()) {
      objects_.erase(object.serial);
      continue;
    }
    object.step = SealedObject::Step::kUploading;
    object.started = now;
    upload_starts_.insert(now);
    metrics_.uploads.set(static_cast<double>(uploads()));
    for (auto& run : object.runs) metrics_.buffer.observe(now - run->batches.front().arrived);
    return name_upload(object, incarnation, epoch);
  }
  return std::nullopt;
}

void IngestBuffer::upload_ended(const SealedObject& object) {
  upload_starts_.erase(upload_starts_.find(object.started));
  metrics_.uploads.set(static_cast<double>(uploads()));
  release(object.release_after_upload);
}

Upload IngestBuffer::name_upload(SealedObject& object, Incarnation incarnation, FenceEpoch epoch) {
  if (incarnation != incarnation_) {
    incarnation_ = incarnation;
    next_object_number_ = 1;
  }
  object.id = {incarnation, ObjectNumber(next_object_number_++)};
  object.epoch = epoch;
  Upload upload{.serial = object.serial, .object = object.id, .epoch = epoch, .runs = {}};
  upload.runs.reserve(object.runs.size());
  for (auto& run : object.runs) upload.runs.push_back(run->data);
  return upload;
}

std::optional<Upload> IngestBuffer::renew_upload(uint64_t serial, Incarnation incarnation, FenceEpoch epoch,
                                                 MonotonicTime now) {
  if (is_stopped_) return std::nullopt;
  SealedObject& object = *objects_.at(serial);
  CHECK(object.step == SealedObject::Step::kUploading);
  metrics_.renewed_uploads.add();
  std::erase_if(object.runs, [](const auto& run) { return run->step == PendingRun::Step::kSettled; });
  if (!object.runs.empty()) return name_upload(object, incarnation, epoch);
  upload_ended(object);
  objects_.erase(serial);
  advance(now);
  return std::nullopt;
}

void IngestBuffer::upload_succeeded(uint64_t serial, BuiltObject built, MonotonicTime now) {
  if (is_stopped_) return;
  SealedObject& object = *objects_.at(serial);
  CHECK(object.step == SealedObject::Step::kUploading && built.runs.size() == object.runs.size());
  object.step = SealedObject::Step::kUploaded;
  object.bytes = built.bytes;
  object.crc = built.crc;
  object.run_count = static_cast<uint32_t>(built.runs.size());
  upload_ended(object);
  // A stall counts for little more than the usual, or the next would not be noticed.
  Duration took = now - object.started;
  usual_put_ += (std::min(took, 2 * usual_put_ + 1ms) - usual_put_) / 8;
  metrics_.put.observe(took);
  metrics_.objects.add();
  metrics_.object_bytes.add(built.bytes);
  for (size_t i = 0; i < object.runs.size(); ++i) {
    PendingRun& run = *object.runs[i];
    if (run.step == PendingRun::Step::kSettled) continue;
    run.commit = std::move(built.runs[i]);
    run.step = PendingRun::Step::kUploaded;
    run.uploaded = now;
    if (run.waits_for == nullptr) mark_ready(run, now);
  }
  erase_settled_objects();
  advance(now);
}

void IngestBuffer::upload_failed(uint64_t serial, AppendVerdict verdict, MonotonicTime now) {
  if (is_stopped_) return;
  SealedObject& object = *objects_.at(serial);
  CHECK(object.step == SealedObject::Step::kUploading);
  object.step = SealedObject::Step::kUploaded;  // ended, as far as memory goes
  upload_ended(object);
  metrics_.failed_uploads.add();
  std::vector<PendingRun*> again;
  std::vector<PendingRun*> failed;
  for (auto& run : object.runs) {
    if (run->step == PendingRun::Step::kSettled) continue;
    (run->is_early ? again : failed).push_back(run.get());
  }
  if (bugs_.failed_put_acknowledged) {
    for (PendingRun* run : failed) {
      Offset guess = state_.high_watermark(run->data->partition);
      settle(*run, std::vector(run->batches.size(), AppendResult{AppendVerdict::kAccepted, guess}), now);
    }
  } else {
    fail(std::move(failed), verdict, now);
  }
  upload_again(again, now + config_.retry_after);
  erase_settled_objects();
  advance(now);
}

void IngestBuffer::mark_ready(PendingRun& run, MonotonicTime now) {
  run.step = PendingRun::Step::kReady;
  ready_.push_back(&run);
  metrics_.chain.observe(now - run.uploaded);
}

metadata::CommitObject IngestBuffer::commit_of(const SealedObject& object) const {
  metadata::CommitObject commit;
  commit.object = object.id;
  commit.epoch = object.epoch;
  commit.bytes = object.bytes;
  commit.crc = object.crc;
  commit.run_count = object.run_count;
  return commit;
}

std::vector<CommitProposal> IngestBuffer::take_proposals(MonotonicTime now) {
  std::vector<CommitProposal> proposals;
  if (is_stopped_) return proposals;
  while (!ready_later_.empty() && ready_later_.begin()->first <= now) {
    mark_ready(*ready_later_.begin()->second, now);
    ready_later_.erase(ready_later_.begin());
  }
  std::vector<PendingRun*> ready = std::exchange(ready_, {});
  std::sort(ready.begin(), ready.end(), [](const PendingRun* a, const PendingRun* b) {
    return std::tie(a->object->serial, a->commit.index) < std::tie(b->object->serial, b->commit.index);
  });
  size_t bytes = 0;
  OpenProposal* open = nullptr;
  const SealedObject* object = nullptr;
  for (PendingRun* run : ready) {
    if (open == nullptr || bytes + commit_bytes(run->commit) > config_.commit_bytes_max) {
      proposals.push_back({.serial = next_serial_++, .commands = {}});
      open = &proposals_[proposals.back().serial];
      open->proposed = now;
      object = nullptr;
      bytes = 0;
    }
    if (run->object != object) {
      object = run->object;
      proposals.back().commands.emplace_back(commit_of(*object));
      open->runs.emplace_back();
    }
    run->step = PendingRun::Step::kProposed;
    bytes += commit_bytes(run->commit);
    std::get<metadata::CommitObject>(proposals.back().commands.back()).runs.push_back(run->commit);
    open->runs.back().push_back(run);
    if (bugs_.ack_before_own_apply) {
      for (PendingBatch& batch : run->batches) {
        if (!batch.request) continue;
        Offset guess = state_.high_watermark(run->data->partition);
        batch.request->set_result(batch.slot, {AppendVerdict::kAccepted, guess});
        batch.request.reset();
      }
    }
  }
  if (bugs_.run_commits_twice) {
    for (CommitProposal& proposal : proposals) {
      std::vector<metadata::Command> copy = proposal.commands;
      proposal.commands.insert(proposal.commands.end(), copy.begin(), copy.end());
    }
  }
  return proposals;
}

void IngestBuffer::proposal_ended(uint64_t serial, const metadata::ProposeResult& result, MonotonicTime now) {
  if (is_stopped_) return;
  OpenProposal proposal = std::move(proposals_.at(serial));
  proposals_.erase(serial);
  std::vector<PendingRun*> again;
  std::vector<PendingRun*> failed;
  for (size_t i = 0; i < proposal.runs.size(); ++i) {
    for (PendingRun* run : proposal.runs[i]) {
      metrics_.commit.observe(now - proposal.proposed);
      if (!result) {
        if (!run->is_early) failed.push_back(run);
        if (run->is_early) early_proposal_failed(*run, result.error().code, now);
        continue;
      }
      static const std::vector<metadata::RunOutcome> kNone;
      const auto& outcomes = i < result->size() ? (*result)[i].runs : kNone;
      auto outcome = std::find_if(outcomes.begin(), outcomes.end(), [run](const auto& candidate) {
        return candidate.index == run->commit.index;
      });
      bool is_fenced = outcome != outcomes.end() && !outcome->batches.empty() &&
                       outcome->batches.front().verdict == BatchVerdict::kObjectFenced;
      if (is_fenced && (run->is_early || !run->was_fenced)) {
        run->was_fenced = true;
        again.push_back(run);
      } else if (is_fenced) {
        failed.push_back(run);
      } else {
        settle_from(*run, outcome == outcomes.end() ? nullptr : &*outcome, now);
      }
    }
  }
  fail(std::move(failed), result ? AppendVerdict::kNotStored : verdict_of(result.error().code), now);
  if (!again.empty()) metrics_.fenced_objects.add();
  upload_again(again, now);
  erase_settled_objects();
  advance(now);
}

// What may have landed counts as done; what has not is proposed again.
void IngestBuffer::early_proposal_failed(PendingRun& run, metadata::ProposeErrc error, MonotonicTime now) {
  if (error == metadata::ProposeErrc::kUnknown) {
    return settle(run, std::vector(run.batches.size(), AppendResult{.verdict = AppendVerdict::kBuffered}),
                  now);
  }
  run.step = PendingRun::Step::kUploaded;
  ready_later_.emplace(now + config_.retry_after, &run);
}

void IngestBuffer::settle_from(PendingRun& run, const metadata::RunOutcome* outcome, MonotonicTime now) {
  size_t expected = run.commit.producers.empty() ? 1 : run.batches.size();
  std::vector<AppendResult> results(run.batches.size(), AppendResult{.verdict = AppendVerdict::kRefused});
  if (outcome == nullptr || outcome->batches.size() != expected) {
    complaints_.push_back(fmt::format("the commit of run {} has no matching outcome", run.commit.index));
    return settle(run, results, now);
  }
  // Without producers one verdict stands for the run, and its batches follow one another.
  int64_t records_before = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = result_of(outcome->batches[expected == 1 ? 0 : i]);
    if (results[i].verdict == AppendVerdict::kRefused) {
      complaints_.push_back(fmt::format("apply calls run {} bad", run.commit.index));
    }
    if (run.commit.producers.empty() && results[i].base_offset.value() >= 0) {
      results[i].base_offset = results[i].base_offset.plus(records_before);
      records_before += run.batches[i].records;
    }
    if (bugs_.ack_after_reject) results[i].verdict = AppendVerdict::kAccepted;
  }
  settle(run, results, now);
}

void IngestBuffer::settle(PendingRun& run, const std::vector<AppendResult>& results, MonotonicTime now) {
  CHECK(run.step != PendingRun::Step::kSettled && results.size() == run.batches.size());
  run.step = PendingRun::Step::kSettled;
  for (size_t i = 0; i < results.size(); ++i) {
    PendingBatch& batch = run.batches[i];
    // If it failed before its turn, what it waited for is the chain's last open run again.
    if (batch.chain->last_run == &run) batch.chain->last_run = run.waits_for;
    if (batch.is_early && !is_success(results[i].verdict)) metrics_.early_batches_dropped.add();
    answer(batch, results[i]);
  }
  run.batches.clear();
  run.data.reset();
  SealedObject& object = *run.object;
  --object.unsettled;
  if (object.step == SealedObject::Step::kUploading) {
    object.release_after_upload += run.charge;
  } else {
    release(run.charge);
  }
  for (PendingRun* next : std::exchange(run.waited_for_by, {})) {
    next->waits_for = nullptr;
    if (next->step == PendingRun::Step::kUploaded) mark_ready(*next, now);
  }
  if (run.waits_for != nullptr) std::erase(run.waits_for->waited_for_by, &run);
  run.waits_for = nullptr;
}

void IngestBuffer::fail(std::vector<PendingRun*> runs, AppendVerdict verdict, MonotonicTime now) {
  // Runs that wait for one of these wait for it with every chain, so they fail whole; they come later in the list.
  size_t causes = runs.size();
  std::vector<Chain*> chains;
  for (size_t i = 0; i < runs.size(); ++i) {
    PendingRun& run = *runs[i];
    if (run.step == PendingRun::Step::kSettled) continue;  // is in the list twice: waits for another cause
    for (PendingRun* next : std::exchange(run.waited_for_by, {})) {
      next->waits_for = run.waits_for;
      runs.push_back(next);
    }
    for (PendingBatch& batch : run.batches) {
      if (batch.chain->is_failing) continue;
      batch.chain->is_failing = true;
      ++batch.chain->open;  // keeps it until the failure has been spread
      chains.push_back(batch.chain);
    }
    AppendResult result{.verdict = i < causes ? verdict : AppendVerdict::kPredecessorFailed};
    settle(run, std::vector(run.batches.size(), result), now);
  }
  if (!chains.empty()) spread_failure(chains, now);
}

void IngestBuffer::spread_failure(const std::vector<Chain*>& chains, MonotonicTime now) {
  std::vector<IncomingBatch> buffered = std::exchange(buffer_, {});
  input_ = {};
  std::vector<IncomingBatch> failed;
  for (IncomingBatch& batch : buffered) {
    if (batch.pending.chain->is_failing) {
      failed.push_back(std::move(batch));
    } else {
      buffer(std::move(batch), now);
    }
  }
  for (Chain* chain : chains) {
    for (IncomingBatch& batch : chains_.take_held(*chain)) failed.push_back(std::move(batch));
    chain->expected.reset();
  }
  for (IncomingBatch& batch : failed) drop(batch, AppendVerdict::kPredecessorFailed);
  fail_waiting_requests();
  for (Chain* chain : chains) {
    chain->is_failing = false;
    chains_.close_one(*chain);
  }
}

void IngestBuffer::fail_waiting_requests() {
  for (WaitingRequest& request : waiting_requests_) {
    for (size_t i = 0; i < request.batches.size();) {
      Chain* chain = chains_.find(request.chains[i]);
      if (chain == nullptr || !chain->is_failing) {
        ++i;
        continue;
      }
      IncomingBatch batch = std::move(request.batches[i]);
      request.batches.erase(request.batches.begin() + static_cast<ptrdiff_t>(i));
      request.chains.erase(request.chains.begin() + static_cast<ptrdiff_t>(i));
      request.charge -= batch.pending.charge;
      metrics_.failed_batches.add();
      batch.pending.request->set_result(batch.pending.slot, {.verdict = AppendVerdict::kPredecessorFailed});
    }
  }
  std::erase_if(waiting_requests_, [](const WaitingRequest& request) { return request.batches.empty(); });
}

void IngestBuffer::upload_again(std::vector<PendingRun*> runs, MonotonicTime not_before) {
  std::erase_if(runs, [](const PendingRun* run) { return run->step == PendingRun::Step::kSettled; });
  if (runs.empty()) return;
  std::vector<std::unique_ptr<PendingRun>> moved;
  for (PendingRun* run : runs) {
    SealedObject& from = *run->object;
    auto at =
        std::find_if(from.runs.begin(), from.runs.end(), [run](const auto& own) { return own.get() == run; });
    run->step = PendingRun::Step::kSealed;
    moved.push_back(std::move(*at));
    --from.unsettled;
  }
  for (PendingRun* run : runs) std::erase(run->object->runs, nullptr);
  std::sort(moved.begin(), moved.end(), [](const auto& a, const auto& b) {
    return std::tie(a->data->partition, a->serial) < std::tie(b->data->partition, b->serial);
  });
  queue_object(std::move(moved), not_before);
}

void IngestBuffer::erase_settled_objects() {
  std::erase_if(objects_, [](const auto& entry) {
    return entry.second->unsettled == 0 && entry.second->step == SealedObject::Step::kUploaded;
  });
}

void IngestBuffer::answer(PendingBatch& batch, const AppendResult& result) {
  if (batch.request) {
    if (!is_success(result.verdict)) metrics_.failed_batches.add();
    batch.request->set_result(batch.slot, result);
    batch.request.reset();
  }
  chains_.close_one(*batch.chain);
}

void IngestBuffer::drop(IncomingBatch& batch, AppendVerdict verdict) {
  release(batch.pending.charge);
  answer(batch.pending, {.verdict = verdict});
}

}  // namespace varve::storage
