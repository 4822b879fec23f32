// Which chunks of a state changed since they were hashed, and the cut that is being taken of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "metadata/state/chunk_key.h"
#include "metadata/state/state.h"

namespace varve::metadata {

struct StateData;

// A cut that is being taken.
struct CutInProgress {
  StateCut result;
  CutKind kind = CutKind::kHash;
  std::vector<uint8_t> general_fields;  // the general chunk, but for its count of the others
  std::vector<uint8_t> brokers;
  std::set<ChunkKey> pending;
  uint64_t other_chunks = 0;
  uint64_t hash_sum = 0;  // of the other chunks
  std::map<ChunkKey, Slice> chunks;
};

// A cut takes the chunks as they are at one position while apply goes on: a chunk that is about to change is encoded
// first, or, of a block of partitions, the one partition that is (copying all that one commit touches would take as
// long as the whole cut). One cut at a time. Owned by one state; not thread-safe.
class ChunkChanges {
 public:
  explicit ChunkChanges(StateData& state) : state_(&state) {}

  // Before anything that this chunk is made from changes.
  void touch(const ChunkKey& key) {
    if (cut_) save(key);
    dirty_.insert(key);
  }
  // As above, if the cut has what it needs of this chunk already.
  void mark(const ChunkKey& key) { dirty_.insert(key); }
  // The bytes of one partition within its chunk; nothing if it does not live.
  std::vector<uint8_t> encode_part(PartitionHandle handle) const;

  // Completes the encoding of a cut, then hashes all that changed.
  void rehash();

  bool has_cut() const { return cut_.has_value(); }
  void begin_cut(CutKind kind);
  // As the methods of State.
  bool step_cut(size_t bytes);
  StateCut end_cut();
  void drop_cut();

 private:
  // Encodes the chunk for the cut, if that still waits for it; gives its bytes.
  size_t save(const ChunkKey& key);
  // Replaces the chunk's hash; gives what that adds to the sum.
  uint64_t note_hash(const ChunkKey& key, ByteView bytes);

  StateData* state_;
  std::set<ChunkKey> dirty_;
  std::optional<CutInProgress> cut_;
};

}  // namespace varve::metadata
