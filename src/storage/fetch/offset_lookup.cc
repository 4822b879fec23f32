#include "storage/fetch/offset_lookup.h"

#include <algorithm>

#include "protocol/records/record_iterator.h"

namespace varve::storage {

namespace records = protocol::records;

namespace {

constexpr size_t kRunsPerPlan = 8;

FetchErrc error_of(RunReadEnd end) {
  switch (end) {
    case RunReadEnd::kDone:
    case RunReadEnd::kStopped:
      return FetchErrc::kNone;
    case RunReadEnd::kCorrupt:
      return FetchErrc::kCorrupt;
    case RunReadEnd::kMissing:
    case RunReadEnd::kStorage:
      return FetchErrc::kStorage;
  }
  return FetchErrc::kStorage;
}

// Walks a run's batches above the log start and shows each to look_at(), until that says kFull.
class BatchVisitor : public RunVisitor {
 public:
  explicit BatchVisitor(Offset log_start) : log_start_(log_start) {}

  BatchAssembler::End visit(const metadata::StoredRun& run, const ObjectBytes& bytes) override {
    RunWalker walker(run);
    FoundBatch batch;
    while (true) {
      RunWalker::Step step = walker.next(bytes, batch);
      BatchAssembler::End end = BatchAssembler::End::kRunDone;
      if (step == RunWalker::Step::kBatch && batch.base_offset.plus(batch.records) > log_start_) {
        step = walker.check(bytes, batch);
        if (step == RunWalker::Step::kBatch) end = look_at(bytes, batch);
      }
      if (step == RunWalker::Step::kNeedMore) needed_to_ = walker.needed_to();
      if (step == RunWalker::Step::kCorrupt) problem_ = walker.problem();
      if (step == RunWalker::Step::kNeedMore) return BatchAssembler::End::kNeedMore;
      if (step == RunWalker::Step::kCorrupt) return BatchAssembler::End::kCorrupt;
      if (step == RunWalker::Step::kEnd || end != BatchAssembler::End::kRunDone) return end;
      walker.pass(batch);
    }
  }
  uint64_t needed_to() const override { return needed_to_; }
  std::string problem() const override { return problem_; }

 protected:
  virtual BatchAssembler::End look_at(const ObjectBytes& bytes, const FoundBatch& batch) = 0;

  const Offset log_start_;
  uint64_t needed_to_ = 0;
  std::string problem_;
};

class LatestTimeVisitor final : public BatchVisitor {
 public:
  using BatchVisitor::BatchVisitor;
  int64_t latest = -1;

 protected:
  BatchAssembler::End look_at(const ObjectBytes&, const FoundBatch& batch) override {
    latest = std::max(latest, batch.max_timestamp);
    return BatchAssembler::End::kRunDone;
  }
};

class RecordByTimeVisitor final : public BatchVisitor {
 public:
  RecordByTimeVisitor(Offset log_start, int64_t timestamp, const Limits& limits)
      : BatchVisitor(log_start), timestamp_(timestamp), limits_(limits) {}
  FoundOffset found;

 protected:
  BatchAssembler::End look_at(const ObjectBytes& bytes, const FoundBatch& batch) override {
    if (batch.max_timestamp < timestamp_) return BatchAssembler::End::kRunDone;
    ByteView whole = bytes.contiguous(batch.position, batch.position + batch.bytes, copy_);
    auto view = records::BatchView::first_of(whole);
    if (!view) return corrupt(view.error().message);
    records::RecordIterator iterator(*view, scratch_, limits_.decompressed_bytes_max(batch.bytes));
    int64_t move = batch.base_offset.value() - view->header().base_offset.value();
    while (true) {
      auto record = iterator.next();
      if (!record) return corrupt(record.error().message);
      if (!*record) return BatchAssembler::End::kRunDone;
      Offset offset = (*record)->offset.plus(move);
      if (offset < log_start_ || (*record)->timestamp.value() < timestamp_) continue;
      found.offset = offset;
      found.timestamp = (*record)->timestamp.value();
      return BatchAssembler::End::kFull;
    }
  }

 private:
  BatchAssembler::End corrupt(std::string problem) {
    problem_ = std::move(problem);
    return BatchAssembler::End::kCorrupt;
  }

