// The framing of one record, walked without keeping key, value or headers.
#pragma once

#include <cstdint>

#include "protocol/records/payload_reader.h"

namespace varve::protocol::records {

struct RecordFrame {
  int64_t timestamp_delta = 0;
  int32_t offset_delta = 0;
  bool has_key = false;

  // Wraps as Kafka's addition does.
  WallTime timestamp(WallTime base) const {
    return WallTime(
        static_cast<int64_t>(static_cast<uint64_t>(base.value()) + static_cast<uint64_t>(timestamp_delta)));
  }
};

// Walks over the next record, each length checked against the record's own. On a framing error reader.ok() turns
// false (kCorruptRecord) and the frame means nothing.
RecordFrame read_frame(PayloadReader& reader);

// Frames of all records of a batch: `visit(index, frame)` returns false to stop early. Checks that exactly the
// header's number of records is there, unless stopped. nullopt: no error.
template <class Visit>
std::optional<RecordError> for_each_frame(const BatchView& batch, DecodeScratch& scratch,
                                          size_t output_bytes_max, uint64_t& output_bytes, Visit visit) {
  PayloadReader reader(batch, scratch, output_bytes_max);
  for (int32_t index = 0; index < batch.header().record_count; ++index) {
    RecordFrame frame = read_frame(reader);
    if (!reader.ok()) return reader.error();
    if (!visit(index, frame)) return std::nullopt;
  }
  if (!reader.at_end()) reader.fail(RecordErrc::kCorruptRecord, "bytes behind the last record");
  output_bytes = reader.position();
  if (!reader.ok()) return reader.error();
  return std::nullopt;
}

}  // namespace varve::protocol::records
