// BlockCache: bytes of immutable objects in memory. Written objects enter after their PUT, read ones after their
// GET; a reader on the broker that wrote pays no GET, and readers of the same bytes share one (DESIGN 7, 12.6).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "metadata/state/entry.h"

namespace varve::storage {

struct BlockCacheConfig {
  size_t bytes_max = 256 * kMiB;  // of all entries, each charged by what it keeps alive
  size_t block_bytes = kMiB;      // reads from the store begin and end at multiples of it
};

// Life: made before ingest and fetch, destroyed after both. Any thread; short locks, none held across a
// suspension. Slices given out stay valid after their entry has left the cache.
class BlockCache {
 public:
  BlockCache(BlockCacheConfig config, MetricRegistry& metrics);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // The image of an object that this broker has just written; `capacity_bytes` is what its slices keep alive.
  void insert_written(metadata::ObjectId object, std::vector<Slice> image, size_t capacity_bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::storage
