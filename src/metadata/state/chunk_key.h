// How the state is cut into chunks: the unit of hashing and of what a snapshot writes anew. The cut never
// moves as the state grows, so a chunk whose part of the state did not change keeps its bytes.
#pragma once

#include <compare>
#include <cstdint>

#include "base/ids.h"

namespace varve::metadata {

struct ObjectId;

enum class ChunkKind : uint8_t {
  kGeneral = 1,     // one: counters, limits, snapshots
  kBrokers = 2,     // one: all incarnations
  kObjects = 3,     // first: incarnation; second: number / kObjectsPerChunk
  kPartitions = 4,  // first: handle / kPartitionsPerBlock; topics lie with their first partition
  kHistory = 5,     // first: the block; second: page number / kPagesPerHistoryChunk
  kGroups = 6,      // first: bucket_of() the group's id
};

// Chosen so that a full chunk of each kind has 1-4 MiB at about 12 bytes a run and 30 an object.
inline constexpr uint64_t kObjectsPerChunk = 32768;
inline constexpr uint32_t kPartitionsPerBlock = 1024;
inline constexpr uint32_t kRunsPerPage = 256;
inline constexpr uint64_t kPagesPerHistoryChunk = 512;
inline constexpr uint64_t kGroupBuckets = 256;

struct ChunkKey {
  ChunkKind kind = ChunkKind::kGeneral;
  uint64_t first = 0;
  uint64_t second = 0;

  auto operator<=>(const ChunkKey&) const = default;
};

}  // namespace varve::metadata
