// CommitObject: runs of an uploaded object get their offsets (invariants 7 and 9).
#include <algorithm>

#include "metadata/state/apply.h"

namespace varve::metadata {
namespace {

int64_t saturating_add(int64_t value, int64_t non_negative) {
  return value > INT64_MAX - non_negative ? INT64_MAX : value + non_negative;
}

// What the checks of a commit share.
struct CommitContext {
  const CommitObject& command;
  // Of the whole object: kAccepted, or what every run of it gets.
  BatchVerdict object_verdict = BatchVerdict::kAccepted;
  int64_t append_time = 0;
};

bool is_well_formed(const ProducerBatch& batch) {
  if (batch.bytes == 0 || batch.records == 0 || batch.records > INT32_MAX) return false;
  if (batch.producer_id == kNoProducerId) return true;
  return batch.producer_id > kNoProducerId && batch.epoch >= ProducerEpoch(0) &&
         batch.first_sequence >= Sequence(0);
}

// Whether a run agrees with itself and its object.
bool is_well_formed(const Run& run, const CommitObject& command) {
  if (run.index >= command.run_count || run.bytes == 0 || run.records == 0) return false;
  if (run.position > command.bytes || run.bytes > command.bytes - run.position) return false;
  if (run.producers.empty()) return true;
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (const ProducerBatch& batch : run.producers) {
    if (!is_well_formed(batch)) return false;
    bytes += batch.bytes;
    records += batch.records;
  }
  return bytes == run.bytes && records == run.records;
}

BatchVerdict judge_object(const StateData& state, const CommitObject& command, BrokerId sender) {
  // First of all, and for ever: nothing may refer to an object that may be gone.
  if (command.epoch < state.fence_epoch && !state.bugs.delete_without_fence)
    return BatchVerdict::kObjectFenced;
  const BrokerIncarnation* uploader = state.brokers.find(command.object.incarnation);
  bool is_own = uploader != nullptr && uploader->broker == sender;
  // No upload can have begun in an epoch that the log has not reached.
  bool is_possible = command.epoch <= state.fence_epoch && command.object.number != ObjectNumber(0) &&
                     command.bytes < kObjectBytesMax && command.run_count <= kRunsPerObjectMax;
  const Object* known = state.objects.find(command.object);
  bool is_same = known == nullptr || known->says_the_same(command);
  return is_own && is_possible && is_same ? BatchVerdict::kAccepted : BatchVerdict::kBadRun;
}

// One run of a commit, when its object and itself are in order and its partition lives.
class RunCommitter {
 public:
  RunCommitter(StateData& state, const CommitContext& context, Object& object, Partition& partition,
               const Run& run)
      : state_(state), context_(context), object_(object), partition_(partition), run_(run) {}

  // One outcome a producer batch, or one in all.
  void commit(std::vector<BatchOutcome>& outcomes) {
    uint64_t position = run_.position;
    if (run_.producers.empty()) {
      outcomes.push_back(accept(position, run_.bytes, run_.records));
      return;
    }
    outcomes.reserve(run_.producers.size());
    for (const ProducerBatch& batch : run_.producers) {
      outcomes.push_back(commit_batch(batch, position));
      position += batch.bytes;
    }
  }

 private:
  BatchOutcome commit_batch(const ProducerBatch& batch, uint64_t position) {
    if (batch.producer_id == kNoProducerId) return accept(position, batch.bytes, batch.records);
    ProducerJudgement judgement = judge(batch);
    if (judgement.verdict == BatchVerdict::kDuplicate) return duplicate(judgement.original_offset);
    if (judgement.verdict != BatchVerdict::kAccepted) return refused(judgement.verdict);
    BatchOutcome outcome = accept(position, batch.bytes, batch.records);
    if (!partition_.producers) partition_.producers = std::make_unique<ProducerTable>();
    remember_batch((*partition_.producers)[batch.producer_id], batch, outcome.base_offset.value(),
                   state_.log_time, state_.limits.producer_batches_kept);
    return outcome;
  }

  ProducerJudgement judge(const ProducerBatch& batch) const {
    if (partition_.producers) {
      auto known = partition_.producers->find(batch.producer_id);
      if (known != partition_.producers->end()) return judge_batch(known->second, batch);
    }
    if (batch.first_sequence == Sequence(0)) return {};
    // What it wrote before may be forgotten, or lie in an earlier topic of this name.
    int64_t forgotten_below = std::max(state_.producer_ids_at_expiry, partition_.topic->producer_ids_before);
    if (batch.producer_id.value() < forgotten_below) return {};
    return {.verdict = BatchVerdict::kOutOfOrder};
  }

