// Decodes the primitive types of the Kafka protocol from bytes of a stranger. Generated codecs are its main caller.
// Origin: https://kafka.apache.org/protocol#protocol_types, KIP-482 (compact types and tagged fields).
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "protocol/messages/error_code.h"
#include "protocol/slice_chain.h"

namespace varve::protocol {

struct DecodeLimits {
  // Memory that the decoded form may take beyond once the size of its bytes: an array of tiny items grows several
  // times in memory. No message of a real client comes near.
  size_t decoded_bytes = size_t{64} << 20;
};

// A cursor over one message. The first thing that does not fit makes ok() false for good; from then on every read
// gives zero, empty or null. Counts are checked against the bytes that are left and against the limits before
// memory is taken for them. Bytes and records are not copied: they share the owner of the message.
// Used from one thread; the decoded message may outlive the reader.
class MessageReader {
 public:
  explicit MessageReader(Slice message, DecodeLimits limits = {})
      : message_(std::move(message)),
        bytes_(message_.view()),
        budget_(limits.decoded_bytes + message_.size()) {}

  bool ok() const { return bytes_.ok(); }
  void fail() { bytes_.fail(); }
  size_t remaining() const { return bytes_.remaining(); }
  // What has not been read yet.
  Slice rest() const { return message_.sub(bytes_.position(), bytes_.remaining()); }

  template <std::integral T>
  void get(T& out) {
    out = bytes_.be<T>();
  }
  void get(bool& out) { out = bytes_.u8() != 0; }
  void get(double& out) { out = std::bit_cast<double>(bytes_.be<uint64_t>()); }
  void get(ErrorCode& out) { out = static_cast<ErrorCode>(bytes_.be<int16_t>()); }
  void get(Uuid& out);
  template <class T, class Tag>
  void get(Strong<T, Tag>& out) {
    out = Strong<T, Tag>(bytes_.be<T>());
  }

  // In the following, flexible chooses the compact form; a null fails unless nullable.
  void string(std::string& out, bool flexible);
  void string(std::optional<std::string>& out, bool flexible, bool nullable);
  void bytes(Slice& out, bool flexible);
  void bytes(std::optional<Slice>& out, bool flexible, bool nullable);
  void records(std::optional<SliceChain>& out, bool flexible, bool nullable);

  // The length of an array whose items take at least item_wire_bytes here and item_memory_bytes decoded.
  // nullopt: a null array, or one that failed.
  std::optional<size_t> count(bool flexible, bool nullable, size_t item_wire_bytes, size_t item_memory_bytes);

  // Arrays of plain values, of strings, and of generated structs.
  template <class T>
  void items(std::vector<T>& out, size_t count) {
    out.resize(count);
    for (size_t i = 0; i < count && ok(); ++i) get(out[i]);
  }
  void items(std::vector<std::string>& out, size_t count, bool flexible);
  template <class T>
  void structs(std::vector<T>& out, size_t count, int16_t version) {
    out.clear();
    out.reserve(count);
    for (size_t i = 0; i < count && ok(); ++i) out.emplace_back().read(*this, version);
  }

  // Tagged fields. for (auto left = tag_count(); left > 0; --left) { tag = begin_tag(); read the value of a number
  // that is known; end_tag(tag, known); }
  struct Tag {
    uint32_t number = UINT32_MAX;
    size_t end = 0;
  };
  uint32_t tag_count();
  Tag begin_tag();
  // Skips the value of an unknown tag; fails if a known one was not exactly as long as it said.
  void end_tag(const Tag& tag, bool known);
  void skip_tags();

 private:
  std::optional<size_t> string_size(bool flexible, bool nullable);
  std::optional<size_t> bytes_size(bool flexible, bool nullable);
  void take_string(std::string& out, size_t size);
  Slice take_slice(size_t size);
  // False, and failed, if the decoded form would take more than the limit.
  bool charge(size_t bytes);

  Slice message_;
  ByteReader bytes_;
  size_t budget_;
};

}  // namespace varve::protocol
