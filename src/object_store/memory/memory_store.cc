#include "object_store/memory/memory_store.h"

#include <algorithm>

namespace varve::object_store {

using runtime::Task;

namespace {

// A copy in one piece: the caller's slices may lie in buffers that are about to be used again.
Slice joined(const std::vector<Slice>& body) {
  std::vector<uint8_t> bytes;
  for (const Slice& slice : body) bytes.insert(bytes.end(), slice.view().begin(), slice.view().end());
  return Slice::take(std::move(bytes));
}

Task<bool> is_stopped() {
  runtime::TaskContext& context = co_await runtime::this_context();
  co_return context.stop.stop_requested();
}

std::unexpected<StoreError> stopped() { return fail(StoreErrc::kTimeout, "asked to stop"); }

}  // namespace

Task<StoreResult<void>> MemoryStore::store(std::string key, std::vector<Slice> body, bool only_if_absent) {
  if (co_await is_stopped()) co_return stopped();
  if (auto problem = key_problem(key)) co_return fail(StoreErrc::kBadRequest, *problem);
  Slice bytes = joined(body);
  std::lock_guard lock(mutex_);
  auto found = objects_.find(key);
  if (only_if_absent && found != objects_.end()) {
    co_return fail(StoreErrc::kPreconditionFailed, key + " is there");
  }
  uint64_t freed = found == objects_.end() ? 0 : found->second.size();
  if (bytes.size() > capacity_bytes_ - (bytes_ - freed))
    co_return fail(StoreErrc::kNoSpace, "the store is full");
  bytes_ = bytes_ - freed + bytes.size();
  objects_[key] = std::move(bytes);
  co_return StoreResult<void>{};
}

Task<StoreResult<void>> MemoryStore::put(std::string key, std::vector<Slice> body) {
  return store(std::move(key), std::move(body), false);
}

Task<StoreResult<void>> MemoryStore::put_if_absent(std::string key, std::vector<Slice> body) {
  return store(std::move(key), std::move(body), true);
}

Task<StoreResult<Slice>> MemoryStore::get(std::string key, std::optional<ByteRange> range) {
  if (co_await is_stopped()) co_return stopped();
  std::lock_guard lock(mutex_);
  auto found = objects_.find(key);
  if (found == objects_.end()) co_return fail(StoreErrc::kNotFound, key);
  const Slice& bytes = found->second;
  if (!range) co_return bytes;
  if (range->offset >= bytes.size()) co_return fail(StoreErrc::kInvalidRange, key);
  uint64_t left = bytes.size() - range->offset;
  co_return bytes.sub(range->offset, range->size == 0 ? left : std::min(range->size, left));
}

Task<StoreResult<ObjectInfo>> MemoryStore::head(std::string key) {
  if (co_await is_stopped()) co_return stopped();
  std::lock_guard lock(mutex_);
  auto found = objects_.find(key);
  if (found == objects_.end()) co_return fail(StoreErrc::kNotFound, key);
  co_return ObjectInfo{key, found->second.size()};
}

Task<StoreResult<ListPage>> MemoryStore::list(std::string prefix, std::string start_after, size_t max_keys) {
  if (co_await is_stopped()) co_return stopped();
  if (max_keys < 1 || max_keys > 1000) co_return fail(StoreErrc::kBadRequest, "max_keys must be 1 to 1,000");
  std::lock_guard lock(mutex_);
  ListPage page;
  auto at = start_after < prefix ? objects_.lower_bound(prefix) : objects_.upper_bound(start_after);
  for (; at != objects_.end() && at->first.starts_with(prefix); ++at) {
    if (page.objects.size() == max_keys) {
      page.is_truncated = true;
      break;
    }
    page.objects.push_back({at->first, at->second.size()});
  }
  co_return page;
}

Task<StoreResult<std::vector<std::string>>> MemoryStore::delete_many(std::vector<std::string> keys) {
  if (co_await is_stopped()) co_return stopped();
  if (keys.size() > 1000) co_return fail(StoreErrc::kBadRequest, "more than 1,000 keys");
  std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    auto found = objects_.find(key);
    if (found == objects_.end()) continue;
    bytes_ -= found->second.size();
    objects_.erase(found);
  }
  co_return std::vector<std::string>{};
}

size_t MemoryStore::object_count() const {
  std::lock_guard lock(mutex_);
  return objects_.size();
}

}  // namespace varve::object_store
