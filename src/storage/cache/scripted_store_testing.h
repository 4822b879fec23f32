// ScriptedStore: a store whose GETs go as a test says, and are noted.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "object_store/object_store.h"
#include "runtime/runtime.h"

namespace varve::storage {

// What a GET comes to.
struct ScriptedGet {
  std::optional<object_store::StoreErrc> error{};  // none: what is stored
  Duration takes = 10ms;
  std::function<Slice(Slice)> spoil{};  // what becomes of the bytes on their way; not set: nothing
};

// Life: as the world whose tasks use it. Only reads: whatever else is asked of it fails.
class ScriptedStore final : public object_store::ObjectStore {
 public:
  template <class T>
  using Answer = runtime::Task<object_store::StoreResult<T>>;

  struct Get {
    std::string key;
    uint64_t offset;
    uint64_t size;

    bool operator==(const Get&) const = default;
  };

  Answer<Slice> get(std::string key, std::optional<object_store::ByteRange> range) override {
    ScriptedGet step = next();
    Get asked{std::move(key), range->offset, range->size};
    gets.push_back(asked);
    under_way += 1;
    under_way_max = std::max(under_way_max, under_way);
    bytes_under_way += asked.size;
    bytes_under_way_max = std::max(bytes_under_way_max, bytes_under_way);
    runtime::Wake wake = co_await runtime::sleep_for(step.takes);
    under_way -= 1;
    bytes_under_way -= asked.size;
    if (wake == runtime::Wake::kStopped) co_return fail(object_store::StoreErrc::kTimeout, "stopped");
    if (step.error) co_return fail(*step.error, "as the script says");
    auto found = objects.find(asked.key);
    if (found == objects.end()) co_return fail(object_store::StoreErrc::kNotFound, asked.key);
    const Slice& body = found->second;
    if (asked.offset >= body.size()) co_return fail(object_store::StoreErrc::kInvalidRange, asked.key);
    Slice bytes = body.sub(asked.offset, std::min<uint64_t>(asked.size, body.size() - asked.offset));
    co_return step.spoil ? step.spoil(std::move(bytes)) : std::move(bytes);
  }
  Answer<void> put(std::string, std::vector<Slice>) override { co_return unscripted(); }
  Answer<void> put_if_absent(std::string, std::vector<Slice>) override { co_return unscripted(); }
  Answer<object_store::ObjectInfo> head(std::string) override { co_return unscripted(); }
  Answer<object_store::ListPage> list(std::string, std::string, size_t) override { co_return unscripted(); }
  Answer<std::vector<std::string>> delete_many(std::vector<std::string>) override { co_return unscripted(); }

  std::map<std::string, Slice> objects;
  std::deque<ScriptedGet> script;
  ScriptedGet then{};  // after the script
  std::vector<Get> gets;
  size_t under_way = 0;
  size_t under_way_max = 0;
  uint64_t bytes_under_way = 0;
  uint64_t bytes_under_way_max = 0;

 private:
  static std::unexpected<object_store::StoreError> unscripted() {
    return fail(object_store::StoreErrc::kBadRequest, "only reads are scripted");
  }
  ScriptedGet next() {
    if (script.empty()) return then;
    ScriptedGet step = std::move(script.front());
    script.pop_front();
    return step;
  }
};

}  // namespace varve::storage
