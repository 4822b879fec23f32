// ObjectReader: ranges of objects, from the cache or the store. Reads of a request start together; what is missing
// is loaded by tasks of the reader's own, so that one caller's end does not fail those who share its GET.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/metrics.h"
#include "metadata/state/object_key.h"
#include "object_store/object_store.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task_scope.h"
#include "storage/cache/block_cache.h"

namespace varve::storage {

// Who an object is, in the log and in the store.
struct ObjectRef {
  metadata::ObjectId id;
  metadata::WalObjectName name;
};

// Tail reads and catch-up reads take turns in pools of their own, so that a consumer that is far behind does not
// slow those who are not.
enum class ReadClass : uint8_t { kTail, kCatchUp };

// Bytes of a range, as stretches in memory that follow one another. A value; holds what it refers to.
class ObjectBytes {
 public:
  ObjectBytes() = default;
  explicit ObjectBytes(std::vector<std::shared_ptr<const Extent>> extents) : extents_(std::move(extents)) {}

  // Positions in the object that are here: [from, to) with from <= any start asked for.
  bool covers(uint64_t from, uint64_t to) const;
  uint64_t end() const { return extents_.empty() ? 0 : extents_.back()->end(); }
  // Appends slices of [from, to), which is covered; copies no bytes.
  void slice(uint64_t from, uint64_t to, std::vector<Slice>& out) const;
  // [from, to) in one piece: a view if it lies so, else copied into `copy`.
  ByteView contiguous(uint64_t from, uint64_t to, std::vector<uint8_t>& copy) const;
  bool is_verified(uint64_t from, uint64_t to) const;
  void mark_verified(uint64_t from, uint64_t to) const;
  const std::vector<std::shared_ptr<const Extent>>& extents() const { return extents_; }

 private:
  std::vector<std::shared_ptr<const Extent>> extents_;
};

// A read that has been started.
struct StartedRead {
  metadata::ObjectId object{};
  uint64_t from = 0;
  uint64_t to = 0;
  std::vector<ClaimedPart> parts;
};

// Life: made before the fetcher, co_await stop(), destroyed after it. Any executor.
class ObjectReader {
 public:
  ObjectReader(runtime::Runtime& runtime, object_store::ObjectStore& store, BlockCache& cache,
               std::string key_prefix, const Limits& limits, MetricRegistry& metrics);

  // Starts reading [from, to), from < to. `executor`: the caller's, where the loads run.
  StartedRead start(runtime::Executor& executor, const ObjectRef& object, uint64_t from, uint64_t to,
                    ReadClass read_class);
  // Waits for a started read. kCorrupt if the object ends before the range does: the next read asks the store again. A
  // stop request of the caller ends it with kTimeout.
  runtime::Task<object_store::StoreResult<ObjectBytes>> finish(StartedRead read);
  // What was read is not what it should be: the next read asks the store again.
  void forget(const metadata::ObjectId& object, const ObjectBytes& bytes);

  // Any io task, once. Loads under way end early.
  runtime::Task<> stop();

 private:
  runtime::Task<> load(std::shared_ptr<BlockLoad> load, std::string key, ReadClass read_class);

  runtime::Runtime& runtime_;
  object_store::ObjectStore& store_;
  BlockCache& cache_;
  const std::string key_prefix_;
  runtime::Semaphore tail_reads_;
  runtime::Semaphore catch_up_reads_;
  runtime::Semaphore load_bytes_;  // of all loads under way
  Histogram& get_seconds_;
  Counter& get_bytes_;
  runtime::TaskScope scope_;
};

}  // namespace varve::storage
