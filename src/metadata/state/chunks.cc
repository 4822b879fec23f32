// The state as chunks, and its hash.
#include "base/hash.h"
#include "metadata/state/chunk_codec.h"
#include "metadata/state/state_impl.h"

namespace varve::metadata {
namespace {

constexpr ChunkKey kGeneralChunk{ChunkKind::kGeneral};
constexpr ChunkKey kBrokersChunk{ChunkKind::kBrokers};

// Hashes what changed since the last time.
void refresh_hashes(StateData& state) {
  for (const ChunkKey& key : state.dirty) {
    auto known = state.chunk_hashes.find(key);
    if (known != state.chunk_hashes.end()) state.chunk_hash_sum -= known->second;
    std::vector<uint8_t> bytes = encode_chunk(state, key);
    if (key.kind == ChunkKind::kPartitions) state.partitions.mark_clean(key.first);
    if (bytes.empty()) {
      if (known != state.chunk_hashes.end()) state.chunk_hashes.erase(known);
      continue;
    }
    uint64_t hash = hash64(bytes);
    state.chunk_hash_sum += hash;
    state.chunk_hashes[key] = hash;
  }
  state.dirty.clear();
}

}  // namespace

uint64_t State::hash() const {
  refresh_hashes(*impl_);
  return impl_->chunk_hash_sum + hash64(encode_chunk(*impl_, kGeneralChunk)) +
         hash64(encode_chunk(*impl_, kBrokersChunk));
}

std::vector<Slice> State::to_chunks() const {
  refresh_hashes(*impl_);
  std::vector<Slice> chunks;
  chunks.reserve(2 + impl_->chunk_hashes.size());
  chunks.push_back(Slice::take(encode_chunk(*impl_, kGeneralChunk)));
  chunks.push_back(Slice::take(encode_chunk(*impl_, kBrokersChunk)));
  for (const auto& [key, hash] : impl_->chunk_hashes) {
    chunks.push_back(Slice::take(encode_chunk(*impl_, key)));
  }
  return chunks;
}

Result<State, EntryError> State::from_chunks(const std::vector<Slice>& chunks, PlantedBugs bugs) {
  State state(bugs);
  auto decoded = decode_chunks(*state.impl_, chunks);
  if (!decoded) return pass_error(decoded);
  return state;
}

}  // namespace varve::metadata
