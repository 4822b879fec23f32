// Finding a record by its time inside a batch, for ListOffsets.
#pragma once

#include <optional>

#include "protocol/records/payload_reader.h"

namespace varve::protocol::records {

struct OffsetAndTimestamp {
  Offset offset;
  WallTime timestamp;

  bool operator==(const OffsetAndTimestamp&) const = default;
};

// The first record whose timestamp is `at_least` or later, by offset; nullopt: none. With the batch's own maximum
// timestamp it gives the answer to ListOffsets -3. In a LogAppendTime batch every record has the maximum timestamp:
// stamp it first. Walks at most `output_bytes_max` bytes of records. Errors as RecordIterator's.
Result<std::optional<OffsetAndTimestamp>, RecordError> find_first_at_or_after(const BatchView& batch,
                                                                              WallTime at_least,
                                                                              DecodeScratch& scratch,
                                                                              size_t output_bytes_max);

}  // namespace varve::protocol::records
