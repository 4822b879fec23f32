// Reads the records of a batch as one stream of bytes, decompressing as it goes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/compression.h"
#include "protocol/records/batch.h"

namespace varve::protocol::records {

// What decoding keeps from one batch to the next: the codecs' contexts and a window. An io executor owns one, and
// lends it to one reader at a time.
struct DecodeScratch {
  Decompressor decompressor;
  std::vector<uint8_t> window;
};

// A cursor like ByteReader: the first read that fails makes ok() false for good, further reads give zeros, and
// error() tells why. Nothing is copied of an uncompressed batch; of a compressed one a window is held.
// Lives on the stack of the call that reads; `batch`'s bytes and `scratch` outlive it.
class PayloadReader {
 public:
  // CHECKs that the batch has a codec. At most `output_bytes_max` bytes will be read (uncompressed batches too).
  PayloadReader(const BatchView& batch, DecodeScratch& scratch, size_t output_bytes_max);
  PayloadReader(const PayloadReader&) = delete;
  PayloadReader& operator=(const PayloadReader&) = delete;

  bool ok() const { return !error_.has_value(); }
  const RecordError& error() const { return *error_; }
  void fail(RecordErrc code, std::string message);

  // Bytes read so far.
  uint64_t position() const { return before_window_ + at_; }

  uint8_t u8() {
    if (at_ == window_.size() && !refill()) return 0;
    return window_[at_++];
  }
  // Kafka's zigzag varints; more bytes or bits than fit are an error.
  int32_t varint32() {
    uint32_t value = static_cast<uint32_t>(unsigned_varint(32));
    return static_cast<int32_t>(value >> 1) ^ -static_cast<int32_t>(value & 1);
  }
  int64_t varint64() {
    uint64_t value = unsigned_varint(64);
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  void skip(uint64_t size) {
    if (size <= window_.size() - at_) {
      at_ += static_cast<size_t>(size);
    } else {
      skip_far(size);
    }
  }
  // The next `size` bytes in one piece, valid until the next read. Takes memory only as bytes appear.
  ByteView contiguous(size_t size);
  // True if no byte is left, which also says that the compressed form was whole. May fail.
  bool at_end();

 private:
  uint64_t unsigned_varint(int bits) {
    // Most are one byte long.
    if (at_ < window_.size() && window_[at_] < 0x80) return window_[at_++];
    return long_varint(bits);
  }
  uint64_t long_varint(int bits);
  // The window is used up: the next one. False at the end of all bytes, which is an error here.
  bool refill();
  // Appends to the window what the codec gives next; the bytes before at_ are dropped. False at the end.
  bool extend(size_t wanted_bytes);
  void skip_far(uint64_t size);

  DecodeScratch& scratch_;
  const bool compressed_;
  ByteView window_;  // the payload itself, or the used part of scratch_.window
  size_t at_ = 0;
  uint64_t before_window_ = 0;
  std::optional<RecordError> error_;
};

}  // namespace varve::protocol::records
