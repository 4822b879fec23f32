// A sequence of slices that reads as one byte string: the records of a partition, made of pieces that live in
// different buffers (a patched batch header, the rest of the batch in the cache) and are never joined.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace varve::protocol {

// Holding one piece takes no allocation. Any thread may hold one; empty pieces are dropped.
class SliceChain {
 public:
  SliceChain() = default;
  // Not explicit: a slice is the chain of one piece.
  SliceChain(Slice slice) : first_(std::move(slice)) {}  // NOLINT(google-explicit-constructor)

  void append(Slice slice);

  // Sum of the pieces, in bytes.
  size_t size() const;
  bool empty() const { return first_.empty(); }
  size_t pieces() const { return first_.empty() ? 0 : 1 + rest_.size(); }
  // Piece number index < pieces().
  const Slice& piece(size_t index) const { return index == 0 ? first_ : rest_[index - 1]; }

  // The bytes in one piece: shares them if they already are, copies otherwise.
  Slice joined() const;

  // By content; how the bytes are cut does not matter.
  bool operator==(const SliceChain& other) const;

 private:
  Slice first_;
  std::vector<Slice> rest_;
};

}  // namespace varve::protocol
