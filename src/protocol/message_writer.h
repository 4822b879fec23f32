// Encodes the primitive types of the Kafka protocol. Generated codecs are its main caller.
// Origin: https://kafka.apache.org/protocol#protocol_types, KIP-482 (compact types and tagged fields).
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "protocol/messages/error_code.h"
#include "protocol/slice_chain.h"

namespace varve::protocol {

// Builds one frame or message. Small things are written into a buffer of its own; records of kReferenceFrom bytes
// and more are referenced, so that a response with 50 MB of records costs its headers only.
// Lives for one message, is used from one thread, and is empty after finish().
//
// It never fails on data: what a version cannot carry (a null where it has none, a string of more than 32767
// bytes) is written as empty or cut, because such values come from us and are free text or absent lists.
class MessageWriter {
 public:
  // A piece of records shorter than this is cheaper to copy than to send as a vector of its own.
  static constexpr size_t kReferenceFrom = 512;
  static constexpr size_t kMaxStringBytes = 32767;

  explicit MessageWriter(size_t reserve_bytes = 512) : own_(reserve_bytes) {}

  template <std::integral T>
  void put(T value) {
    own_.be(value);
  }
  void put(bool value) { own_.u8(value ? 1 : 0); }
  void put(double value) { own_.be(std::bit_cast<uint64_t>(value)); }
  void put(ErrorCode value) { own_.be(static_cast<int16_t>(value)); }
  void put(const Uuid& value) { own_.raw(value.bytes); }
  template <class T, class Tag>
  void put(Strong<T, Tag> value) {
    own_.be(value.value());
  }
  void unsigned_varint(uint32_t value) { own_.unsigned_varint(value); }

  // In the following, flexible chooses the compact form; nullable says whether null may be written as such.
  void string(std::string_view text, bool flexible);
  void string(const std::optional<std::string>& text, bool flexible, bool nullable);
  void bytes(const Slice& bytes, bool flexible);
  void bytes(const std::optional<Slice>& bytes, bool flexible, bool nullable);
  void records(const std::optional<SliceChain>& records, bool flexible, bool nullable);

  // The length of an array; its items follow.
  void count(size_t items, bool flexible);
  // A null array, or an empty one where null cannot be said.
  void null_count(bool flexible, bool nullable);
  template <class T>
  void items(const std::vector<T>& values) {
    for (const T& value : values) put(value);
  }
  void items(const std::vector<std::string>& values, bool flexible) {
    for (const std::string& value : values) string(value, flexible);
  }

  // A tagged field: begin, write its value, end with what begin gave. The value holds no referenced records.
  size_t begin_tag(uint32_t tag);
  void end_tag(size_t begin);

  // Bytes written so far, referenced ones included.
  size_t size() const { return own_.size() + referenced_; }
  // Overwrites an int32 at a byte position that lies before any records.
  void patch_int32(size_t at, int32_t value) { own_.patch_be(at, value); }

  // The message, in order. The writer is spent.
  std::vector<Slice> finish();
  // The same joined into one slice, by a copy if there are references: for tests and small messages.
  Slice finish_joined();

 private:
  // Stands between the own bytes before `at` and those from it on.
  struct Reference {
    size_t at;
    Slice slice;
  };
  void bytes_length(size_t size, bool flexible);
  void null_length(bool flexible, bool nullable);

  ByteWriter own_;
  std::vector<Reference> references_;
  size_t referenced_ = 0;
};

}  // namespace varve::protocol
