// The bytes of an entry, version 1: docs/formats/entry.md. What encoding and decoding share.
#pragma once

#include "metadata/state/entry.h"

namespace varve::metadata {

inline constexpr uint8_t kEntryVersion = 1;
inline constexpr size_t kEntryChecksumBytes = 4;

// Flags of a run in an entry.
struct EntryRunFlags {
  static constexpr uint8_t kTransactional = 1 << 0;
  static constexpr uint8_t kLogAppendTime = 1 << 1;
  static constexpr uint8_t kProducerList = 1 << 2;  // a list of batches with producer ids follows
  static constexpr uint8_t kOneProducer = 1 << 3;   // one batch, of the run's own bytes and records, follows
  static constexpr uint8_t kIndexFollows = 1 << 4;  // else one more than the index before
  static constexpr uint8_t kPositionFollows = 1 << 5;  // else where the run before ends
  static constexpr uint8_t kKnown = (1 << 6) - 1;
};

// Flags of a member in SaveGroup.
struct EntryMemberFlags {
  static constexpr uint8_t kDetails = 1 << 0;
  static constexpr uint8_t kAssignment = 1 << 1;
  static constexpr uint8_t kKnown = (1 << 2) - 1;
};

// What a run is told relative to; starts afresh with each CommitObject.
struct EntryRunContext {
  uint32_t next_index = 0;
  uint64_t next_position = 0;
  uint32_t partition = 0;
  int64_t max_timestamp;  // starts as the entry's time
  int64_t producer_id = 0;
};

}  // namespace varve::metadata
