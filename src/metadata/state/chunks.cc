// The state as chunks, and its hash.
#include "base/hash.h"
#include "metadata/state/chunk_codec.h"
#include "metadata/state/state_impl.h"

namespace varve::metadata {
namespace {

constexpr ChunkKey kGeneralChunk{ChunkKind::kGeneral};
constexpr ChunkKey kBrokersChunk{ChunkKind::kBrokers};

}  // namespace

uint64_t State::hash() const {
  impl_->changes.rehash();
  return impl_->chunk_hash_sum + hash64(encode_chunk(*impl_, kGeneralChunk)) +
         hash64(encode_chunk(*impl_, kBrokersChunk));
}

std::vector<Slice> State::to_chunks() const {
  impl_->changes.rehash();
  std::vector<Slice> chunks;
  chunks.reserve(2 + impl_->chunk_hashes.size());
  chunks.push_back(Slice::take(encode_chunk(*impl_, kGeneralChunk)));
  chunks.push_back(Slice::take(encode_chunk(*impl_, kBrokersChunk)));
  for (const auto& [key, hash] : impl_->chunk_hashes) {
    chunks.push_back(Slice::take(encode_chunk(*impl_, key)));
  }
  return chunks;
}

void State::begin_cut(CutKind kind) { impl_->changes.begin_cut(kind); }
bool State::has_cut() const { return impl_->changes.has_cut(); }
bool State::step_cut(size_t bytes) { return impl_->changes.step_cut(bytes); }
StateCut State::end_cut() { return impl_->changes.end_cut(); }
void State::drop_cut() { impl_->changes.drop_cut(); }

Result<State, EntryError> State::from_chunks(const std::vector<Slice>& chunks, PlantedBugs bugs) {
  State state(bugs);
  auto decoded = decode_chunks(*state.impl_, chunks);
  if (!decoded) return pass_error(decoded);
  return state;
}

}  // namespace varve::metadata
