#include "sim/checkers/snapshot_objects.h"

#include "metadata/client/snapshot_store.h"

namespace varve::sim {
namespace {

std::optional<std::vector<Slice>> chunks_of(const SimObjectStore& store,
                                            const metadata::SnapshotManifest& manifest) {
  std::vector<Slice> chunks;
  for (const auto& chunk : manifest.chunks) {
    auto object = store.objects().find(chunk.key);
    if (object == store.objects().end()) return std::nullopt;
    chunks.push_back(object->second.bytes);
  }
  return chunks;
}

}  // namespace

std::optional<std::vector<Slice>> find_snapshot(const SimObjectStore& store, LogPosition position) {
  std::string name = fmt::format("/{:016x}-", position.value());
  for (const auto& [key, object] : store.objects()) {
    if (key.find("/_log/snapshots/") == std::string::npos || key.find(name) == std::string::npos) continue;
    auto manifest = metadata::decode_manifest(object.bytes.view());
    if (!manifest || manifest->position != position) continue;
    if (auto chunks = chunks_of(store, *manifest)) return chunks;
  }
  return std::nullopt;
}

}  // namespace varve::sim
