// Why a record batch is refused or cannot be read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace varve::protocol::records {

// The comment names the Kafka error that Kafka 4's broker answers a Produce with (KafkaApis, UnifiedLog,
// LogValidator); the mapping itself is in broker/handlers.
enum class RecordErrc : uint8_t {
  kNoBatch,               // less than one whole batch: INVALID_RECORD
  kMoreThanOneBatch,      // INVALID_RECORD
  kOldFormat,             // magic 0 or 1: INVALID_RECORD
  kCorruptFrame,          // a length or a magic that cannot be: CORRUPT_MESSAGE
  kCorruptChecksum,       // CRC-32C: CORRUPT_MESSAGE
  kBatchTooLarge,         // max.message.bytes: MESSAGE_TOO_LARGE
  kBaseOffset,            // not 0: INVALID_RECORD
  kRecordCount,           // none, too many, or not what the last offset delta says: INVALID_RECORD
  kControlBatch,          // from a client: INVALID_RECORD
  kSequence,              // negative although there is a producer id: INVALID_RECORD
  kCodec,                 // unknown, or zstd before Produce 7: UNSUPPORTED_COMPRESSION_TYPE
  kCorruptCompression,    // the codec cannot read it: INVALID_RECORD (Kafka: UNKNOWN_SERVER_ERROR)
  kDecompressedTooLarge,  // MESSAGE_TOO_LARGE (Kafka has no such limit)
  kCorruptRecord,         // framing of a record, or bytes behind the last: INVALID_RECORD
  kOffsetDelta,           // not 0, 1, 2...: INVALID_RECORD (Kafka keeps or renumbers them)
  kMissingKey,            // in a compacted topic, see bad_records: INVALID_RECORD
  kTimestamp,             // out of range or of a type, see bad_records: INVALID_TIMESTAMP
  kInternal,              // no memory for a codec: retriable
};

// For record_errors in a Produce reply (version 8 and above).
struct BadRecord {
  int32_t batch_index;
  RecordErrc code;  // kMissingKey or kTimestamp

  bool operator==(const BadRecord&) const = default;
};

struct RecordError {
  RecordErrc code;
  std::string message;
  // In rising order, at most Limits::record_errors_listed_max. Only of kMissingKey and kTimestamp; as in Kafka one
  // bad timestamp makes the whole batch's code kTimestamp.
  std::vector<BadRecord> bad_records = {};
};

inline std::unexpected<RecordError> refuse(RecordErrc code, std::string message) {
  return std::unexpected(RecordError{code, std::move(message)});
}

}  // namespace varve::protocol::records
