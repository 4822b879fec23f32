#include "storage/fetch/fetch_planner.h"

#include <algorithm>

namespace varve::storage {
namespace {

using metadata::FetchPlan;
using metadata::State;
using metadata::StoredRun;

void set_view(PlannedPartition& planned, FetchPlan& plan, bool is_read_committed) {
  planned.view = plan.partition;
  planned.end = is_read_committed ? plan.partition.last_stable : plan.partition.high_watermark;
  if (is_read_committed) planned.aborted = std::move(plan.aborted);
}

// Sets runs, and splits off those that only a later fetch of this reader will want.
void set_runs(const State& state, const PlanOptions& options, FetchPlan& plan, PlannedPartition& planned) {
  size_t bytes = 0;
  for (const StoredRun& run : plan.runs) {
    PlannedRun planned_run{run, run.is_marker ? ObjectRef{} : object_ref(state, options.log_id, run)};
    if (bytes < std::max<size_t>(planned.bytes_max, 1)) {
      planned.runs.push_back(std::move(planned_run));
    } else {
      planned.read_ahead.push_back(std::move(planned_run));
    }
    bytes += run.bytes_from(planned.from);
  }
  planned.bytes_estimate = std::min(bytes, planned.bytes_max);
  if (!plan.runs.empty() && plan.runs.back().end_offset() < planned.end)
    planned.read_class = ReadClass::kCatchUp;
}

PlannedPartition plan_partition(const State& state, const FetchPartition& asked, const FetchRequest& request,
                                const PlanOptions& options, size_t bytes_left, bool is_first) {
  PlannedPartition planned;
  planned.from = asked.offset;
  planned.bytes_max = std::min<size_t>(asked.bytes_max, bytes_left);
  bool goes_on = options.readers != nullptr && options.readers->goes_on(asked.partition, asked.offset);
  uint64_t plan_bytes = planned.bytes_max + (goes_on ? options.read_ahead_bytes : 0);
  auto plan = state.plan_fetch(asked.partition, asked.offset, plan_bytes, request.is_read_committed);
  if (!plan) {
    planned.error = FetchErrc::kUnknownPartition;
    return planned;
  }
  set_view(planned, *plan, request.is_read_committed);
  if (asked.offset < planned.view.log_start) {
    planned.error = FetchErrc::kOffsetOutOfRange;
  } else if (asked.offset > planned.view.high_watermark) {
    planned.is_beyond_end = !options.end_is_final;
    planned.error = options.end_is_final ? FetchErrc::kOffsetOutOfRange : FetchErrc::kNoProgress;
  } else if (plan->runs.empty()) {
    if (!options.has_progress) planned.error = FetchErrc::kNoProgress;
  } else if (planned.bytes_max > 0 || is_first) {
    planned.must_progress = is_first;
    set_runs(state, options, *plan, planned);
  } else {
    planned.bytes_max = 0;
  }
  return planned;
}

}  // namespace

ObjectRef object_ref(const State& state, const Uuid& log_id, const StoredRun& run) {
  ObjectRef ref;
  ref.id = run.object;
  ref.name.log_id = log_id;
  ref.name.number = run.object.number;
  auto incarnation = state.incarnations().find(run.object.incarnation);
  if (incarnation != state.incarnations().end()) ref.name.nonce = incarnation->second.nonce;
  if (auto epoch = state.object_epoch(run.object)) ref.name.epoch = *epoch;
  return ref;
}

PlannedFetch plan_fetch(const State& state, const FetchRequest& request, const PlanOptions& options) {
  PlannedFetch fetch;
  fetch.partitions.reserve(request.partitions.size());
  size_t bytes_left = request.bytes_max;
  bool is_first = true;  // nothing to read so far
  for (const FetchPartition& asked : request.partitions) {
    PlannedPartition planned = plan_partition(state, asked, request, options, bytes_left, is_first);
    if (!planned.runs.empty()) is_first = false;
    bytes_left -= std::min(bytes_left, planned.bytes_estimate);
    fetch.bytes_estimate += planned.bytes_estimate;
    fetch.is_beyond_end |= planned.is_beyond_end;
    fetch.has_error |= planned.error != FetchErrc::kNone;
    fetch.partitions.push_back(std::move(planned));
  }
  return fetch;
}

}  // namespace varve::storage
