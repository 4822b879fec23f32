// Records of a batch, one after another, as views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "protocol/records/payload_reader.h"

namespace varve::protocol::records {

struct HeaderView {
  std::string_view key;
  std::optional<ByteView> value;  // nullopt: null
};

// A record's headers, already checked: walking them cannot fail. for (HeaderView header : record.headers).
class HeadersView {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = HeaderView;
    using difference_type = ptrdiff_t;
    using pointer = const HeaderView*;
    using reference = const HeaderView&;

    Iterator(ByteView bytes, size_t left);
    const HeaderView& operator*() const { return current_; }
    const HeaderView* operator->() const { return &current_; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return left_ == other.left_; }

   private:
    void parse();

    ByteReader reader_;
    size_t left_;
    HeaderView current_;
  };

  HeadersView() = default;
  HeadersView(ByteView bytes, size_t count) : bytes_(bytes), count_(count) {}

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Iterator begin() const { return Iterator(bytes_, count_); }
  Iterator end() const { return Iterator({}, 0); }

 private:
  ByteView bytes_;
  size_t count_ = 0;
};

struct RecordView {
  Offset offset{0};
  WallTime timestamp{0};
  std::optional<ByteView> key;  // nullopt: null
  std::optional<ByteView> value;
  HeadersView headers;
};

// Walks a batch whose checksum was checked, or not: it refuses what it cannot read and never reads past the end.
// Lives on the stack; the batch's bytes and `scratch` outlive it. One record at most is held decompressed in one
// piece, nothing is allocated per record.
class RecordIterator {
 public:
  // At most `output_bytes_max` bytes of records are read (Limits::decompressed_bytes_max).
  RecordIterator(const BatchView& batch, DecodeScratch& scratch, size_t output_bytes_max);

  // The next record, valid until the next call; nullopt after the last, and an error if anything follows it.
  // Errors: kCodec, kRecordCount, kCorruptCompression, kDecompressedTooLarge, kCorruptRecord, kInternal; they
  // repeat. Any offset deltas are accepted: a compacted batch has gaps.
  Result<std::optional<RecordView>, RecordError> next();

 private:
  BatchHeader header_;
  std::optional<PayloadReader> reader_;  // nullopt: unknown codec
  int32_t read_ = 0;
};

}  // namespace varve::protocol::records
