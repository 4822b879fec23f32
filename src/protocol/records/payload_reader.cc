#include "protocol/records/payload_reader.h"

#include <algorithm>
#include <cstring>

namespace varve::protocol::records {
namespace {

// Room for a block of lz4 (64 KiB) or snappy (32 KiB), which then need no copy of their own.
constexpr size_t kWindowBytes = 64 * 1024;
// A window that a giant record stretched is given back.
constexpr size_t kKeptWindowBytesMax = 1024 * 1024;

RecordErrc code_of(CompressionErrc code) {
  switch (code) {
    case CompressionErrc::kCorrupt:
      return RecordErrc::kCorruptCompression;
    case CompressionErrc::kTooLarge:
      return RecordErrc::kDecompressedTooLarge;
    case CompressionErrc::kInternal:
      return RecordErrc::kInternal;
  }
  return RecordErrc::kInternal;
}

}  // namespace

PayloadReader::PayloadReader(const BatchView& batch, DecodeScratch& scratch, size_t output_bytes_max)
    : scratch_(scratch), compressed_(batch.header().codec() != Codec::kNone) {
  CHECK(batch.header().codec().has_value(), "the codec was not checked");
  if (compressed_) {
    if (scratch_.window.capacity() > kKeptWindowBytesMax) scratch_.window = {};
    scratch_.decompressor.start(*batch.header().codec(), batch.payload(), output_bytes_max);
  } else if (batch.payload().size() > output_bytes_max) {
    fail(RecordErrc::kDecompressedTooLarge, "records take more than is allowed");
  } else {
    window_ = batch.payload();
  }
}

void PayloadReader::fail(RecordErrc code, std::string message) {
  if (!error_.has_value()) error_ = RecordError{code, std::move(message)};
  before_window_ += at_;
  window_ = {};
  at_ = 0;
}

bool PayloadReader::extend(size_t wanted_bytes) {
  if (!compressed_ || !ok()) return false;
  std::vector<uint8_t>& buffer = scratch_.window;
  size_t held = window_.size() - at_;
  // Doubles at most, so that a record's claim takes no more memory than the bytes that came.
  size_t size = std::max(kWindowBytes, std::min(wanted_bytes, 2 * held));
  if (buffer.size() < size) {
    std::vector<uint8_t> larger(size);
    std::copy_n(window_.begin() + static_cast<ptrdiff_t>(at_), held, larger.begin());
    buffer.swap(larger);
  } else if (held > 0) {
    std::memmove(buffer.data(), window_.data() + at_, held);
  }
  before_window_ += at_;
  at_ = 0;
  window_ = ByteView(buffer).first(held);
  auto got = scratch_.decompressor.read(MutableByteView(buffer).subspan(held));
  if (!got) {
    fail(code_of(got.error().code), std::move(got.error().message));
    return false;
  }
  window_ = ByteView(buffer).first(held + *got);
  return *got > 0;
}

bool PayloadReader::refill() {
  if (extend(kWindowBytes)) return true;
  fail(RecordErrc::kCorruptRecord, "fewer bytes than the records need");
  return false;
}

void PayloadReader::skip_far(uint64_t size) {
  while (ok()) {
    size_t here = static_cast<size_t>(std::min<uint64_t>(size, window_.size() - at_));
    at_ += here;
    size -= here;
    if (size == 0 || !refill()) return;
  }
}

uint64_t PayloadReader::long_varint(int bits) {
  uint64_t value = 0;
  for (int shift = 0; shift < bits; shift += 7) {
    uint8_t byte = u8();
    if (!ok()) return 0;
    if (shift + 7 > bits && (byte >> (bits - shift)) != 0) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail(RecordErrc::kCorruptRecord, "a number too long");
  return 0;
}

ByteView PayloadReader::contiguous(size_t size) {
  while (window_.size() - at_ < size) {
    if (!extend(size)) {
      fail(RecordErrc::kCorruptRecord, "fewer bytes than the records need");
      return {};
    }
  }
  ByteView bytes = window_.subspan(at_, size);
  at_ += size;
  return bytes;
}

bool PayloadReader::at_end() {
  if (!ok()) return false;
  return at_ == window_.size() && !extend(kWindowBytes) && ok();
}

}  // namespace varve::protocol::records
