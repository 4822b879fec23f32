// Byte ranges: a view that owns nothing, a shared immutable slice, a growing writer and a bounds-checked reader.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace varve {

using ByteView = std::span<const uint8_t>;
using MutableByteView = std::span<uint8_t>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// Lower-case hexadecimal, two digits a byte.
std::string to_hex(ByteView bytes);

// An immutable range of bytes that shares its owner with other slices: copying it copies no bytes.
// Any thread may hold one.
class Slice {
 public:
  Slice() = default;
  Slice(std::shared_ptr<const void> owner, ByteView view) : owner_(std::move(owner)), view_(view) {}

  static Slice copy_of(ByteView bytes);
  static Slice take(std::vector<uint8_t> bytes);
  // For literals and other bytes that outlive everything.
  static Slice unowned(ByteView bytes) { return Slice(nullptr, bytes); }

  ByteView view() const { return view_; }
  const uint8_t* data() const { return view_.data(); }
  size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  uint8_t operator[](size_t index) const { return view_[index]; }

  // CHECKs that the range lies inside.
  Slice sub(size_t offset, size_t size) const {
    CHECK(offset <= view_.size() && size <= view_.size() - offset, "slice [{}, +{}) of {}", offset, size,
          view_.size());
    return Slice(owner_, view_.subspan(offset, size));
  }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // By content, whoever owns it.
  bool operator==(const Slice& other) const { return as_text(view_) == as_text(other.view_); }

 private:
  std::shared_ptr<const void> owner_;
  ByteView view_;
};

// Of all the slices together.
inline size_t total_size(const std::vector<Slice>& slices) {
  size_t size = 0;
  for (const Slice& slice : slices) size += slice.size();
  return size;
}

// Loads and stores of fixed width in network order (Kafka, and every varve format).
template <std::integral T>
T load_be(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little) value = std::byteswap(value);
  return value;
}
template <std::integral T>
void store_be(uint8_t* to, T value) {
  if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little) value = std::byteswap(value);
  std::memcpy(to, &value, sizeof(T));
}

// Appends to a vector it owns. Varints are Kafka's: LEB128, with ZigZag for the signed form.
class ByteWriter {
 public:
  ByteWriter() = default;
  explicit ByteWriter(size_t reserve_bytes) { bytes_.reserve(reserve_bytes); }

  template <std::integral T>
  void be(T value) {
    size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store_be(bytes_.data() + at, value);
  }
  void u8(uint8_t value) { bytes_.push_back(value); }
  void unsigned_varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<uint8_t>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<uint8_t>(value));
  }
  void varint(int64_t value) {
    unsigned_varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void raw(ByteView bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  // unsigned_varint length, then the bytes.
  void prefixed(ByteView bytes) {
    unsigned_varint(bytes.size());
    raw(bytes);
  }
  void prefixed(std::string_view text) { prefixed(as_bytes(text)); }

  size_t size() const { return bytes_.size(); }
  // Overwrites sizeof(T) bytes written before.
  template <std::integral T>
  void patch_be(size_t at, T value) {
    CHECK(at + sizeof(T) <= bytes_.size());
    store_be(bytes_.data() + at, value);
  }
  // Drops what was written from size on; size <= size().
  void truncate(size_t size) {
    CHECK(size <= bytes_.size());
    bytes_.resize(size);
  }
  ByteView view() const { return bytes_; }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

// A cursor over bytes from outside. It never reads past the end: the first read that would makes ok() false for
// good, and from then on every read gives zero or an empty view. Callers test ok() once, at the end; loops over
// counts must test it (or use count()) so that a hostile count cannot make them run or reserve without data.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  void fail() {
    ok_ = false;
    at_ = bytes_.size();
  }
  size_t position() const { return at_; }
  size_t remaining() const { return bytes_.size() - at_; }
  bool at_end() const { return ok_ && at_ == bytes_.size(); }

  template <std::integral T>
  T be() {
    if (remaining() < sizeof(T)) {
      fail();
      return 0;
    }
    T value = load_be<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return value;
  }
  uint8_t u8() { return be<uint8_t>(); }
  // Fails on more than max_bytes bytes or on bits that do not fit.
  uint64_t unsigned_varint() { return unsigned_varint_of(10); }
  uint32_t unsigned_varint32() {
    uint64_t value = unsigned_varint_of(5);
    if (value > UINT32_MAX) {
      fail();
      return 0;
    }
    return static_cast<uint32_t>(value);
  }
  int64_t varint() {
    uint64_t value = unsigned_varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  int32_t varint32() {
    uint32_t value = unsigned_varint32();
    return static_cast<int32_t>(value >> 1) ^ -static_cast<int32_t>(value & 1);
  }
  ByteView raw(size_t size) {
    if (remaining() < size) {
      fail();
      return {};
    }
    ByteView view = bytes_.subspan(at_, size);
    at_ += size;
    return view;
  }
  ByteView prefixed() {
    uint64_t size = unsigned_varint();
    if (size > remaining()) {
      fail();
      return {};
    }
    return raw(static_cast<size_t>(size));
  }
  // A count of items that take at least min_item_bytes each; fails if the rest cannot hold them.
  size_t count(size_t min_item_bytes) {
    uint64_t items = unsigned_varint();
    if (items > remaining() / (min_item_bytes == 0 ? 1 : min_item_bytes)) {
      fail();
      return 0;
    }
    return static_cast<size_t>(items);
  }

 private:
  uint64_t unsigned_varint_of(int max_bytes) {
    uint64_t value = 0;
    for (int i = 0; i < max_bytes; ++i) {
      if (at_ == bytes_.size()) break;
      uint8_t byte = bytes_[at_++];
      if (i == 9 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if ((byte & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }

  ByteView bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace varve
