#include "storage/cache/block_cache.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/hash.h"

namespace varve::storage {
namespace {

using metadata::ObjectId;

// What an extent costs besides its bytes.
constexpr size_t kExtentOverheadBytes = 256;
// A shard holds at least this much, or there are fewer shards.
constexpr size_t kShardBytesMin = 16 * kMiB;

struct ObjectIdHash {
  size_t operator()(const ObjectId& id) const noexcept {
    return static_cast<size_t>(rendezvous_weight(id.incarnation.value(), id.number.value()));
  }
};

}  // namespace

runtime::Completion<LoadResult> BlockLoad::join() {
  runtime::Completion<LoadResult> waiter;
  std::lock_guard lock(mutex_);
  if (result_) {
    waiter.set(*result_);
  } else {
    waiters_.push_back(waiter);
  }
  return waiter;
}

void BlockLoad::finish(const LoadResult& result) {
  std::vector<runtime::Completion<LoadResult>> waiters;
  {
    std::lock_guard lock(mutex_);
    result_ = result;
    waiters.swap(waiters_);
  }
  for (const auto& waiter : waiters) waiter.set(result);
}

// Some of the objects, with their share of the budget. Least recently used extents leave first.
struct BlockCache::Shard {
  struct Key {
    ObjectId object;
    uint64_t offset;
  };
  struct Entry {
    std::shared_ptr<const Extent> extent;  // null: being loaded
    std::shared_ptr<BlockLoad> load;
    size_t charge = 0;
    std::list<Key>::iterator use;  // of an extent

    uint64_t end() const { return extent ? extent->end() : load->end(); }
  };
  using Entries = std::map<uint64_t, Entry>;

  Shard(size_t max, Gauge& gauge) : bytes_max(max), all_bytes(gauge) {}

  const size_t bytes_max;
  Gauge& all_bytes;  // of all shards together
  mutable std::mutex mutex;
  std::unordered_map<ObjectId, Entries, ObjectIdHash> objects;
  std::list<Key> by_use;  // the most recent in front
  size_t bytes = 0;

  // Keeps the extent, in place of those used longest ago if need be. Not one that is empty or larger than the shard.
  void keep(ObjectId object, std::shared_ptr<const Extent> extent, size_t charge) {
    if (extent->size() == 0 || charge > bytes_max) return;
    // First: nothing of the limit is for those who leave.
    while (bytes > bytes_max - charge) forget(by_use.back());
    Key key{object, extent->offset()};
    by_use.push_front(key);
    objects[object][key.offset] =
        Entry{.extent = std::move(extent), .load = nullptr, .charge = charge, .use = by_use.begin()};
    bytes += charge;
    all_bytes.add(static_cast<double>(charge));
  }
  // The extent or load at the key, which is here.
  void forget(Key key) {
    auto object_at = objects.find(key.object);
    CHECK(object_at != objects.end(), "nothing of the object is here");
    Entries& entries = object_at->second;
    auto at = entries.find(key.offset);
    CHECK(at != entries.end(), "nothing is here at {}", key.offset);
    if (at->second.extent) {
      bytes -= at->second.charge;
      all_bytes.add(-static_cast<double>(at->second.charge));
      by_use.erase(at->second.use);
    }
    entries.erase(at);
    if (entries.empty()) objects.erase(object_at);
  }
};

BlockCache::BlockCache(BlockCacheConfig config, MetricRegistry& metrics)
    : config_(config),
      hits_(metrics.counter("varve_cache_hits_total", "Reads of an object served from memory")),
      misses_(metrics.counter("varve_cache_misses_total", "Reads of an object that became a GET")),
      joins_(metrics.counter("varve_cache_joins_total", "Reads of an object that joined another's GET")) {
  Gauge& bytes = metrics.gauge("varve_cache_bytes", "Memory that cached objects keep alive");
  size_t shards =
      std::clamp<size_t>(config.bytes_max / kShardBytesMin, 1, std::max<size_t>(1, config.shards));
  for (size_t i = 0; i < shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(config.bytes_max / shards, bytes));
  }
}

BlockCache::~BlockCache() = default;

BlockCache::Shard& BlockCache::shard_of(ObjectId object) {
  return *shards_[ObjectIdHash()(object) % shards_.size()];
}

void BlockCache::insert_written(ObjectId object, std::vector<Slice> image, size_t capacity_bytes) {
  size_t charge = capacity_bytes + image.size() * sizeof(Slice) + kExtentOverheadBytes;
  auto extent = std::make_shared<const Extent>(0, std::move(image), true);
  Shard& shard = shard_of(object);
  std::lock_guard lock(shard.mutex);
  // Nobody reads an object before its commit, so nothing of it is here; a load would be somebody's guess.
  if (!shard.objects.contains(object)) shard.keep(object, std::move(extent), charge);
}

Claim BlockCache::claim(ObjectId object, uint64_t offset, uint64_t size) {
  Claim claim;
  Shard& shard = shard_of(object);
  std::lock_guard lock(shard.mutex);
  Shard::Entries& entries = shard.objects[object];
  uint64_t end = offset + size;
  uint64_t aligned_end = (end + config_.block_bytes - 1) / config_.block_bytes * config_.block_bytes;
  uint64_t at = offset;
  while (at < end) {
    auto next = entries.upper_bound(at);
    auto before = next == entries.begin() ? entries.end() : std::prev(next);
    if (before != entries.end() && before->second.end() > at) {
      Shard::Entry& entry = before->second;
      if (entry.extent) shard.by_use.splice(shard.by_use.begin(), shard.by_use, entry.use);
      (entry.extent ? hits_ : joins_).add();
      claim.parts.push_back({entry.extent, entry.load});
      at = entry.end();
      continue;
    }
    uint64_t from = at / config_.block_bytes * config_.block_bytes;
    if (before != entries.end()) from = std::max(from, before->second.end());
    uint64_t to = std::min(aligned_end, from + config_.load_bytes_max);
    if (next != entries.end()) to = std::min(to, next->first);
    auto load = std::make_shared<BlockLoad>(object, from, to - from);
    entries[from] = Shard::Entry{.extent = nullptr, .load = load, .charge = 0, .use = {}};
    misses_.add();
    claim.parts.push_back({nullptr, load});
    claim.own_loads.push_back(std::move(load));
    at = to;
  }
  return claim;
}

void BlockCache::loaded(const std::shared_ptr<BlockLoad>& load, object_store::StoreResult<Slice> result) {
  LoadResult outcome =
      result
          ? LoadResult(std::make_shared<const Extent>(load->offset(), std::vector{std::move(*result)}, false))
          : LoadResult(std::unexpected(std::move(result.error())));
  Shard& shard = shard_of(load->object());
  {
    std::lock_guard lock(shard.mutex);
    shard.forget({load->object(), load->offset()});
    if (outcome) shard.keep(load->object(), *outcome, (*outcome)->size() + kExtentOverheadBytes);
  }
  load->finish(outcome);
}

void BlockCache::drop(ObjectId object, const Extent& extent) {
  Shard& shard = shard_of(object);
  std::lock_guard lock(shard.mutex);
  auto found = shard.objects.find(object);
  if (found == shard.objects.end()) return;
  auto at = found->second.find(extent.offset());
  if (at != found->second.end() && at->second.extent.get() == &extent)
    shard.forget({object, extent.offset()});
}

}  // namespace varve::storage
