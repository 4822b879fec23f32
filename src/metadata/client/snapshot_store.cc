#include "metadata/client/snapshot_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <unordered_map>

#include "base/crc32c.h"
#include "base/hash.h"

namespace varve::metadata {
namespace {

constexpr uint32_t kManifestMagic = 0x56534e50;  // "VSNP"
constexpr uint8_t kManifestVersion = 1;
constexpr uint16_t kShard = 0;              // reserved: one log has one shard
constexpr size_t kMinChunkEntryBytes = 18;  // a key of one character, its length, bytes and hash
constexpr size_t kDeletesPerCall = 1000;

std::unexpected<SnapshotError> store_failed(std::string_view what, const object_store::StoreError& error) {
  return fail(SnapshotErrc::kStore, fmt::format("{}: {}", what, error.message));
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The numbers in `name`: hexadecimal, of these widths, joined by '-'; nullopt for any other name.
template <size_t kFields>
std::optional<std::array<uint64_t, kFields>> numbers_in(std::string_view name,
                                                        const std::array<size_t, kFields>& widths) {
  std::array<uint64_t, kFields> numbers{};
  size_t at = 0;
  for (size_t i = 0; i < kFields; ++i) {
    if (i > 0 && (at >= name.size() || name[at++] != '-')) return std::nullopt;
    std::string_view field = name.substr(at, widths[i]);
    if (field.size() != widths[i] || !is_hex(field)) return std::nullopt;
    std::from_chars(field.data(), field.data() + field.size(), numbers[i], 16);
    at += widths[i];
  }
  return at == name.size() ? std::optional(numbers) : std::nullopt;
}

struct PositionAndNonce {
  LogPosition position;
  Nonce nonce;
};

// Of a chunk, by the last part of its key: epoch, position, nonce, index, hash.
std::optional<PositionAndNonce> chunk_name(std::string_view name) {
  auto numbers = numbers_in<5>(name, {16, 16, 16, 6, 16});
  if (!numbers) return std::nullopt;
  return PositionAndNonce{LogPosition((*numbers)[1]), Nonce((*numbers)[2])};
}

std::string manifests_of(std::string_view prefix, const Uuid& log) {
  return fmt::format("{}{}/", manifests_prefix(prefix), to_hex(log.bytes));
}

std::string chunks_of(std::string_view prefix, const Uuid& log) {
  return fmt::format("{}/_log/chunks/{}/", prefix, to_hex(log.bytes));
}

}  // namespace

std::string manifest_key(std::string_view prefix, Uuid log, LogPosition position, Nonce nonce) {
  return fmt::format("{}{:016x}-{:016x}", manifests_of(prefix, log), position.value(), nonce.value());
}

std::string manifests_prefix(std::string_view prefix) { return fmt::format("{}/_log/snapshots/", prefix); }

std::optional<FoundSnapshot> parse_manifest_key(std::string_view prefix, std::string key) {
  std::string start = manifests_prefix(prefix);
  if (!key.starts_with(start)) return std::nullopt;
  std::string_view rest = std::string_view(key).substr(start.size());
  std::string_view log = rest.substr(0, rest.find('/'));
  if (log.size() != 2 * sizeof(Uuid::bytes) || !is_hex(log) || log.size() == rest.size()) return std::nullopt;
  auto numbers = numbers_in<2>(rest.substr(log.size() + 1), {16, 16});
  if (!numbers) return std::nullopt;
  return FoundSnapshot{std::move(key), LogPosition((*numbers)[0]), Nonce((*numbers)[1])};
}

std::string chunk_key(std::string_view prefix, Uuid log, const ChunkName& name) {
  return fmt::format("{}{:016x}-{:016x}-{:016x}-{:06x}-{:016x}", chunks_of(prefix, log), name.epoch.value(),
                     name.position.value(), name.nonce.value(), name.index, name.hash);
}

std::vector<uint8_t> encode_manifest(const SnapshotManifest& manifest) {
  ByteWriter out;
  out.be(kManifestMagic);
  out.u8(kManifestVersion);
  out.be(kShard);
  out.raw(manifest.log.id.bytes);
  out.be(manifest.log.generation.value());
  out.be(manifest.position.value());
  out.be(manifest.predecessor.value());
  out.be(manifest.state_hash);
  out.unsigned_varint(manifest.chunks.size());
  for (const auto& chunk : manifest.chunks) {
    out.prefixed(chunk.key);
    out.be(chunk.bytes);
    out.be(chunk.hash);
  }
  out.be(crc32c(out.view()));
  return out.take();
}

Result<SnapshotManifest, EntryError> decode_manifest(ByteView bytes) {
  if (bytes.size() < 4 || crc32c(bytes.first(bytes.size() - 4)) != load_be<uint32_t>(bytes.last(4).data())) {
    return fail(EntryErrc::kBadChecksum, "the manifest's checksum does not match");
  }
  ByteReader in(bytes.first(bytes.size() - 4));
  SnapshotManifest manifest;
  if (in.be<uint32_t>() != kManifestMagic) return fail(EntryErrc::kMalformed, "not a snapshot manifest");
  if (in.u8() != kManifestVersion)
    return fail(EntryErrc::kUnknownVersion, "a manifest version this program is too old for");
  if (in.be<uint16_t>() != kShard) return fail(EntryErrc::kMalformed, "a manifest of another shard");
  ByteView id = in.raw(manifest.log.id.bytes.size());
  if (in.ok()) std::copy(id.begin(), id.end(), manifest.log.id.bytes.begin());
  manifest.log.generation = LogGeneration(in.be<uint32_t>());
  manifest.position = LogPosition(in.be<uint64_t>());
  manifest.predecessor = LogPosition(in.be<uint64_t>());
  manifest.state_hash = in.be<uint64_t>();
  manifest.chunks.resize(in.count(kMinChunkEntryBytes));
  for (auto& chunk : manifest.chunks) {
    chunk.key = as_text(in.prefixed());
    if (in.ok() && chunk.key.empty()) return fail(EntryErrc::kMalformed, "a chunk without a key");
    chunk.bytes = in.be<uint64_t>();
    chunk.hash = in.be<uint64_t>();
  }
  if (!in.at_end()) return fail(EntryErrc::kMalformed, "the manifest is cut short or too long");
  return manifest;
}

SnapshotStore::SnapshotStore(runtime::Runtime& runtime, object_store::ObjectStore& store, std::string prefix)
    : runtime_(runtime), store_(store), prefix_(std::move(prefix)) {}

std::string SnapshotStore::manifest_prefix() const { return manifests_of(prefix_, log_.id); }
std::string SnapshotStore::chunk_prefix() const { return chunks_of(prefix_, log_.id); }

runtime::Task<SnapshotResult<SnapshotManifest>> SnapshotStore::write(LogPosition position, Nonce nonce,
                                                                     FenceEpoch epoch, uint64_t state_hash,
                                                                     std::vector<Slice> chunks,
                                                                     std::vector<LogPosition> retained) {
  // A copy: a reload may replace the newest one while this waits for the store.
  SnapshotManifest base;
  for (const auto* candidate : {&base_, &newest_}) {
    bool is_retained = *candidate && std::ranges::find(retained, (*candidate)->position) != retained.end();
    if (is_retained) base = **candidate;
  }
  std::unordered_map<uint64_t, const SnapshotManifest::Chunk*> reusable;
  for (const auto& chunk : base.chunks) reusable.emplace(chunk.hash, &chunk);
  SnapshotManifest manifest{log_, position, LogPosition(0), state_hash, {}};
  for (size_t i = 0; i < chunks.size(); ++i) {
    uint64_t hash = hash64(chunks[i].view());
    if (auto same = reusable.find(hash); same != reusable.end() && same->second->bytes == chunks[i].size()) {
      manifest.chunks.push_back(*same->second);
      manifest.predecessor = base.position;
      continue;
    }
    // Position and index make the name new for ever (invariant 8).
    std::string key = chunk_key(
        prefix_, log_.id, {.epoch = epoch, .position = position, .nonce = nonce, .index = i, .hash = hash});
    auto put = co_await store_.put_if_absent(key, {chunks[i]});
    // The same name has the same content: an earlier try of this very snapshot.
    if (!put && put.error().code != object_store::StoreErrc::kPreconditionFailed) {
      co_return store_failed("writing a snapshot chunk", put.error());
    }
    manifest.chunks.push_back({key, chunks[i].size(), hash});
  }
  std::string key = manifest_key(prefix_, log_.id, position, nonce);
  auto put = co_await store_.put_if_absent(key, {Slice::take(encode_manifest(manifest))});
  if (!put && put.error().code != object_store::StoreErrc::kPreconditionFailed) {
    co_return store_failed("writing a snapshot manifest", put.error());
  }
  auto read_back = co_await load(FoundSnapshot{key, position, nonce}, PlantedBugs{});
  if (!read_back) co_return pass_error(read_back);
  newest_ = manifest;
  base_ = std::move(base);
  co_return manifest;
}

runtime::Task<SnapshotResult<std::vector<std::string>>> SnapshotStore::list_all(std::string key_prefix) {
  std::vector<std::string> keys;
  std::string start_after;
  while (true) {
    auto page = co_await store_.list(key_prefix, start_after, 1000);
    if (!page) co_return store_failed("listing snapshots", page.error());
    for (auto& object : page->objects) keys.push_back(std::move(object.key));
    if (!page->is_truncated || keys.empty()) break;
    start_after = keys.back();
  }
  co_return keys;
}

runtime::Task<SnapshotResult<std::vector<FoundSnapshot>>> SnapshotStore::find() {
  auto keys = co_await list_all(manifest_prefix());
  if (!keys) co_return pass_error(keys);
  std::vector<FoundSnapshot> found;
  for (std::string& key : *keys) {
    auto snapshot = parse_manifest_key(prefix_, std::move(key));
    if (snapshot) found.push_back(std::move(*snapshot));
  }
  std::sort(found.begin(), found.end(), [](const FoundSnapshot& a, const FoundSnapshot& b) {
    return a.position != b.position ? a.position > b.position : a.key < b.key;
  });
  co_return found;
}

runtime::Task<SnapshotResult<SnapshotManifest>> SnapshotStore::read_manifest(std::string key) {
  auto bytes = co_await store_.get(key, std::nullopt);
  if (!bytes) {
    bool is_gone = bytes.error().code == object_store::StoreErrc::kNotFound;
    co_return fail(is_gone ? SnapshotErrc::kDamaged : SnapshotErrc::kStore,
                   fmt::format("{}: {}", key, bytes.error().message));
  }
  auto manifest = decode_manifest(bytes->view());
  if (!manifest) co_return fail(SnapshotErrc::kDamaged, fmt::format("{}: {}", key, manifest.error().message));
  if (manifest->log.id != log_.id) co_return fail(SnapshotErrc::kDamaged, key + " is of another log");
  co_return std::move(*manifest);
}

runtime::Task<SnapshotResult<State>> SnapshotStore::load(FoundSnapshot snapshot, PlantedBugs bugs) {
  auto manifest = co_await read_manifest(snapshot.key);
  if (!manifest) co_return pass_error(manifest);
  std::vector<Slice> chunks;
  for (const auto& chunk : manifest->chunks) {
    auto bytes = co_await store_.get(chunk.key, std::nullopt);
    if (!bytes) {
      bool is_gone = bytes.error().code == object_store::StoreErrc::kNotFound;
      co_return fail(is_gone ? SnapshotErrc::kDamaged : SnapshotErrc::kStore,
                     fmt::format("{}: {}", chunk.key, bytes.error().message));
    }
    if (bytes->size() != chunk.bytes || hash64(bytes->view()) != chunk.hash) {
      co_return fail(SnapshotErrc::kDamaged,
                     fmt::format("{} does not have the bytes that {} names", chunk.key, snapshot.key));
    }
    chunks.push_back(std::move(*bytes));
  }
  auto state = co_await runtime::offload(runtime_, runtime::Lane::kBulk,
                                         [chunks, bugs] { return State::from_chunks(chunks, bugs); });
  if (!state)
    co_return fail(SnapshotErrc::kDamaged, fmt::format("{}: {}", snapshot.key, state.error().message));
  if (state->position() != manifest->position || state->hash() != manifest->state_hash) {
    co_return fail(SnapshotErrc::kDamaged,
                   fmt::format("{}: the state it gives has another hash", snapshot.key));
  }
  newest_ = std::move(*manifest);
  co_return std::move(*state);
}

runtime::Task<SnapshotResult<void>> SnapshotStore::delete_unretained(std::vector<LogPosition> keep,
                                                                     std::set<Nonce> registered) {
  if (keep.empty()) co_return SnapshotResult<void>{};
  LogPosition newest_kept = *std::max_element(keep.begin(), keep.end());
  std::set<LogPosition> kept(keep.begin(), keep.end());
  auto found = co_await find();
  if (!found) co_return pass_error(found);
  std::vector<std::string> doomed;
  std::set<std::string> named;
  for (const FoundSnapshot& snapshot : *found) {
    bool is_own = registered.contains(snapshot.nonce);
    if (is_own && snapshot.position < newest_kept && !kept.contains(snapshot.position)) {
      doomed.push_back(snapshot.key);
      continue;
    }
    auto manifest = co_await read_manifest(snapshot.key);
    if (!manifest && !is_own && manifest.error().code == SnapshotErrc::kDamaged) continue;
    // What cannot be read might name anything: nothing is deleted then.
    if (!manifest) co_return pass_error(manifest);
    for (const auto& chunk : manifest->chunks) named.insert(chunk.key);
  }
  auto chunks = co_await list_all(chunk_prefix());
  if (!chunks) co_return pass_error(chunks);
  for (std::string& key : *chunks) {
    auto name = chunk_name(std::string_view(key).substr(chunk_prefix().size()));
    if (!name || !registered.contains(name->nonce)) continue;
    // Chunks above the newest kept position may belong to a snapshot that is being written.
    if (name->position < newest_kept && !named.contains(key)) doomed.push_back(std::move(key));
  }
  for (size_t at = 0; at < doomed.size(); at += kDeletesPerCall) {
    size_t end = std::min(doomed.size(), at + kDeletesPerCall);
    auto deleted = co_await store_.delete_many(
        {doomed.begin() + static_cast<ptrdiff_t>(at), doomed.begin() + static_cast<ptrdiff_t>(end)});
    if (!deleted) co_return store_failed("deleting old snapshots", deleted.error());
  }
  co_return SnapshotResult<void>{};
}

}  // namespace varve::metadata
