// MemoryStore: an object store in memory, for tests. Nothing survives it.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "object_store/object_store.h"

namespace varve::object_store {

// Any executor, any thread. It never fails but for capacity: faults are the simulated store's business.
class MemoryStore final : public ObjectStore {
 public:
  // Puts beyond `capacity_bytes` of bodies get kNoSpace.
  explicit MemoryStore(uint64_t capacity_bytes = UINT64_MAX) : capacity_bytes_(capacity_bytes) {}

  runtime::Task<StoreResult<void>> put(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<void>> put_if_absent(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override;
  runtime::Task<StoreResult<ObjectInfo>> head(std::string key) override;
  runtime::Task<StoreResult<ListPage>> list(std::string prefix, std::string start_after,
                                            size_t max_keys) override;
  runtime::Task<StoreResult<std::vector<std::string>>> delete_many(std::vector<std::string> keys) override;

  size_t object_count() const;

 private:
  runtime::Task<StoreResult<void>> store(std::string key, std::vector<Slice> body, bool only_if_absent);

  const uint64_t capacity_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, Slice> objects_;
  uint64_t bytes_ = 0;
};

}  // namespace varve::object_store
