// BlockCache: bytes of immutable objects in memory. Written objects enter after their PUT, read ones after their
// GET; a reader on the broker that wrote pays no GET, and readers of the same bytes share one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "metadata/state/entry.h"
#include "object_store/object_store.h"
#include "runtime/completion.h"
#include "storage/cache/extent.h"

namespace varve::storage {

struct BlockCacheConfig {
  size_t bytes_max = 256 * kMiB;  // of all entries, each charged by what it keeps alive
  size_t block_bytes = kMiB;      // reads from the store begin and end at multiples of it
  size_t load_bytes_max = 4 * kMiB;
  size_t shards = 8;  // fewer, if bytes_max is small
};

// What a load ended with: an extent, which may be shorter than asked for, or the store's error.
using LoadResult = object_store::StoreResult<std::shared_ptr<const Extent>>;

// One read from the store that is under way, and who waits for it. Any thread.
class BlockLoad {
 public:
  BlockLoad(metadata::ObjectId object, uint64_t offset, uint64_t size)
      : object_(object), offset_(offset), size_(size) {}

  const metadata::ObjectId& object() const { return object_; }
  uint64_t offset() const { return offset_; }
  uint64_t size() const { return size_; }
  uint64_t end() const { return offset_ + size_; }

  // One completion a waiter; set at once if the load has ended.
  runtime::Completion<LoadResult> join();

 private:
  friend class BlockCache;
  void finish(const LoadResult& result);

  const metadata::ObjectId object_;
  const uint64_t offset_;
  const uint64_t size_;
  std::mutex mutex_;
  std::optional<LoadResult> result_;
  std::vector<runtime::Completion<LoadResult>> waiters_;
};

// The parts that cover a range, in order: an extent that is here, or a load that is under way.
struct ClaimedPart {
  std::shared_ptr<const Extent> extent;  // null: wait for `load`
  std::shared_ptr<BlockLoad> load;
};
struct Claim {
  std::vector<ClaimedPart> parts;
  // Those of the loads that the caller must carry out, each ending with BlockCache::loaded().
  std::vector<std::shared_ptr<BlockLoad>> own_loads;
};

// Life: made before ingest and fetch, destroyed after both. Any thread; short locks, none held across a
// suspension. Extents given out stay valid after they have left the cache.
class BlockCache {
 public:
  BlockCache(BlockCacheConfig config, MetricRegistry& metrics);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // The image of an object that this broker has just written; `capacity_bytes` is what its slices keep alive.
  void insert_written(metadata::ObjectId object, std::vector<Slice> image, size_t capacity_bytes);

  // Covers [offset, offset + size) of an object, size > 0. Missing blocks become loads of the caller.
  Claim claim(metadata::ObjectId object, uint64_t offset, uint64_t size);
  // Ends a load of the caller. What came enters the cache; everybody who waits gets the result.
  void loaded(const std::shared_ptr<BlockLoad>& load, object_store::StoreResult<Slice> result);
  // Forgets an extent that was found to be corrupt, if it is still here. What was loaded in its place stays: of many who
  // found it, only the first makes the object be read again.
  void drop(metadata::ObjectId object, const Extent& extent);

 private:
  struct Shard;
  Shard& shard_of(metadata::ObjectId object);

  const BlockCacheConfig config_;
  Counter& hits_;
  Counter& misses_;
  Counter& joins_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace varve::storage
