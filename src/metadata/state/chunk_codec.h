// The bytes of the state's chunks, version 1: docs/formats/snapshot.md.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "metadata/state/state_data.h"

namespace varve::metadata {

inline constexpr uint8_t kChunkVersion = 1;
inline constexpr size_t kChunkChecksumBytes = 4;

// Flags of a run in a chunk, above those of CompactRun.
inline constexpr uint8_t kSameObject = 1 << 3;     // as the run before
inline constexpr uint8_t kOffsetFollows = 1 << 4;  // else the base offset is where the run before ends
inline constexpr uint8_t kKnownRunFlags = (1 << 5) - 1;

// Flags of an object.
inline constexpr uint8_t kMayHaveReaders = 1 << 0;
inline constexpr uint8_t kPending = 1 << 1;
inline constexpr uint8_t kNeedsGrace = 1 << 2;
inline constexpr uint8_t kKnownObjectFlags = (1 << 3) - 1;

// Flags of a topic.
inline constexpr uint8_t kTopicIsAlive = 1 << 0;
inline constexpr uint8_t kConfigsVersionFollows =
    1 << 1;  // else it is 0: the configs are those it was made with

// What a run in a chunk is told relative to; starts afresh with each list of runs.
struct ChunkRunContext {
  ObjectId object;
  int64_t end_offset = 0;
  int64_t max_timestamp = 0;
};

// Whether the general chunk says anything of groups: a state that has never had any has the bytes that it had before
// there were groups, so that snapshots and hashes of that time are read and compared as ever.
inline bool has_group_fields(const StateData& state) {
  return state.group_limits != SetGroupLimits() || state.groups.newest_version() != 0;
}

// One chunk, or nothing if no part of the state falls into it. The general chunk counts state.chunk_hashes, so
// those must be up to date.
std::vector<uint8_t> encode_chunk(const StateData& state, const ChunkKey& key);
// One partition's part of its chunk; nothing if it does not live.
std::vector<uint8_t> encode_partition(const StateData& state, PartitionHandle handle);
// The general chunk in two steps, for the count of the other chunks may be known later than the rest.
std::vector<uint8_t> encode_general_fields(const StateData& state);
std::vector<uint8_t> encode_general(uint64_t other_chunks, ByteView fields);

// Fills an empty state. The chunks must be all of one state, in order.
Result<void, EntryError> decode_chunks(StateData& state, const std::vector<Slice>& chunks);

}  // namespace varve::metadata
