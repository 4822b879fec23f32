#include "protocol/message_reader.h"

#include <algorithm>

namespace varve::protocol {

namespace {
// Longest string of the protocol, in both forms.
constexpr size_t kMaxStringBytes = 32767;
// What a std::string holds without an allocation of its own.
constexpr size_t kInlineStringBytes = 15;
}  // namespace

bool MessageReader::charge(size_t bytes) {
  if (bytes > budget_) {
    fail();
    return false;
  }
  budget_ -= bytes;
  return true;
}

void MessageReader::get(Uuid& out) {
  ByteView view = bytes_.raw(out.bytes.size());
  if (ok()) std::copy(view.begin(), view.end(), out.bytes.begin());
}

std::optional<size_t> MessageReader::string_size(bool flexible, bool nullable) {
  int64_t size = flexible ? int64_t{bytes_.unsigned_varint32()} - 1 : int64_t{bytes_.be<int16_t>()};
  if (!ok()) return std::nullopt;
  if (size < 0) {
    if (!nullable) fail();
    return std::nullopt;
  }
  if (static_cast<size_t>(size) > std::min(kMaxStringBytes, remaining())) {
    fail();
    return std::nullopt;
  }
  return static_cast<size_t>(size);
}

void MessageReader::take_string(std::string& out, size_t size) {
  if (size > kInlineStringBytes && !charge(size)) return;
  out = as_text(bytes_.raw(size));
}

void MessageReader::string(std::string& out, bool flexible) {
  if (auto size = string_size(flexible, false)) take_string(out, *size);
}

void MessageReader::string(std::optional<std::string>& out, bool flexible, bool nullable) {
  if (auto size = string_size(flexible, nullable)) {
    take_string(out.emplace(), *size);
  } else {
    out.reset();
  }
}

std::optional<size_t> MessageReader::bytes_size(bool flexible, bool nullable) {
  int64_t size = flexible ? int64_t{bytes_.unsigned_varint32()} - 1 : int64_t{bytes_.be<int32_t>()};
  if (!ok()) return std::nullopt;
  if (size < 0) {
    if (!nullable) fail();
    return std::nullopt;
  }
  if (static_cast<size_t>(size) > remaining()) {
    fail();
    return std::nullopt;
  }
  return static_cast<size_t>(size);
}

Slice MessageReader::take_slice(size_t size) {
  size_t at = bytes_.position();
  bytes_.raw(size);
  return message_.sub(at, size);
}

void MessageReader::bytes(Slice& out, bool flexible) {
  if (auto size = bytes_size(flexible, false)) out = take_slice(*size);
}

void MessageReader::bytes(std::optional<Slice>& out, bool flexible, bool nullable) {
  if (auto size = bytes_size(flexible, nullable)) {
    out = take_slice(*size);
  } else {
    out.reset();
  }
}

void MessageReader::records(std::optional<SliceChain>& out, bool flexible, bool nullable) {
  if (auto size = bytes_size(flexible, nullable)) {
    out = SliceChain(take_slice(*size));
  } else {
    out.reset();
  }
}

std::optional<size_t> MessageReader::count(bool flexible, bool nullable, size_t item_wire_bytes,
                                           size_t item_memory_bytes) {
  auto items = bytes_size(flexible, nullable);
  if (!items) return std::nullopt;
  // Both products are safe: the count is at most the number of bytes left.
  if (*items > remaining() / item_wire_bytes || !charge(*items * item_memory_bytes)) {
    fail();
    return std::nullopt;
  }
  return items;
}

void MessageReader::items(std::vector<std::string>& out, size_t count, bool flexible) {
  out.clear();
  out.reserve(count);
  for (size_t i = 0; i < count && ok(); ++i) string(out.emplace_back(), flexible);
}

uint32_t MessageReader::tag_count() {
  uint32_t tags = bytes_.unsigned_varint32();
  if (tags > remaining() / 2) fail();  // a number and a size each
  return ok() ? tags : 0;
}

MessageReader::Tag MessageReader::begin_tag() {
  Tag tag;
  tag.number = bytes_.unsigned_varint32();
  size_t size = bytes_.unsigned_varint32();
  if (size > remaining()) fail();
  if (!ok()) return {};
  tag.end = bytes_.position() + size;
  return tag;
}

void MessageReader::end_tag(const Tag& tag, bool known) {
  if (!ok()) return;
  if (known) {
    if (bytes_.position() != tag.end) fail();
  } else {
    bytes_.raw(tag.end - bytes_.position());
  }
}

void MessageReader::skip_tags() {
  for (uint32_t left = tag_count(); left > 0 && ok(); --left) end_tag(begin_tag(), false);
}

}  // namespace varve::protocol
