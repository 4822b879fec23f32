// StallingStore: a store some of whose PUTs of WAL objects hang, as the test says.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "object_store/object_store.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"
#include "storage/format/wal_object.h"

namespace varve::sim {

// Shared by a test and the stores made for it. Outlives them.
struct Stalls {
  // What happened to a PUT that hung.
  struct Stalled {
    std::string key;
    storage::WalDirectory directory;
    MonotonicTime from;
    MonotonicTime to = MonotonicTime::never();
    bool was_given_up = false;
  };

  // Asked with the number of each PUT, from 1: how long it hangs; nothing: not at all.
  std::function<std::optional<Duration>(uint64_t number)> choose = [](uint64_t) { return std::nullopt; };
  // When a PUT that its caller has given up takes effect after all; nothing: it does not.
  std::optional<Duration> lands_after{};

  uint64_t puts = 0;
  size_t bytes_under_way = 0;  // of PUTs
  size_t bytes_under_way_max = 0;
  std::vector<Stalled> stalled{};
  std::vector<std::string> keys{};  // of all PUTs
};

// A decorator. Life: as the store under it.
class StallingStore final : public object_store::ObjectStore {
 public:
  StallingStore(object_store::ObjectStore& store, Stalls& stalls) : store_(store), stalls_(stalls) {}

  runtime::Task<object_store::StoreResult<void>> put(std::string key, std::vector<Slice> body) override {
    size_t bytes = total_size(body);
    stalls_.bytes_under_way += bytes;
    stalls_.bytes_under_way_max = std::max(stalls_.bytes_under_way_max, stalls_.bytes_under_way);
    auto result = co_await put_or_hang(std::move(key), std::move(body));
    stalls_.bytes_under_way -= bytes;
    co_return result;
  }
  runtime::Task<object_store::StoreResult<void>> put_if_absent(std::string key,
                                                               std::vector<Slice> body) override {
    return store_.put_if_absent(std::move(key), std::move(body));
  }
  runtime::Task<object_store::StoreResult<Slice>> get(std::string key,
                                                      std::optional<object_store::ByteRange> range) override {
    return store_.get(std::move(key), range);
  }
  runtime::Task<object_store::StoreResult<object_store::ObjectInfo>> head(std::string key) override {
    return store_.head(std::move(key));
  }
  runtime::Task<object_store::StoreResult<object_store::ListPage>> list(std::string prefix,
                                                                        std::string start_after,
                                                                        size_t max_keys) override {
    return store_.list(std::move(prefix), std::move(start_after), max_keys);
  }
  runtime::Task<object_store::StoreResult<std::vector<std::string>>> delete_many(
      std::vector<std::string> keys) override {
    return store_.delete_many(std::move(keys));
  }

 private:
  runtime::Task<object_store::StoreResult<void>> put_or_hang(std::string key, std::vector<Slice> body) {
    stalls_.keys.push_back(key);
    std::optional<Duration> hangs = stalls_.choose(++stalls_.puts);
    if (!hangs) co_return co_await store_.put(std::move(key), std::move(body));
    runtime::Executor& executor = *(co_await runtime::this_context()).executor;
    size_t index = stalls_.stalled.size();
    stalls_.stalled.push_back({.key = key, .directory = directory_of(body), .from = executor.now()});
    bool is_given_up = co_await runtime::sleep_for(*hangs) == runtime::Wake::kStopped;
    stalls_.stalled[index].to = executor.now();
    stalls_.stalled[index].was_given_up = is_given_up;
    if (!is_given_up) co_return co_await store_.put(std::move(key), std::move(body));
    if (stalls_.lands_after) {
      scope_.spawn(executor, "late put", put_late(*stalls_.lands_after, std::move(key), std::move(body)));
    }
    co_return fail(object_store::StoreErrc::kTimeout, "given up");
  }
  static storage::WalDirectory directory_of(const std::vector<Slice>& body) {
    std::vector<uint8_t> whole;
    for (const Slice& slice : body) whole.insert(whole.end(), slice.view().begin(), slice.view().end());
    auto object = storage::parse_wal_object(whole);
    CHECK(object, "{}", object.error().message);
    return std::move(object->directory);
  }
  runtime::Task<> put_late(Duration delay, std::string key, std::vector<Slice> body) {
    if (co_await runtime::sleep_for(delay) == runtime::Wake::kStopped) co_return;
    auto put = co_await store_.put(std::move(key), std::move(body));
    CHECK(put || put.error().code == object_store::StoreErrc::kTimeout);
  }

  object_store::ObjectStore& store_;
  Stalls& stalls_;
  runtime::TaskScope scope_;
};

}  // namespace varve::sim
