#include "broker/handlers/batch_walk.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "protocol/records/batch.h"

namespace varve::broker {
namespace {

using protocol::records::BatchHeader;
using protocol::records::kBatchHeaderBytes;
using protocol::records::kBatchOverheadBytes;

// A place in a chain of slices.
class ChainCursor {
 public:
  explicit ChainCursor(const std::vector<Slice>& pieces) : pieces_(pieces) {}

  // Copies up to `into.size()` bytes from here on, without moving; how many there were.
  size_t peek(MutableByteView into) const {
    size_t copied = 0;
    size_t at = at_;
    for (size_t i = piece_; i < pieces_.size() && copied < into.size(); ++i, at = 0) {
      size_t part = std::min(pieces_[i].size() - at, into.size() - copied);
      std::memcpy(into.data() + copied, pieces_[i].data() + at, part);
      copied += part;
    }
    return copied;
  }

  void skip(size_t bytes) {
    while (piece_ < pieces_.size() && bytes > 0) {
      size_t part = std::min(pieces_[piece_].size() - at_, bytes);
      at_ += part;
      bytes -= part;
      if (at_ == pieces_[piece_].size()) {
        ++piece_;
        at_ = 0;
      }
    }
  }

 private:
  const std::vector<Slice>& pieces_;
  size_t piece_ = 0;
  size_t at_ = 0;
};

}  // namespace

uint64_t count_records(const std::vector<Slice>& pieces) {
  uint64_t records = 0;
  ChainCursor cursor(pieces);
  std::array<uint8_t, kBatchHeaderBytes> bytes;
  while (cursor.peek(bytes) == bytes.size()) {
    BatchHeader header = BatchHeader::decode(bytes);
    if (header.batch_length < static_cast<int32_t>(kBatchHeaderBytes - kBatchOverheadBytes)) break;
    records += static_cast<uint64_t>(std::max(header.record_count, 0));
    cursor.skip(kBatchOverheadBytes + static_cast<size_t>(header.batch_length));
  }
  return records;
}

}  // namespace varve::broker
