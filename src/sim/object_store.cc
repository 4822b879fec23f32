#include "sim/object_store.h"

#include <algorithm>

#include "runtime/runtime.h"

namespace varve::sim {

using object_store::ByteRange;
using object_store::ListPage;
using object_store::ObjectInfo;
using object_store::StoreErrc;
using object_store::StoreResult;
using runtime::Completion;
using runtime::Task;

namespace {

constexpr size_t kPageKeysMax = 1000;
constexpr size_t kDeleteKeysMax = 1000;
// Conditional puts of one key begun this close together are rivals.
constexpr Duration kRivalWindow = 50ms;

Slice join(const std::vector<Slice>& slices) {
  std::vector<uint8_t> bytes;
  for (const Slice& slice : slices) bytes.insert(bytes.end(), slice.view().begin(), slice.view().end());
  return Slice::take(std::move(bytes));
}

bool equal(const Slice& a, const Slice& b) { return std::ranges::equal(a.view(), b.view()); }

}  // namespace

StoreFaults StoreFaults::all(uint32_t per_mille) {
  RequestFaults each{.throttled = per_mille,
                     .request_lost = per_mille,
                     .reply_lost = per_mille,
                     .lands_late = per_mille,
                     .slow = per_mille};
  return {.put = each,
          .get = each,
          .head = each,
          .list = each,
          .remove = each,
          .conflict = 500,
          .get_cut_short = per_mille,
          .get_short = per_mille,
          .get_corrupt = per_mille,
          .list_small_page = 200,
          .remove_partial = per_mille};
}

// Turns calls into requests: what a program links against.
class SimObjectStore::Client final : public object_store::ObjectStore {
 public:
  Client(SimObjectStore& store, std::string host) : store_(store), host_(std::move(host)) {}

  Task<StoreResult<void>> put(std::string key, std::vector<Slice> body) override {
    if (auto problem = object_store::key_problem(key)) co_return fail(StoreErrc::kBadRequest, *problem);
    // Copied, for it may land when the caller's bytes are long gone.
    auto effect = [&store = store_, caller = caller(), key, bytes = join(body)] {
      return store.apply_put(caller, key, bytes);
    };
    co_return co_await ask<void>("store.put", store_.faults_.put, true, std::move(effect));
  }

  Task<StoreResult<void>> put_if_absent(std::string key, std::vector<Slice> body) override {
    if (auto problem = object_store::key_problem(key)) co_return fail(StoreErrc::kBadRequest, *problem);
    store_.recent_conditional_puts_[key].push_back(store_.world_.now());
    auto effect = [&store = store_, caller = caller(), key, bytes = join(body)] {
      return store.apply_put_if_absent(caller, key, bytes);
    };
    co_return co_await ask<void>("store.put", store_.faults_.put, true, std::move(effect));
  }

  Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override {
    auto effect = [&store = store_, key, range] { return store.apply_get(key, range); };
    co_return co_await ask<Slice>("store.get", store_.faults_.get, false, std::move(effect));
  }

  Task<StoreResult<ObjectInfo>> head(std::string key) override {
    auto effect = [&store = store_, key] { return store.apply_head(key); };
    co_return co_await ask<ObjectInfo>("store.head", store_.faults_.head, false, std::move(effect));
  }

  Task<StoreResult<ListPage>> list(std::string prefix, std::string start_after, size_t max_keys) override {
    if (max_keys < 1 || max_keys > kPageKeysMax) {
      co_return fail(StoreErrc::kBadRequest, "max_keys must be 1 to 1,000");
    }
    auto effect = [&store = store_, prefix, start_after, max_keys] {
      return store.apply_list(prefix, start_after, max_keys);
    };
    co_return co_await ask<ListPage>("store.list", store_.faults_.list, false, std::move(effect));
  }

