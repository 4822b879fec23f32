#include "protocol/message_writer.h"

#include <algorithm>
#include <utility>

namespace varve::protocol {

void MessageWriter::string(std::string_view text, bool flexible) {
  text = text.substr(0, kMaxStringBytes);
  if (flexible) {
    own_.unsigned_varint(text.size() + 1);
  } else {
    own_.be(static_cast<int16_t>(text.size()));
  }
  own_.raw(as_bytes(text));
}

void MessageWriter::string(const std::optional<std::string>& text, bool flexible, bool nullable) {
  if (text || !nullable) {
    string(text ? std::string_view(*text) : std::string_view(), flexible);
  } else if (flexible) {
    own_.u8(0);
  } else {
    own_.be<int16_t>(-1);
  }
}

void MessageWriter::bytes_length(size_t size, bool flexible) {
  CHECK(size <= INT32_MAX, "{} bytes in one field", size);
  if (flexible) {
    own_.unsigned_varint(size + 1);
  } else {
    own_.be(static_cast<int32_t>(size));
  }
}

void MessageWriter::null_length(bool flexible, bool nullable) {
  if (!nullable) {
    bytes_length(0, flexible);
  } else if (flexible) {
    own_.u8(0);
  } else {
    own_.be<int32_t>(-1);
  }
}

void MessageWriter::bytes(const Slice& bytes, bool flexible) {
  bytes_length(bytes.size(), flexible);
  own_.raw(bytes.view());
}

void MessageWriter::bytes(const std::optional<Slice>& value, bool flexible, bool nullable) {
  if (value) {
    bytes(*value, flexible);
  } else {
    null_length(flexible, nullable);
  }
}

void MessageWriter::records(const std::optional<SliceChain>& records, bool flexible, bool nullable) {
  if (!records) return null_length(flexible, nullable);
  bytes_length(records->size(), flexible);
  for (size_t i = 0; i < records->pieces(); ++i) {
    const Slice& piece = records->piece(i);
    if (piece.size() < kReferenceFrom) {
      own_.raw(piece.view());
    } else {
      references_.push_back({own_.size(), piece});
      referenced_ += piece.size();
    }
  }
}

void MessageWriter::count(size_t items, bool flexible) { bytes_length(items, flexible); }

void MessageWriter::null_count(bool flexible, bool nullable) { null_length(flexible, nullable); }

// The size of the value stands before it and is not known yet: end_tag() inserts it. Values are small and rare.
size_t MessageWriter::begin_tag(uint32_t tag) {
  own_.unsigned_varint(tag);
  return own_.size();
}

void MessageWriter::end_tag(size_t begin) {
  CHECK(references_.empty() || references_.back().at <= begin, "records inside a tagged field");
  ByteWriter value;
  value.raw(own_.view().subspan(begin));
  own_.truncate(begin);
  own_.prefixed(value.view());
}

std::vector<Slice> MessageWriter::finish() {
  Slice own = Slice::take(own_.take());
  std::vector<Slice> slices;
  slices.reserve(2 * references_.size() + 1);
  size_t at = 0;
  for (Reference& reference : references_) {
    if (reference.at > at) slices.push_back(own.sub(at, reference.at - at));
    slices.push_back(std::move(reference.slice));
    at = reference.at;
  }
  if (own.size() > at) slices.push_back(own.sub(at, own.size() - at));
  references_.clear();
  referenced_ = 0;
  return slices;
}

Slice MessageWriter::finish_joined() {
  SliceChain chain;
  for (Slice& slice : finish()) chain.append(std::move(slice));
  return chain.joined();
}

}  // namespace varve::protocol
