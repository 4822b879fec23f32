// The runs of one partition in offset order: an open tail and sealed pages behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "metadata/state/chunk_key.h"
#include "metadata/state/state.h"

namespace varve::metadata {

struct Object;

// A StoredRun in 40 bytes. The object is a node of the ObjectTable of the same state; null in a marker.
struct CompactRun {
  static constexpr uint8_t kTransactional = 1 << 0;
  static constexpr uint8_t kLogAppendTime = 1 << 1;
  static constexpr uint8_t kMarker = 1 << 2;
  static constexpr uint8_t kKnownFlags = (1 << 3) - 1;

  Object* object = nullptr;
  int64_t base_offset = 0;
  int64_t max_timestamp = -1;  // the append time if kLogAppendTime
  uint64_t position : 56 = 0;  // objects are smaller than kObjectBytesMax
  uint64_t flags : 8 = 0;
  uint32_t bytes = 0;
  uint32_t records = 0;

  int64_t end_offset() const { return base_offset + records; }
  StoredRun unpack() const;
};
static_assert(sizeof(CompactRun) == 40);

// A page takes no more runs; it only loses them from the front. Numbered within its block of partitions in the
// order of sealing, which places it in a history chunk.
struct RunPage {
  uint64_t number = 0;
  int64_t max_timestamp = 0;  // when it was sealed or restored: an upper bound
  std::vector<CompactRun> runs;
};

// Looked up by binary search, first over pages, then in one. A span is a page, or, as the last one, the tail.
class RunList {
 public:
  struct Place {
    size_t span = 0;
    size_t at = 0;
  };

  bool is_empty() const { return tail_.empty() && !pages_; }
  size_t spans() const { return (pages_ ? pages_->size() : 0) + 1; }
  std::span<const CompactRun> span(size_t index) const;
  // An upper bound of the timestamps in a span, or INT64_MAX where none is kept.
  int64_t span_time_bound(size_t index) const;
  // The first run that ends after `offset`; the end of the tail if none does.
  Place first_ending_after(int64_t offset) const;

  // The newest run, if it may still be extended: it is not in a page.
  CompactRun* open_run() { return tail_.empty() ? nullptr : &tail_.back(); }
  // True if the tail is full now and must be sealed.
  bool push_back(const CompactRun& run);
  void seal_tail(uint64_t page_number);
  // From a snapshot: pages come in their order.
  void restore_page(RunPage page);

  // Removes runs that end at or below `offset`, calling `removed` for each; a page is told to `page_changes` before it
  // loses runs, and to `page_gone` when it has lost all.
  template <class OnRun, class OnChange, class OnGone>
  void remove_below(int64_t offset, OnRun removed, OnChange page_changes, OnGone page_gone);

  const RunPage* page(uint64_t number) const;

 private:
  using Pages = std::vector<RunPage>;

  std::unique_ptr<Pages> pages_;  // null while there is none, as in most partitions
  std::vector<CompactRun> tail_;
};

template <class OnRun, class OnChange, class OnGone>
void RunList::remove_below(int64_t offset, OnRun removed, OnChange page_changes, OnGone page_gone) {
  auto cut = [&](std::vector<CompactRun>& runs) {
    size_t count = 0;
    while (count < runs.size() && runs[count].end_offset() <= offset) removed(runs[count++]);
    runs.erase(runs.begin(), runs.begin() + static_cast<ptrdiff_t>(count));
  };
  if (pages_) {
    size_t gone = 0;
    for (RunPage& page : *pages_) {
      if (page.runs.front().end_offset() > offset) break;
      page_changes(page.number);
      cut(page.runs);
      if (!page.runs.empty()) break;
      page_gone(page.number);
      ++gone;
    }
    pages_->erase(pages_->begin(), pages_->begin() + static_cast<ptrdiff_t>(gone));
    if (!pages_->empty()) return;
    pages_.reset();
  }
  cut(tail_);
}

}  // namespace varve::metadata