  Task<StoreResult<std::vector<std::string>>> delete_many(std::vector<std::string> keys) override {
    if (keys.size() > kDeleteKeysMax) co_return fail(StoreErrc::kBadRequest, "more than 1,000 keys");
    auto effect = [&store = store_, caller = caller(), keys] { return store.apply_delete(caller, keys); };
    co_return co_await ask<std::vector<std::string>>("store.delete", store_.faults_.remove, true,
                                                     std::move(effect));
  }

 private:
  Caller caller() const { return {host_, store_.world_.now()}; }

  template <class T>
  Task<StoreResult<T>> ask(std::string_view name, RequestFaults faults, bool is_write,
                           std::function<StoreResult<T>()> effect) {
    StoreErrc lost = store_.world_.random().chance(1, 2) ? StoreErrc::kTimeout : StoreErrc::kUnavailable;
    ServiceRequest<StoreResult<T>> request{
        .fault_prefix = name,
        .host = host_,
        .faults = faults,
        .is_write = is_write,
        .effect = std::move(effect),
        .no_answer = fail(lost, "no answer"),
        .throttled = fail(StoreErrc::kThrottled, "slow down"),
    };
    Completion<StoreResult<T>> reply;
    store_.submit(std::move(request), reply);
    StoreResult<T> stopped = fail(StoreErrc::kTimeout, "stopped before an answer came");
    co_return co_await runtime::wait_until(reply, MonotonicTime::never(), std::move(stopped));
  }

