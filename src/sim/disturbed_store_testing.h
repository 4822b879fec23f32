// For tests: a store in front of another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "object_store/object_store.h"

namespace varve::sim {

// Lets something happen before a call reaches the store under it, which it owns. Derive and override.
class DisturbedStore : public object_store::ObjectStore {
 public:
  explicit DisturbedStore(std::unique_ptr<object_store::ObjectStore> store) : store_(std::move(store)) {}

  virtual runtime::Task<> before_put_if_absent(std::string) { co_return; }
  virtual runtime::Task<> before_list(std::string) { co_return; }

  runtime::Task<object_store::StoreResult<void>> put(std::string key, std::vector<Slice> body) override {
    return store_->put(std::move(key), std::move(body));
  }
  runtime::Task<object_store::StoreResult<void>> put_if_absent(std::string key,
                                                               std::vector<Slice> body) override {
    co_await before_put_if_absent(key);
    co_return co_await store_->put_if_absent(std::move(key), std::move(body));
  }
  runtime::Task<object_store::StoreResult<Slice>> get(std::string key,
                                                      std::optional<object_store::ByteRange> range) override {
    return store_->get(std::move(key), range);
  }
  runtime::Task<object_store::StoreResult<object_store::ObjectInfo>> head(std::string key) override {
    return store_->head(std::move(key));
  }
  runtime::Task<object_store::StoreResult<object_store::ListPage>> list(std::string prefix,
                                                                        std::string start_after,
                                                                        size_t max_keys) override {
    co_await before_list(prefix);
    co_return co_await store_->list(std::move(prefix), std::move(start_after), max_keys);
  }
  runtime::Task<object_store::StoreResult<std::vector<std::string>>> delete_many(
      std::vector<std::string> keys) override {
    return store_->delete_many(std::move(keys));
  }

 private:
  std::unique_ptr<object_store::ObjectStore> store_;
};

}  // namespace varve::sim
