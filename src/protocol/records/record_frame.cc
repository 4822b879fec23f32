#include "protocol/records/record_frame.h"

namespace varve::protocol::records {
namespace {

// A record's own bytes, which nothing inside may pass.
class RecordBounds {
 public:
  RecordBounds(PayloadReader& reader, int32_t length)
      : reader_(reader), end_(reader.position() + static_cast<uint64_t>(length)) {}

  uint64_t left() const { return reader_.position() <= end_ ? end_ - reader_.position() : 0; }
  bool at_end() const { return reader_.position() == end_; }

  // Skips bytes with a length before them. Returns the length; -1 is null, if allowed.
  int32_t skip_prefixed(bool nullable) {
    int32_t size = reader_.varint32();
    if (size < (nullable ? -1 : 0) || (size > 0 && static_cast<uint64_t>(size) > left())) {
      reader_.fail(RecordErrc::kCorruptRecord, "a length that does not fit its record");
    } else if (size > 0) {
      reader_.skip(static_cast<uint64_t>(size));
    }
    return size;
  }

 private:
  PayloadReader& reader_;
  const uint64_t end_;
};

}  // namespace

RecordFrame read_frame(PayloadReader& reader) {
  RecordFrame frame;
  int32_t length = reader.varint32();
  if (length < 0) {
    reader.fail(RecordErrc::kCorruptRecord, "negative record length");
    return frame;
  }
  RecordBounds bounds(reader, length);
  reader.u8();  // attributes, unused
  frame.timestamp_delta = reader.varint64();
  frame.offset_delta = reader.varint32();
  frame.has_key = bounds.skip_prefixed(true) >= 0;
  bounds.skip_prefixed(true);
  int32_t headers = reader.varint32();
  if (headers < 0 || static_cast<uint64_t>(headers) > bounds.left()) {
    reader.fail(RecordErrc::kCorruptRecord, "a header count that does not fit its record");
  }
  for (int32_t i = 0; i < headers && reader.ok(); ++i) {
    bounds.skip_prefixed(false);
    bounds.skip_prefixed(true);
  }
  if (reader.ok() && !bounds.at_end()) {
    reader.fail(RecordErrc::kCorruptRecord, "a record longer or shorter than it says");
  }
  return frame;
}

}  // namespace varve::protocol::records