  SimObjectStore& store_;
  std::string host_;
};

std::unique_ptr<object_store::ObjectStore> SimObjectStore::client(std::string host) {
  return std::make_unique<Client>(*this, std::move(host));
}

bool SimObjectStore::draw(uint32_t per_mille, std::string_view fault) {
  if (per_mille == 0 || !world_.random().chance(per_mille, 1000)) return false;
  world_.happened(fault);
  return true;
}

void SimObjectStore::store(const Caller& caller, const std::string& key, const Slice& body) {
  auto found = objects_.find(key);
  StoreEvent event{
      .kind = StoreEvent::Kind::kPut, .key = key, .host = caller.host, .asked_at = caller.asked_at};
  event.had_object = found != objects_.end();
  event.was_deleted = ever_deleted_.contains(key);
  event.is_same_bytes = event.had_object && equal(found->second.bytes, body);
  if (event.had_object) bytes_held_ -= found->second.bytes.size();
  bytes_held_ += body.size();
  objects_.insert_or_assign(key, Object{body, world_.now(), caller.host});
  world_.trace("store: {} puts {}, {} bytes{}", caller.host, key, body.size(),
               event.had_object ? ", over another" : "");
  if (observer_) observer_(event);
}

bool SimObjectStore::erase(const Caller& caller, const std::string& key) {
  auto found = objects_.find(key);
  bool had_object = found != objects_.end();
  if (had_object) {
    bytes_held_ -= found->second.bytes.size();
    objects_.erase(found);
    ever_deleted_.insert(key);
  }
  world_.trace("store: {} deletes {}{}", caller.host, key, had_object ? "" : ", which is not there");
  if (observer_) {
    observer_({.kind = StoreEvent::Kind::kDelete,
               .key = key,
               .host = caller.host,
               .asked_at = caller.asked_at,
               .had_object = had_object});
  }
  return had_object;
}

StoreResult<void> SimObjectStore::apply_put(const Caller& caller, const std::string& key, const Slice& body) {
  if (bytes_held_ + body.size() > capacity_bytes_) {
    world_.happened("store.put.no_space");
    return fail(StoreErrc::kNoSpace, "the store is full");
  }
  store(caller, key, body);
  return {};
}

StoreResult<void> SimObjectStore::apply_put_if_absent(const Caller& caller, const std::string& key,
                                                      const Slice& body) {
  auto found = objects_.find(key);
  if (found != objects_.end()) {
    world_.happened(equal(found->second.bytes, body) ? "store.put.already_there_same"
                                                     : "store.put.already_there");
    return fail(StoreErrc::kPreconditionFailed, key + " is there");
  }
  auto recent = recent_conditional_puts_.find(key);
  if (recent != recent_conditional_puts_.end()) {
    std::erase_if(recent->second, [&](MonotonicTime when) { return world_.now() - when > kRivalWindow; });
    bool has_rival = recent->second.size() > 1;
    if (recent->second.empty()) recent_conditional_puts_.erase(recent);
    if (has_rival && draw(faults_.conflict, "store.put.conflict")) {
      return fail(StoreErrc::kConflict, "a rival write is under way");
    }
  }
  return apply_put(caller, key, body);
}

StoreResult<Slice> SimObjectStore::apply_get(const std::string& key, std::optional<ByteRange> range) {
  auto found = objects_.find(key);
  if (found == objects_.end()) return fail(StoreErrc::kNotFound, key);
  const Slice& bytes = found->second.bytes;
  if (!range) return spoil(bytes);
  if (range->offset >= bytes.size()) return fail(StoreErrc::kInvalidRange, key);
  uint64_t left = bytes.size() - range->offset;
  uint64_t size = range->size == 0 ? left : std::min(range->size, left);
  return spoil(bytes.sub(range->offset, size));
}

StoreResult<Slice> SimObjectStore::spoil(Slice body) {
  if (body.empty()) return body;
  if (draw(faults_.get_cut_short, "store.get.cut_short")) return fail(StoreErrc::kCorrupt, "short body");
  if (draw(faults_.get_short, "store.get.short")) return body.sub(0, world_.random().below(body.size()));
  if (draw(faults_.get_corrupt, "store.get.corrupt")) {
    std::vector<uint8_t> bytes(body.view().begin(), body.view().end());
    bytes[world_.random().below(bytes.size())] ^= static_cast<uint8_t>(1u << world_.random().below(8));
    return Slice::take(std::move(bytes));
  }
  return body;
}

StoreResult<ObjectInfo> SimObjectStore::apply_head(const std::string& key) {
  auto found = objects_.find(key);
  if (found == objects_.end()) return fail(StoreErrc::kNotFound, key);
  return ObjectInfo{key, found->second.bytes.size()};
}

StoreResult<ListPage> SimObjectStore::apply_list(const std::string& prefix, const std::string& start_after,
                                                 size_t max_keys) {
  if (draw(faults_.list_small_page, "store.list.small_page")) max_keys = 1 + world_.random().below(max_keys);
  ListPage page;
  auto at = start_after < prefix ? objects_.lower_bound(prefix) : objects_.upper_bound(start_after);
  for (; at != objects_.end() && at->first.starts_with(prefix); ++at) {
    if (page.objects.size() == max_keys) {
      page.is_truncated = true;
      break;
    }
    page.objects.push_back({at->first, at->second.bytes.size()});
  }
  return page;
}

StoreResult<std::vector<std::string>> SimObjectStore::apply_delete(const Caller& caller,
                                                                   const std::vector<std::string>& keys) {
  bool is_partial = draw(faults_.remove_partial, "store.delete.partial");
  std::vector<std::string> kept;
  for (const std::string& key : keys) {
    if (is_partial && world_.random().chance(1, 2)) {
      kept.push_back(key);
    } else {
      erase(caller, key);
    }
  }
  return kept;
}

void SimObjectStore::foreign_put(const std::string& key, Slice bytes) {
  world_.happened("store.foreign_put");
  store({"", world_.now()}, key, bytes);
}

void SimObjectStore::foreign_delete(const std::string& key) {
  world_.happened("store.foreign_delete");
  erase({"", world_.now()}, key);
}

bool SimObjectStore::damage(const std::string& key) {
  auto found = objects_.find(key);
  if (found == objects_.end() || found->second.bytes.empty()) return false;
  ByteView view = found->second.bytes.view();
  std::vector<uint8_t> bytes(view.begin(), view.end());
  bytes[world_.random().below(bytes.size())] ^= static_cast<uint8_t>(1u << world_.random().below(8));
  found->second.bytes = Slice::take(std::move(bytes));
  world_.happened("store.damaged_at_rest");
  return true;
}

}  // namespace varve::sim
