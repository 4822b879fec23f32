// Snapshots in the object store: writing, verifying, finding, loading and deleting (docs/formats/snapshot.md).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "metadata/client/metadata_client.h"
#include "metadata/state/state.h"

namespace varve::metadata {

// The manifest of a snapshot: which chunks make up the state at a position. Bytes: docs/formats/snapshot_manifest.md.
struct SnapshotManifest {
  struct Chunk {
    std::string key;
    uint64_t bytes = 0;
    uint64_t hash = 0;
  };
  LogIdentity log;
  LogPosition position;
  // Whose chunks this one reuses; 0: nobody's.
  LogPosition predecessor;
  uint64_t state_hash = 0;
  std::vector<Chunk> chunks;
};

// Keys of a manifest and of a chunk, docs/formats/keys.md. The chunk's position is that of the snapshot which first
// wrote it, as its place in it.
std::string manifest_key(std::string_view prefix, Uuid log, LogPosition position, Nonce nonce);
struct ChunkName {
  FenceEpoch epoch;
  LogPosition position;
  Nonce nonce;
  size_t index = 0;
  uint64_t hash = 0;
};
std::string chunk_key(std::string_view prefix, Uuid log, const ChunkName& name);

std::vector<uint8_t> encode_manifest(const SnapshotManifest& manifest);
Result<SnapshotManifest, EntryError> decode_manifest(ByteView bytes);

struct FoundSnapshot {
  std::string key;
  LogPosition position;
  Nonce nonce;  // of the broker that wrote it
};
// What the keys of all logs' manifests begin with.
std::string manifests_prefix(std::string_view prefix);
// The inverse of manifest_key(), for any log. nullopt for any other key: anybody may put anything into the bucket.
std::optional<FoundSnapshot> parse_manifest_key(std::string_view prefix, std::string key);

enum class SnapshotErrc : uint8_t {
  kStore,    // the store gave no answer, or no room: try again later
  kDamaged,  // the objects are there and are not what they should be, or one is gone: use another snapshot
};
using SnapshotError = ErrorOf<SnapshotErrc>;
template <class T>
using SnapshotResult = Result<T, SnapshotError>;

// One broker's access to the snapshots of one log. Any io task; holds nothing but its parameters and the manifests
// whose chunks the next one may reuse. A load may come while another call waits for the store; write() and
// delete_unretained() come one after another.
class SnapshotStore {
 public:
  SnapshotStore(runtime::Runtime& runtime, object_store::ObjectStore& store, std::string prefix);

  void set_log(LogIdentity log) { log_ = log; }

  // Uploads what changed since the newest manifest that this broker wrote or loaded (if that is among `retained`, or
  // else the one that it reuses; else everything), then the manifest, then reads all of it back and compares. Only what it returns may be named in a SnapshotTaken entry.
  runtime::Task<SnapshotResult<SnapshotManifest>> write(LogPosition position, Nonce nonce, FenceEpoch epoch,
                                                        uint64_t state_hash, std::vector<Slice> chunks,
                                                        std::vector<LogPosition> retained);
  // Manifests of this log id, newest first, by their names.
  runtime::Task<SnapshotResult<std::vector<FoundSnapshot>>> find();
  runtime::Task<SnapshotResult<State>> load(FoundSnapshot snapshot, PlantedBugs bugs);
  // Deletes manifests that are not in `keep` and older than the newest kept, then chunks that no manifest left
  // names. What no nonce of `registered` wrote stays, whatever it is (invariant 6).
  runtime::Task<SnapshotResult<void>> delete_unretained(std::vector<LogPosition> keep,
                                                        std::set<Nonce> registered);

 private:
  std::string manifest_prefix() const;
  std::string chunk_prefix() const;
  runtime::Task<SnapshotResult<std::vector<std::string>>> list_all(std::string key_prefix);
  runtime::Task<SnapshotResult<SnapshotManifest>> read_manifest(std::string key);

  runtime::Runtime& runtime_;
  object_store::ObjectStore& store_;
  const std::string prefix_;
  LogIdentity log_;
  std::optional<SnapshotManifest> newest_;
  // Whose chunks the newest reuses: it stays the predecessor of the next if the newest is not recorded.
  std::optional<SnapshotManifest> base_;
};

}  // namespace varve::metadata
