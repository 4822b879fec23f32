#include "protocol/slice_chain.h"

#include <algorithm>
#include <cstring>

namespace varve::protocol {

void SliceChain::append(Slice slice) {
  if (slice.empty()) return;
  if (first_.empty()) {
    first_ = std::move(slice);
  } else {
    rest_.push_back(std::move(slice));
  }
}

size_t SliceChain::size() const {
  size_t total = first_.size();
  for (const Slice& slice : rest_) total += slice.size();
  return total;
}

Slice SliceChain::joined() const {
  if (rest_.empty()) return first_;
  std::vector<uint8_t> bytes;
  bytes.reserve(size());
  for (size_t i = 0; i < pieces(); ++i)
    bytes.insert(bytes.end(), piece(i).view().begin(), piece(i).view().end());
  return Slice::take(std::move(bytes));
}

bool SliceChain::operator==(const SliceChain& other) const {
  if (size() != other.size()) return false;
  size_t mine = 0;
  size_t theirs = 0;
  ByteView left;
  ByteView right;
  for (size_t todo = size(); todo > 0;) {
    if (left.empty()) left = piece(mine++).view();
    if (right.empty()) right = other.piece(theirs++).view();
    size_t step = std::min(left.size(), right.size());
    if (std::memcmp(left.data(), right.data(), step) != 0) return false;
    left = left.subspan(step);
    right = right.subspan(step);
    todo -= step;
  }
  return true;
}

}  // namespace varve::protocol
