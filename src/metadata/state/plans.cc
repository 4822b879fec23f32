// Fetch plans: what a read needs to know of one partition, at the state's position.
#include <algorithm>

#include "metadata/state/state_impl.h"

namespace varve::metadata {
namespace {

// Calls `visit(run)` for the runs from `place` on, in offset order, until it returns false.
template <class Visit>
void for_each_run(const RunList& runs, RunList::Place place, Visit visit) {
  for (; place.span < runs.spans(); ++place.span, place.at = 0) {
    std::span<const CompactRun> span = runs.span(place.span);
    for (; place.at < span.size(); ++place.at) {
      if (!visit(span[place.at])) return;
    }
  }
}

}  // namespace

uint32_t StoredRun::bytes_from(Offset from) const {
  if (from <= base_offset) return bytes;
  if (from >= end_offset()) return 0;
  uint64_t records_left = static_cast<uint64_t>(end_offset().value() - from.value());
  return static_cast<uint32_t>(std::max<uint64_t>(1, bytes * records_left / records));
}

std::optional<PartitionView> State::partition(PartitionHandle handle) const {
  const Partition* partition = impl_->partitions.find(handle);
  if (partition == nullptr) return std::nullopt;
  return impl_->view_of(handle, *partition);
}

std::optional<uint64_t> State::stored_bytes(PartitionHandle handle) const {
  const Partition* partition = impl_->partitions.find(handle);
  if (partition == nullptr) return std::nullopt;
  uint64_t bytes = 0;
  Offset start(partition->log_start);
  for_each_run(partition->runs, {}, [&](const CompactRun& run) {
    bytes += run.base_offset >= partition->log_start ? run.bytes : run.unpack().bytes_from(start);
    return true;
  });
  return bytes;
}

std::optional<FetchPlan> State::plan_fetch(PartitionHandle handle, Offset from, uint64_t max_bytes,
                                           bool committed_only) const {
  const Partition* partition = impl_->partitions.find(handle);
  if (partition == nullptr) return std::nullopt;
  std::optional<FetchPlan> plan(std::in_place);
  plan->partition = impl_->view_of(handle, *partition);
  const PartitionView& view = plan->partition;
  int64_t end = (committed_only ? view.last_stable : view.high_watermark).value();
  if (from < view.log_start || from.value() >= end) return plan;

  RunList::Place first = partition->runs.first_ending_after(from.value());
  // Counted before they are copied: the vector is the only allocation.
  size_t count = 0;
  uint64_t bytes = 0;
  for_each_run(partition->runs, first, [&](const CompactRun& run) {
    if (run.base_offset >= end) return false;
    ++count;
    bytes += run.unpack().bytes_from(from);
    return bytes < max_bytes;
  });
  plan->runs.reserve(count);
  for_each_run(partition->runs, first, [&](const CompactRun& run) {
    if (plan->runs.size() == count) return false;
    plan->runs.push_back(run.unpack());
    return true;
  });
  return plan;
}

std::optional<FetchPlan> State::plan_time_lookup(PartitionHandle handle, int64_t timestamp, Offset from,
                                                 size_t max_runs) const {
  const Partition* partition = impl_->partitions.find(handle);
  if (partition == nullptr) return std::nullopt;
  std::optional<FetchPlan> plan(std::in_place);
  plan->partition = impl_->view_of(handle, *partition);
  int64_t start = std::max(from.value(), partition->log_start);
  const RunList& runs = partition->runs;
  RunList::Place place = runs.first_ending_after(start);
  for (; place.span < runs.spans() && plan->runs.size() < max_runs; ++place.span, place.at = 0) {
    if (runs.span_time_bound(place.span) < timestamp) continue;
    std::span<const CompactRun> span = runs.span(place.span);
    for (; place.at < span.size() && plan->runs.size() < max_runs; ++place.at) {
      if (span[place.at].max_timestamp >= timestamp) plan->runs.push_back(span[place.at].unpack());
    }
  }
  return plan;
}

std::optional<FetchPlan> State::plan_max_timestamp(PartitionHandle handle) const {
  const Partition* partition = impl_->partitions.find(handle);
  if (partition == nullptr) return std::nullopt;
  std::optional<FetchPlan> plan(std::in_place);
  plan->partition = impl_->view_of(handle, *partition);
  const RunList& runs = partition->runs;
  const CompactRun* latest = nullptr;
  for (size_t i = 0; i < runs.spans(); ++i) {
    if (latest != nullptr && runs.span_time_bound(i) <= latest->max_timestamp) continue;
    for (const CompactRun& run : runs.span(i)) {
      if (latest == nullptr || run.max_timestamp > latest->max_timestamp) latest = &run;
    }
  }
  if (latest != nullptr) plan->runs.push_back(latest->unpack());
  return plan;
}

std::optional<Sequence> State::next_sequence(PartitionHandle handle, ProducerId producer,
                                             ProducerEpoch epoch) const {
  const Partition* partition = impl_->partitions.find(handle);
  if (partition == nullptr || !partition->producers) return std::nullopt;
  auto known = partition->producers->find(producer);
  if (known == partition->producers->end() || epoch < known->second.epoch) return std::nullopt;
  return epoch == known->second.epoch ? known->second.next_sequence() : Sequence(0);
}

bool State::has_idle_producer(PartitionHandle from, PartitionHandle to, int64_t idle_since) const {
  for (uint32_t number = from.value(); number < to.value(); ++number) {
    const Partition* partition = impl_->partitions.find(PartitionHandle(number));
    if (partition == nullptr || !partition->producers) continue;
    for (const auto& [id, producer] : *partition->producers) {
      if (producer.last_time < idle_since) return true;
    }
  }
  return false;
}

PartitionHandle State::next_partition() const { return impl_->partitions.next_handle(); }

}  // namespace varve::metadata
