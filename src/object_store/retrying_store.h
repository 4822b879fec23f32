// RetryingStore: gives each call of the store under it a deadline and as many attempts as fit in.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "object_store/backoff.h"
#include "object_store/object_store.h"
#include "object_store/store_operation.h"
#include "runtime/runtime.h"

namespace varve::object_store {

struct RetryOptions {
  // Of one attempt that moves no bytes; a body may take bytes / bytes_per_second_min longer. Doubles, up to half of
  // the deadline, with each attempt that ran out of it, and comes back as calls succeed quickly: a store that is slow
  // as a whole is waited for, a single call that hangs is not.
  Duration attempt_max = 2s;
  size_t bytes_per_second_min = kMiB;
  // Of a call: all attempts and the pauses between them.
  Duration deadline_max = 30s;
  // The same for get and head, whose callers have clients of their own waiting that ask again by themselves.
  Duration read_deadline_max = 15s;
  BackoffLimits backoff{};
  // Whether a write to `key` may be sent once more after an attempt that may have taken effect. Sent again it may
  // write a key that was deleted in between, which invariant 8 forbids: only for keys that nobody ever deletes.
  // Not set: every key.
  std::function<bool(std::string_view key)> may_write_twice{};
};

// A decorator; goes above the metering, which so counts each attempt. Retries throttled, conflict, timeout,
// unavailable and corrupt answers. Everything else is an answer, or needs a person (kNoSpace, kDenied: a caller that
// can wait asks again itself).
//
// Writes: once the outcome of an attempt is unknown, the call never ends with an error that says that nothing
// happened; what it cannot find out ends as kTimeout, or at once as it came if the key may not be written twice. A
// put_if_absent that finds the key taken after such an attempt reads it: its own bytes mean success.
// delete_many asks again for the keys that are left.
//
// A stop request of the caller ends a call at once. Life: made before who uses it, destroyed after; the store under
// it, the runtime and the registry outlive it. Any executor.
class RetryingStore final : public ObjectStore {
 public:
  RetryingStore(ObjectStore& store, runtime::Runtime& runtime, MetricRegistry& metrics,
                RetryOptions options = {});

  runtime::Task<StoreResult<void>> put(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<void>> put_if_absent(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override;
  runtime::Task<StoreResult<ObjectInfo>> head(std::string key) override;
  runtime::Task<StoreResult<ListPage>> list(std::string prefix, std::string start_after,
                                            size_t max_keys) override;
  runtime::Task<StoreResult<std::vector<std::string>>> delete_many(std::vector<std::string> keys) override;

  // Why attempts fail at present: what the newest that is tried again said; nullopt: one has succeeded since, or none
  // failed. Any thread.
  std::optional<std::string> last_problem() const;

 private:
  struct Call;
  template <class T>
  using Attempt = std::function<runtime::Task<StoreResult<T>>()>;

  Call begin(StoreOperation operation, Duration deadline, size_t bytes);
  Duration attempt_limit(uint32_t patience) const;
  // One attempt, with its deadline.
  template <class T>
  runtime::Task<StoreResult<T>> attempt(Call& call, runtime::Task<StoreResult<T>> task);
  // Whether to try again after `error`; if so, after a pause.
  runtime::Task<bool> goes_on(Call& call, StoreError error);
  template <class T>
  runtime::Task<StoreResult<T>> repeat(Call& call, Attempt<T> attempt_once);
  // The key is taken, and perhaps by an earlier attempt of this call.
  runtime::Task<StoreResult<void>> settle_taken(Call& call, std::string key, std::vector<Slice> body);
  static StoreError error_of(const Call& call, StoreError last);
  void count_retry(StoreOperation operation, std::string_view reason);
  bool may_write_twice(const std::string& key) const {
    return !options_.may_write_twice || options_.may_write_twice(key);
  }

  ObjectStore& store_;
  runtime::Runtime& runtime_;
  MetricRegistry& metrics_;
  const RetryOptions options_;
  // How often attempts of the operation were given more time, at most kPatienceMax.
  std::array<std::atomic<uint32_t>, kStoreOperationCount> patience_{};
  std::atomic<bool> has_problem_{false};
  mutable std::mutex mutex_;
  std::string problem_;
};

}  // namespace varve::object_store
