#include "protocol/records/lookup.h"

#include "protocol/records/record_frame.h"

namespace varve::protocol::records {

Result<std::optional<OffsetAndTimestamp>, RecordError> find_first_at_or_after(const BatchView& batch,
                                                                              WallTime at_least,
                                                                              DecodeScratch& scratch,
                                                                              size_t output_bytes_max) {
  const BatchHeader& header = batch.header();
  if (!header.codec().has_value()) return refuse(RecordErrc::kCodec, "unknown codec");
  std::optional<OffsetAndTimestamp> found;
  if (header.record_count <= 0 || header.max_timestamp < at_least) return found;
  uint64_t output_bytes = 0;
  auto wrong =
      for_each_frame(batch, scratch, output_bytes_max, output_bytes, [&](int32_t, const RecordFrame& frame) {
        WallTime timestamp =
            header.log_append_time() ? header.max_timestamp : frame.timestamp(header.base_timestamp);
        if (timestamp < at_least) return true;
        found = OffsetAndTimestamp{header.base_offset.plus(frame.offset_delta), timestamp};
        return false;
      });
  if (wrong) return std::unexpected(std::move(*wrong));
  return found;
}

}  // namespace varve::protocol::records