  BatchOutcome accept(uint64_t position, uint32_t bytes, uint32_t records) {
    CompactRun stretch;
    stretch.object = &object_;
    stretch.position = position;
    stretch.bytes = bytes;
    stretch.records = records;
    stretch.max_timestamp = run_.max_timestamp;
    if (run_.is_log_append_time) {
      stretch.flags = CompactRun::kLogAppendTime;
      stretch.max_timestamp = context_.append_time;
    }
    BatchOutcome outcome{.verdict = BatchVerdict::kAccepted,
                         .base_offset = Offset(partition_.high_watermark),
                         .log_start = Offset(partition_.log_start)};
    if (run_.is_log_append_time) outcome.append_time = context_.append_time;
    state_.partitions.append(run_.partition, partition_, stretch);
    return outcome;
  }

  // The append time of the original, as Kafka answers, if its run is still there.
  BatchOutcome duplicate(int64_t original_offset) const {
    BatchOutcome outcome = refused(BatchVerdict::kDuplicate);
    outcome.base_offset = Offset(original_offset);
    RunList::Place place = partition_.runs.first_ending_after(original_offset);
    std::span<const CompactRun> span = partition_.runs.span(place.span);
    if (place.at >= span.size()) return outcome;
    const CompactRun& original = span[place.at];
    bool is_stamped = (original.flags & CompactRun::kLogAppendTime) != 0;
    if (is_stamped && original.base_offset <= original_offset) outcome.append_time = original.max_timestamp;
    return outcome;
  }

  BatchOutcome refused(BatchVerdict verdict) const {
    state_.refusals.count(verdict);
    return {.verdict = verdict, .log_start = Offset(partition_.log_start)};
  }

  StateData& state_;
  const CommitContext& context_;
  Object& object_;
  Partition& partition_;
  const Run& run_;
};

void refuse_all(StateData& state, const Run& run, BatchVerdict verdict, std::vector<BatchOutcome>& outcomes) {
  outcomes.assign(std::max<size_t>(run.producers.size(), 1), BatchOutcome{.verdict = verdict});
  for (size_t i = 0; i < outcomes.size(); ++i) state.refusals.count(verdict);
}

// The outcomes of one run; true if its partition has new records.
bool commit_run(StateData& state, const CommitContext& context, const Run& run,
                std::vector<BatchOutcome>& outcomes) {
  auto refuse = [&](BatchVerdict verdict) {
    refuse_all(state, run, verdict, outcomes);
    return false;
  };
  if (context.object_verdict != BatchVerdict::kAccepted) return refuse(context.object_verdict);
  if (!is_well_formed(run, context.command)) return refuse(BatchVerdict::kBadRun);
  Partition* partition = state.partitions.find(run.partition);
  if (partition != nullptr && partition->high_watermark >= kHighWatermarkMax)
    return refuse(BatchVerdict::kBadRun);

  Object& object = state.objects.find_or_add(context.command, state.now());
  if (!object.is_resolved(run.index)) {
    state.objects.resolve(object, run.index);
  } else if (!state.bugs.run_commits_twice) {
    return refuse(BatchVerdict::kAlreadyCommitted);
  }
  // From here on the verdict is final: the run is decided.
  if (partition == nullptr) return refuse(BatchVerdict::kUnknownPartition);
  if (run.is_transactional) return refuse(BatchVerdict::kInvalidTxnState);
  int64_t high_watermark = partition->high_watermark;
  RunCommitter(state, context, object, *partition, run).commit(outcomes);
  return partition->high_watermark != high_watermark;
}

}  // namespace

CommandOutcome Applier::run(const CommitObject& command) {
  CommitContext context{.command = command};
  context.object_verdict = judge_object(state_, command, sender_->broker);
  // Never before log time, and never so late that one wrong clock makes records of the far future.
  context.append_time =
      std::max(state_.log_time, std::min(entry_time_, saturating_add(state_.log_time, kAppendTimeLeadMsMax)));
  CommandOutcome done;
  done.runs.reserve(command.runs.size());
  for (const Run& run : command.runs) {
    RunOutcome& outcome = done.runs.emplace_back();
    outcome.index = run.index;
    if (commit_run(state_, context, run, outcome.batches))
      outcome_.changed_partitions.push_back(run.partition);
  }
  return done;
}

}  // namespace varve::metadata
