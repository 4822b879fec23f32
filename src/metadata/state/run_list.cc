#include "metadata/state/run_list.h"

#include <algorithm>

#include "metadata/state/object_table.h"

namespace varve::metadata {
namespace {

size_t first_ending_after(std::span<const CompactRun> runs, int64_t offset) {
  auto at = std::partition_point(runs.begin(), runs.end(),
                                 [&](const CompactRun& run) { return run.end_offset() <= offset; });
  return static_cast<size_t>(at - runs.begin());
}

}  // namespace

StoredRun CompactRun::unpack() const {
  StoredRun run;
  if (object != nullptr) run.object = object->id;
  run.position = position;
  run.bytes = bytes;
  run.base_offset = Offset(base_offset);
  run.records = records;
  run.max_timestamp = max_timestamp;
  run.is_transactional = (flags & kTransactional) != 0;
  run.is_log_append_time = (flags & kLogAppendTime) != 0;
  run.is_marker = (flags & kMarker) != 0;
  if (run.is_log_append_time) run.append_time = max_timestamp;
  return run;
}

std::span<const CompactRun> RunList::span(size_t index) const {
  if (pages_ && index < pages_->size()) return (*pages_)[index].runs;
  return tail_;
}

int64_t RunList::span_time_bound(size_t index) const {
  if (pages_ && index < pages_->size()) return (*pages_)[index].max_timestamp;
  return INT64_MAX;
}

RunList::Place RunList::first_ending_after(int64_t offset) const {
  Place place;
  if (pages_) {
    auto page = std::partition_point(pages_->begin(), pages_->end(), [&](const RunPage& candidate) {
      return candidate.runs.back().end_offset() <= offset;
    });
    place.span = static_cast<size_t>(page - pages_->begin());
  }
  place.at = metadata::first_ending_after(span(place.span), offset);
  return place;
}

bool RunList::push_back(const CompactRun& run) {
  tail_.push_back(run);
  return tail_.size() >= kRunsPerPage;
}

void RunList::seal_tail(uint64_t page_number) {
  RunPage page{.number = page_number, .max_timestamp = 0, .runs = std::move(tail_)};
  tail_ = {};
  restore_page(std::move(page));
}

void RunList::restore_page(RunPage page) {
  page.max_timestamp = INT64_MIN;
  for (const CompactRun& run : page.runs)
    page.max_timestamp = std::max(page.max_timestamp, run.max_timestamp);
  if (!pages_) pages_ = std::make_unique<Pages>();
  pages_->push_back(std::move(page));
}

const RunPage* RunList::page(uint64_t number) const {
  if (!pages_) return nullptr;
  auto at = std::partition_point(pages_->begin(), pages_->end(),
                                 [&](const RunPage& candidate) { return candidate.number < number; });
  return at != pages_->end() && at->number == number ? &*at : nullptr;
}

}  // namespace varve::metadata
