#include "metadata/state/chunk_changes.h"

#include "base/hash.h"
#include "metadata/state/chunk_codec.h"
#include "metadata/state/state_data.h"

namespace varve::metadata {

std::vector<uint8_t> ChunkChanges::encode_part(PartitionHandle handle) const {
  return encode_partition(*state_, handle);
}

uint64_t ChunkChanges::note_hash(const ChunkKey& key, ByteView bytes) {
  auto known = state_->chunk_hashes.find(key);
  uint64_t before = known == state_->chunk_hashes.end() ? 0 : known->second;
  uint64_t after = 0;
  if (!bytes.empty()) {
    after = hash64(bytes);
    state_->chunk_hashes.insert_or_assign(key, after);
  } else if (known != state_->chunk_hashes.end()) {
    state_->chunk_hashes.erase(known);
  }
  state_->chunk_hash_sum += after - before;
  return after - before;
}

size_t ChunkChanges::save(const ChunkKey& key) {
  if (cut_->pending.erase(key) == 0) return 0;
  std::vector<uint8_t> bytes = encode_chunk(*state_, key);
  if (key.kind == ChunkKind::kPartitions) state_->partitions.end_cut(key.first);
  size_t chunks_before = state_->chunk_hashes.size();
  cut_->hash_sum += note_hash(key, bytes);
  cut_->other_chunks += state_->chunk_hashes.size() - chunks_before;
  size_t size = bytes.size();
  if (cut_->kind == CutKind::kChunks && size > 0) cut_->chunks.emplace(key, Slice::take(std::move(bytes)));
  return size;
}

void ChunkChanges::rehash() {
  while (cut_ && !cut_->pending.empty()) save(ChunkKey(*cut_->pending.begin()));
  for (const ChunkKey& key : dirty_) {
    note_hash(key, encode_chunk(*state_, key));
    if (key.kind == ChunkKind::kPartitions) state_->partitions.mark_clean(key.first);
  }
  dirty_.clear();
}

void ChunkChanges::begin_cut(CutKind kind) {
  CHECK(!cut_, "one cut at a time");
  cut_.emplace();
  cut_->kind = kind;
  cut_->result.position = state_->position;
  cut_->result.fence_epoch = state_->fence_epoch;
  cut_->general_fields = encode_general_fields(*state_);
  cut_->brokers = encode_chunk(*state_, {ChunkKind::kBrokers});
  cut_->other_chunks = state_->chunk_hashes.size();
  cut_->hash_sum = state_->chunk_hash_sum;
  cut_->pending = std::exchange(dirty_, {});
  if (kind == CutKind::kChunks) {
    for (const auto& [key, hash] : state_->chunk_hashes) cut_->pending.insert(key);
  }
  for (const ChunkKey& key : cut_->pending) {
    if (key.kind == ChunkKind::kPartitions) state_->partitions.begin_cut(key.first);
  }
}

bool ChunkChanges::step_cut(size_t bytes) {
  CHECK(cut_.has_value());
  size_t encoded = 0;
  while (!cut_->pending.empty() && encoded < bytes) encoded += save(ChunkKey(*cut_->pending.begin()));
  return cut_->pending.empty();
}

StateCut ChunkChanges::end_cut() {
  CHECK(cut_ && cut_->pending.empty());
  StateCut result = std::move(cut_->result);
  std::vector<uint8_t> general = encode_general(cut_->other_chunks, cut_->general_fields);
  result.hash = cut_->hash_sum + hash64(general) + hash64(cut_->brokers);
  if (cut_->kind == CutKind::kChunks) {
    result.chunks.reserve(2 + cut_->chunks.size());
    result.chunks.push_back(Slice::take(std::move(general)));
    result.chunks.push_back(Slice::take(std::move(cut_->brokers)));
    for (auto& [key, chunk] : cut_->chunks) result.chunks.push_back(std::move(chunk));
  }
  cut_.reset();
  return result;
}

void ChunkChanges::drop_cut() {
  CHECK(cut_.has_value());
  for (const ChunkKey& key : cut_->pending) {
    if (key.kind == ChunkKind::kPartitions) state_->partitions.end_cut(key.first);
    dirty_.insert(key);
  }
  cut_.reset();
}

}  // namespace varve::metadata
