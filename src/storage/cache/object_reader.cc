#include "storage/cache/object_reader.h"

#include <algorithm>
#include <cstring>

namespace varve::storage {

using object_store::StoreErrc;

bool ObjectBytes::covers(uint64_t from, uint64_t to) const {
  if (extents_.empty() || extents_.front()->offset() > from) return false;
  return extents_.back()->end() >= to;
}

void ObjectBytes::slice(uint64_t from, uint64_t to, std::vector<Slice>& out) const {
  for (const auto& extent : extents_) {
    uint64_t part_from = std::max(from, extent->offset());
    uint64_t part_to = std::min(to, extent->end());
    if (part_from < part_to) extent->slice(part_from, part_to, out);
  }
}

ByteView ObjectBytes::contiguous(uint64_t from, uint64_t to, std::vector<uint8_t>& copy) const {
  std::vector<Slice> pieces;
  slice(from, to, pieces);
  if (pieces.size() == 1) return pieces[0].view();
  copy.clear();
  for (const Slice& piece : pieces) copy.insert(copy.end(), piece.view().begin(), piece.view().end());
  return copy;
}

bool ObjectBytes::is_verified(uint64_t from, uint64_t to) const {
  return std::all_of(extents_.begin(), extents_.end(), [&](const auto& extent) {
    uint64_t part_from = std::max(from, extent->offset());
    uint64_t part_to = std::min(to, extent->end());
    return part_from >= part_to || extent->is_verified(part_from, part_to);
  });
}

void ObjectBytes::mark_verified(uint64_t from, uint64_t to) const {
  for (const auto& extent : extents_) {
    extent->mark_verified(std::max(from, extent->offset()), std::min(to, extent->end()));
  }
}

ObjectReader::ObjectReader(runtime::Runtime& runtime, object_store::ObjectStore& store, BlockCache& cache,
                           std::string key_prefix, const Limits& limits, MetricRegistry& metrics)
    : runtime_(runtime),
      store_(store),
      cache_(cache),
      key_prefix_(std::move(key_prefix)),
      tail_reads_(limits.object_reads_in_flight_max),
      catch_up_reads_(std::max<size_t>(1, limits.object_reads_in_flight_max / 4)),
      load_bytes_(std::max<size_t>(limits.cache_bytes_max / 2, 1)),
      get_seconds_(metrics.histogram("varve_object_get_seconds",
                                     "Time of reads from the object store, waiting included",
                                     kStageSecondsBuckets)),
      get_bytes_(metrics.counter("varve_object_get_bytes_total", "Bytes read from the object store")) {}

StartedRead ObjectReader::start(runtime::Executor& executor, const ObjectRef& object, uint64_t from,
                                uint64_t to, ReadClass read_class) {
  Claim claim = cache_.claim(object.id, from, to - from);
  for (const std::shared_ptr<BlockLoad>& own : claim.own_loads) {
    bool is_started =
        scope_.spawn(executor, "load", load(own, metadata::wal_key(key_prefix_, object.name), read_class));
    if (!is_started) cache_.loaded(own, fail(StoreErrc::kTimeout, "the broker is stopping"));
  }
  return {object.id, from, to, std::move(claim.parts)};
}

runtime::Task<> ObjectReader::load(std::shared_ptr<BlockLoad> load, std::string key, ReadClass read_class) {
  MonotonicTime begin = runtime_.now();
  auto turn = co_await (read_class == ReadClass::kTail ? tail_reads_ : catch_up_reads_).acquire();
  auto bytes = co_await load_bytes_.acquire(load->size());
  if (!turn || !bytes) {
    cache_.loaded(load, fail(StoreErrc::kTimeout, "the broker is stopping"));
    co_return;
  }
  auto result = co_await store_.get(std::move(key), object_store::ByteRange{load->offset(), load->size()});
  get_seconds_.observe(runtime_.now() - begin);
  if (result) get_bytes_.add(result->size());
  cache_.loaded(load, std::move(result));
}

runtime::Task<object_store::StoreResult<ObjectBytes>> ObjectReader::finish(StartedRead read) {
  std::vector<std::shared_ptr<const Extent>> extents;
  extents.reserve(read.parts.size());
  uint64_t reached = read.from;
  for (ClaimedPart& part : read.parts) {
    if (!part.extent) {
      LoadResult stopped = fail(StoreErrc::kTimeout, "stopped while reading");
      LoadResult result = co_await runtime::wait_until(part.load->join(), MonotonicTime::never(), stopped);
      // The object ends at a multiple of the block size.
      if (!result && result.error().code == StoreErrc::kInvalidRange) break;
      if (!result) co_return pass_error(result);
      part.extent = std::move(*result);
    }
    if (part.extent->offset() > reached) break;
    reached = std::max(reached, part.extent->end());
    extents.push_back(std::move(part.extent));
  }
  ObjectBytes bytes(std::move(extents));
  if (reached >= read.to) co_return bytes;
  forget(read.object, bytes);
  co_return fail(StoreErrc::kCorrupt, "the object ends before what was to be read of it");
}

void ObjectReader::forget(const metadata::ObjectId& object, const ObjectBytes& bytes) {
  for (const auto& extent : bytes.extents()) cache_.drop(object, *extent);
}

runtime::Task<> ObjectReader::stop() { co_await scope_.close(); }

}  // namespace varve::storage
