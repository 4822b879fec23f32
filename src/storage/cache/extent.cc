#include "storage/cache/extent.h"

namespace varve::storage {

Extent::Extent(uint64_t offset, std::vector<Slice> slices, bool is_verified)
    : slices_(std::move(slices)), is_all_verified_(is_verified) {
  std::erase_if(slices_, [](const Slice& slice) { return slice.empty(); });
  starts_.reserve(slices_.size() + 1);
  starts_.push_back(offset);
  for (const Slice& slice : slices_) starts_.push_back(starts_.back() + slice.size());
}

void Extent::slice(uint64_t from, uint64_t to, std::vector<Slice>& out) const {
  CHECK(from >= offset() && to <= end() && from <= to, "[{}, {}) of [{}, {})", from, to, offset(), end());
  size_t at =
      static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), from) - starts_.begin()) - 1;
  while (from < to) {
    uint64_t slice_to = std::min(to, starts_[at + 1]);
    out.push_back(slices_[at].sub(from - starts_[at], slice_to - from));
    from = slice_to;
    ++at;
  }
}

bool Extent::is_verified(uint64_t from, uint64_t to) const {
  if (is_all_verified_) return true;
  std::lock_guard lock(mutex_);
  auto after = verified_.upper_bound(from);
  return after != verified_.begin() && std::prev(after)->second >= to;
}

void Extent::mark_verified(uint64_t from, uint64_t to) const {
  if (is_all_verified_ || from >= to) return;
  std::lock_guard lock(mutex_);
  auto first = verified_.upper_bound(from);
  if (first != verified_.begin() && std::prev(first)->second >= from) --first;
  auto last = first;
  for (; last != verified_.end() && last->first <= to; ++last) {
    from = std::min(from, last->first);
    to = std::max(to, last->second);
  }
  verified_.erase(first, last);
  verified_.emplace(from, to);
}

}  // namespace varve::storage
