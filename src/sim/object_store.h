// SimObjectStore: the object store of a simulated world, shared by its nodes and stricter than S3.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "object_store/object_store.h"
#include "sim/service.h"

namespace varve::sim {

// Per mille of the calls that meet it, beside what RequestFaults has. All zero: a store that only takes time.
struct StoreFaults {
  RequestFaults put{};
  RequestFaults get{};
  RequestFaults head{};
  RequestFaults list{};
  RequestFaults remove{};
  uint32_t conflict = 0;         // 409, while a rival put_if_absent of the key is under way
  uint32_t get_cut_short = 0;    // a body that ends early, told as such (kCorrupt)
  uint32_t get_short = 0;        // a body that ends early, passed off as whole
  uint32_t get_corrupt = 0;      // one bit flipped in the body
  uint32_t list_small_page = 0;  // fewer keys than asked for, more to come
  uint32_t remove_partial = 0;   // some of the keys are not deleted, and named

  // Every kind of fault, at `per_mille` each.
  static StoreFaults all(uint32_t per_mille);
};

// What the store has seen happen to a key, for checkers: in order of effect.
struct StoreEvent {
  enum class Kind : uint8_t { kPut, kDelete };
  Kind kind;
  std::string key;
  std::string host;            // "" : a foreign process
  MonotonicTime asked_at;      // when the caller sent the request
  bool had_object = false;     // before
  bool was_deleted = false;    // the key had an object at some time, which was deleted (invariant 8)
  bool is_same_bytes = false;  // a put over equal bytes
};

// Strongly consistent, as S3 is: each request takes effect at one instant, and reads and lists see exactly the
// effects before theirs. A crash of the caller drops the reply, never the effect.
// Life: made after the world, destroyed before it and after all clients' tasks.
class SimObjectStore : public Service {
 public:
  struct Object {
    Slice bytes;
    MonotonicTime written_at;
    std::string host;
  };

  explicit SimObjectStore(World& world, ServiceTimes times = {}) : Service(world, times) {}

  // How programs on `host` reach it. The store must outlive it.
  std::unique_ptr<object_store::ObjectStore> client(std::string host);

  void set_faults(const StoreFaults& faults) { faults_ = faults; }
  // Puts that would hold more than this are refused with kNoSpace.
  void set_capacity(uint64_t bytes) { capacity_bytes_ = bytes; }
  void set_full(bool is_full) override { capacity_bytes_ = is_full ? bytes_held_ : UINT64_MAX; }
  void set_observer(std::function<void(const StoreEvent&)> observer) { observer_ = std::move(observer); }

  // For checkers and for the foreign process: at once, without faults.
  const std::map<std::string, Object>& objects() const { return objects_; }
  uint64_t bytes_held() const { return bytes_held_; }
  void foreign_put(const std::string& key, Slice bytes);
  void foreign_delete(const std::string& key);
  // Flips one bit of the object for good. False if there is none, or it is empty.
  bool damage(const std::string& key);

 private:
  class Client;

  // Who asked, and when.
  struct Caller {
    std::string host;
    MonotonicTime asked_at;
  };

  object_store::StoreResult<void> apply_put(const Caller& caller, const std::string& key, const Slice& body);
  object_store::StoreResult<void> apply_put_if_absent(const Caller& caller, const std::string& key,
                                                      const Slice& body);
  object_store::StoreResult<Slice> apply_get(const std::string& key,
                                             std::optional<object_store::ByteRange> range);
  object_store::StoreResult<object_store::ObjectInfo> apply_head(const std::string& key);
  object_store::StoreResult<object_store::ListPage> apply_list(const std::string& prefix,
                                                               const std::string& start_after,
                                                               size_t max_keys);
  object_store::StoreResult<std::vector<std::string>> apply_delete(const Caller& caller,
                                                                   const std::vector<std::string>& keys);
  object_store::StoreResult<Slice> spoil(Slice body);
  void store(const Caller& caller, const std::string& key, const Slice& body);
  bool erase(const Caller& caller, const std::string& key);
  bool draw(uint32_t per_mille, std::string_view fault);

  StoreFaults faults_;
  uint64_t capacity_bytes_ = UINT64_MAX;
  uint64_t bytes_held_ = 0;
  std::map<std::string, Object> objects_;
  std::set<std::string> ever_deleted_;
  std::map<std::string, std::vector<MonotonicTime>> recent_conditional_puts_;  // when each began, by key
  std::function<void(const StoreEvent&)> observer_;
};

}  // namespace varve::sim
