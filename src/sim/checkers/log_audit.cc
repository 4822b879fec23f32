#include "sim/checkers/log_audit.h"

#include "metadata/state/entry.h"

namespace varve::sim {

using metadata::BatchVerdict;
using metadata::CommandVerdict;
using metadata::EntryVerdict;

namespace {

// The run's fate is sealed by this verdict: it may not be decided again (invariant 9).
bool is_final(BatchVerdict verdict) {
  return verdict != BatchVerdict::kObjectFenced && verdict != BatchVerdict::kAlreadyCommitted &&
         verdict != BatchVerdict::kBadRun;
}

}  // namespace

LogAudit::LogAudit(const SimMetadataLog& log, PlantedBugs bugs, Findings& findings)
    : log_(log), findings_(findings), state_(bugs) {}

void LogAudit::catch_up() {
  const auto& records = log_.records();
  for (; records_seen_ < records.size(); ++records_seen_) {
    const SimMetadataLog::Record& record = records[records_seen_];
    metadata::ApplyOutcome outcome = state_.apply(record.position, record.bytes.view());
    judge_snapshot(record.position, outcome);
    if (outcome.verdict != EntryVerdict::kApplied) continue;
    auto entry = metadata::decode_entry(record.bytes.view());
    if (!entry) {
      findings_.add(fmt::format("the malformed entry at {} was applied", record.position));
      continue;
    }
    judge(*entry, record.position, outcome);
    if (group_watch_ != nullptr) tell_of_groups(*entry, record.committed_at, outcome);
  }
}

void LogAudit::judge(const metadata::Entry& entry, LogPosition at, const metadata::ApplyOutcome& outcome) {
  bool is_excused = excused_.contains(entry.nonce);
  if (entry.incarnation.value() == 0) {
    judge_registration(entry, at);
  } else {
    judge_sender(entry, at);
  }
  for (size_t i = 0; i < entry.commands.size(); ++i) {
    const metadata::CommandOutcome& done = outcome.commands.at(i);
    if (const auto* commit = std::get_if<metadata::CommitObject>(&entry.commands[i])) {
      judge_commit(*commit, done, at, is_excused);
    }
    if (done.verdict != CommandVerdict::kDone) continue;
    auto sender = writers_.find(entry.incarnation);
    if (sender != writers_.end()) {
      judge_group(entry.commands[i], done, sender->second.broker, at);
    }
    if (const auto* fence = std::get_if<metadata::FenceBroker>(&entry.commands[i])) {
      auto writer = writers_.find(fence->incarnation);
      if (writer != writers_.end()) writer->second.is_live = false;
    }
    if (const auto* advance = std::get_if<metadata::AdvanceGcFence>(&entry.commands[i])) {
      findings_.require(advance->epoch > fence_, "the GC fence fell from {} to {} at {}", fence_,
                        advance->epoch, at);
      fence_ = advance->epoch;
    }
  }
  forget_lost_groups();
}

// Registering fences all earlier incarnations of the same broker id (invariant 4).
void LogAudit::judge_registration(const metadata::Entry& entry, LogPosition at) {
  if (entry.commands.size() != 1) return;
  const auto* registration = std::get_if<metadata::RegisterBroker>(&entry.commands.front());
  if (registration == nullptr) return;
  for (auto& [incarnation, writer] : writers_) {
    if (writer.broker == registration->broker) writer.is_live = false;
  }
  writers_[Incarnation(at.value())] = Writer{.broker = registration->broker, .nonce = entry.nonce};
}

void LogAudit::judge_sender(const metadata::Entry& entry, LogPosition at) {
  auto found = writers_.find(entry.incarnation);
  if (found == writers_.end()) {
    findings_.add(fmt::format("the entry at {} of incarnation {}, which never registered, was applied", at,
                              entry.incarnation));
    return;
  }
  Writer& writer = found->second;
  findings_.require(writer.is_live, "the entry at {} of broker {}, fenced before, was applied", at,
                    writer.broker);
  findings_.require(entry.sequence == writer.last_sequence.plus(1),
                    "the entry at {} of broker {} has sequence {} after {} and was applied", at,
                    writer.broker, entry.sequence, writer.last_sequence);
  writer.last_sequence = entry.sequence;
}

// A snapshot is of the log's own state, where all were asked for their hash (docs/decisions/005).
void LogAudit::judge_snapshot(LogPosition at, const metadata::ApplyOutcome& outcome) {
  if (!outcome.beats.empty()) hashes_[at] = state_.hash();
  if (!outcome.has_snapshot) return;
  const metadata::RetainedSnapshot& taken = state_.snapshots().back();
  auto asked = hashes_.find(taken.position);
  bool is_true = asked != hashes_.end() && asked->second == taken.state_hash;
  findings_.require(is_true, "the snapshot of {}, recorded at {}, is not of the state there", taken.position,
                    at);
}

void LogAudit::judge_commit(const metadata::CommitObject& commit, const metadata::CommandOutcome& outcome,
                            LogPosition at, bool is_excused) {
  for (size_t i = 0; i < std::min(commit.runs.size(), outcome.runs.size()); ++i) {
    judge_run(commit, commit.runs[i], outcome.runs[i], at, is_excused);
  }
}

void LogAudit::judge_run(const metadata::CommitObject& commit, const metadata::Run& run,
                         const metadata::RunOutcome& outcome, LogPosition at, bool is_excused) {
  auto name = [&] {
    return fmt::format("run {} of object {}/{} at {}", run.index, commit.object.incarnation,
                       commit.object.number, at);
  };
  bool is_decided = false;
  for (size_t i = 0; i < outcome.batches.size(); ++i) {
    const metadata::BatchOutcome& batch = outcome.batches[i];
    is_decided = is_decided || is_final(batch.verdict);
    // A proposer knows what has landed, and never proposes it again (invariant 3).
    findings_.require(is_excused || batch.verdict != BatchVerdict::kAlreadyCommitted,
                      "{} was proposed though it had been decided before", name());
    if (batch.verdict != BatchVerdict::kAccepted) continue;
    findings_.require(commit.epoch >= fence_, "{} was accepted in an object of epoch {}, below the fence {}",
                      name(), commit.epoch, fence_);
    referenced_.insert(commit.object);
    uint32_t records = run.producers.empty() ? run.records : run.producers[i].records;
    judge_accepted(run.partition, batch, records, at);
    if (run.producers.empty() || run.producers[i].producer_id == kNoProducerId) continue;
    const metadata::ProducerBatch& from = run.producers[i];
    bool is_new = accepted_.emplace(run.partition, from.producer_id, from.epoch, from.first_sequence).second;
    findings_.require(is_new, "{}: sequence {} of producer {}/{} was accepted twice", name(),
                      from.first_sequence, from.producer_id, from.epoch);
  }
  if (!is_decided) return;
  bool is_first = decided_runs_.emplace(commit.object, run.index).second;
  findings_.require(is_first || is_excused, "{} was decided a second time", name());
}

void LogAudit::judge_accepted(PartitionHandle partition, const metadata::BatchOutcome& outcome,
                              uint32_t records, LogPosition at) {
  Offset& end = ends_[partition];
  findings_.require(outcome.base_offset == end,
                    "the entry at {} put a batch of partition {} at {}, not at {}", at, partition,
                    outcome.base_offset, end);
  end = outcome.base_offset.plus(records);
}

}  // namespace varve::sim
