// Extent: a stretch of one immutable object in memory, and which of its bytes have passed their checksum.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"

namespace varve::storage {

// Shared by the cache and by readers; any thread. The bytes never change.
class Extent {
 public:
  // `slices` are the object's bytes from `offset` on. `is_verified`: every batch in it is known to be sound.
  Extent(uint64_t offset, std::vector<Slice> slices, bool is_verified);

  uint64_t offset() const { return starts_.front(); }
  uint64_t end() const { return starts_.back(); }
  uint64_t size() const { return end() - offset(); }

  // Appends slices of [from, to), positions in the object that lie inside; copies no bytes.
  void slice(uint64_t from, uint64_t to, std::vector<Slice>& out) const;

  // Whether [from, to) was marked as verified, in one piece or several.
  bool is_verified(uint64_t from, uint64_t to) const;
  void mark_verified(uint64_t from, uint64_t to) const;

 private:
  std::vector<uint64_t> starts_;  // of the slices, and the end
  std::vector<Slice> slices_;
  const bool is_all_verified_;
  mutable std::mutex mutex_;
  mutable std::map<uint64_t, uint64_t> verified_;  // start to end; disjoint, not touching
};

}  // namespace varve::storage