  const int64_t timestamp_;
  const Limits& limits_;
  std::vector<uint8_t> copy_;
  records::DecodeScratch scratch_;
};

}  // namespace

runtime::Task<OffsetLookup::Plan> OffsetLookup::plan(PartitionHandle partition, int64_t timestamp,
                                                     Offset from) {
  co_return co_await runtime::call(runtime_.core(), [this, partition, timestamp, from] {
    const metadata::State& state = client_.state();
    Plan result;
    auto plan = timestamp == kMaxTimestamp ? state.plan_max_timestamp(partition)
                                           : state.plan_time_lookup(partition, timestamp, from, kRunsPerPlan);
    if (!plan) {
      result.error = FetchErrc::kUnknownPartition;
      return result;
    }
    result.view = plan->partition;
    for (const metadata::StoredRun& run : plan->runs) {
      if (!run.is_marker) result.runs.push_back({run, object_ref(state, client_.identity().id, run)});
    }
    return result;
  });
}

runtime::Task<FoundOffset> OffsetLookup::find(OffsetQuery query, bool is_read_committed) {
  auto view = co_await runtime::call(runtime_.core(),
                                     [this, query] { return client_.state().partition(query.partition); });
  FoundOffset found;
  if (!view) {
    found.error = FetchErrc::kUnknownPartition;
    co_return found;
  }
  Offset end = is_read_committed ? view->last_stable : view->high_watermark;
  switch (query.timestamp) {
    case kLatestTimestamp:
      found.offset = end;
      co_return found;
    case kEarliestTimestamp:
    case kEarliestLocalTimestamp:
      found.offset = view->log_start;
      co_return found;
    case kLatestTieredTimestamp:
      co_return found;
    case kMaxTimestamp:
      found = co_await latest_time(query.partition);
      break;
    default:
      found = co_await first_at_or_after(query.partition, query.timestamp, view->log_start);
      break;
  }
  // As Kafka: what an isolated reader cannot read yet is not found either.
  if (found.error == FetchErrc::kNone && found.offset >= end) found = FoundOffset{};
  co_return found;
}

runtime::Task<FoundOffset> OffsetLookup::first_at_or_after(PartitionHandle partition, int64_t timestamp,
                                                           Offset from) {
  while (true) {
    Plan candidates = co_await plan(partition, timestamp, from);
    if (candidates.error != FetchErrc::kNone) co_return FoundOffset{.error = candidates.error};
    if (candidates.runs.empty()) co_return FoundOffset{};
    for (PlannedRun& run : candidates.runs) {
      from = run.run.end_offset();
      FoundOffset found = co_await find_in(std::move(run), timestamp, candidates.view.log_start);
      if (found.error != FetchErrc::kNone || found.offset.value() >= 0) co_return found;
    }
  }
}

// A run's max_timestamp is an upper bound if apply refused some of its batches: then another run may have later
// records although its bound is lower.
runtime::Task<FoundOffset> OffsetLookup::latest_time(PartitionHandle partition) {
  Plan candidates = co_await plan(partition, kMaxTimestamp, Offset(0));
  if (candidates.error != FetchErrc::kNone) co_return FoundOffset{.error = candidates.error};
  Offset log_start = candidates.view.log_start;
  std::optional<PlannedRun> best_run;
  int64_t best = -1;
  Offset from = log_start;
  while (!candidates.runs.empty()) {
    int64_t bound = -1;
    for (PlannedRun& run : candidates.runs) {
      if (best_run) from = std::max(from, run.run.end_offset());
      bound = std::max(bound, run.run.max_timestamp);
      FoundOffset latest = co_await latest_in(run, log_start);
      if (latest.error != FetchErrc::kNone) co_return latest;
      bool is_earlier_equal =
          best_run && latest.timestamp == best && run.run.base_offset < best_run->run.base_offset;
      if (!best_run || latest.timestamp > best || is_earlier_equal) {
        best = latest.timestamp;
        best_run = std::move(run);
      }
    }
    if (best >= bound) break;
    candidates = co_await plan(partition, best + 1, from);
    if (candidates.error != FetchErrc::kNone) co_return FoundOffset{.error = candidates.error};
  }
  if (!best_run || best < 0) co_return FoundOffset{};
  co_return co_await find_in(std::move(*best_run), best, log_start);
}

runtime::Task<FoundOffset> OffsetLookup::find_in(PlannedRun run, int64_t timestamp, Offset log_start) {
  if (run.run.is_log_append_time) {
    // Every record of the run has the one time.
    if (run.run.append_time < timestamp) co_return FoundOffset{};
    co_return FoundOffset{FetchErrc::kNone, std::max(run.run.base_offset, log_start), run.run.append_time};
  }
  runtime::Executor& executor = *(co_await runtime::this_context()).executor;
  RecordByTimeVisitor visitor(log_start, timestamp, limits_);
  StartedRead read = reader_.start(executor, run, run.run.bytes, ReadClass::kCatchUp);
  RunReadEnd end = co_await reader_.finish(run, std::move(read), visitor, ReadClass::kCatchUp);
  visitor.found.error = error_of(end);
  visitor.found.is_missing = end == RunReadEnd::kMissing;
  co_return visitor.found;
}

runtime::Task<FoundOffset> OffsetLookup::latest_in(PlannedRun run, Offset log_start) {
  FoundOffset found;
  found.timestamp = run.run.append_time;
  if (run.run.is_log_append_time) co_return found;
  runtime::Executor& executor = *(co_await runtime::this_context()).executor;
  LatestTimeVisitor visitor(log_start);
  StartedRead read = reader_.start(executor, run, run.run.bytes, ReadClass::kCatchUp);
  RunReadEnd end = co_await reader_.finish(run, std::move(read), visitor, ReadClass::kCatchUp);
  found.error = error_of(end);
  found.is_missing = end == RunReadEnd::kMissing;
  found.timestamp = visitor.latest;
  co_return found;
}

}  // namespace varve::storage
