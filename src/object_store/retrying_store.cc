#include "object_store/retrying_store.h"

#include <algorithm>
#include <utility>

namespace varve::object_store {

using runtime::Task;

namespace {

constexpr uint32_t kPatienceMax = 4;
// What a whole object may weigh when nobody says.
constexpr size_t kUnknownBodyBytes = 4 * kMiB;
// Reads that may disagree before it stays unknown whose object has the key.
constexpr int kSettlingReadsMax = 4;

// What needs a person, or room, may heal, but not within a call.
bool is_retried(StoreErrc code) {
  return is_retriable(code) && code != StoreErrc::kNoSpace && code != StoreErrc::kDenied;
}

std::string_view reason_name(StoreErrc code) {
  switch (code) {
    case StoreErrc::kConflict:
      return "conflict";
    case StoreErrc::kThrottled:
      return "throttled";
    case StoreErrc::kTimeout:
      return "timeout";
    case StoreErrc::kUnavailable:
      return "unavailable";
    case StoreErrc::kCorrupt:
      return "corrupt";
    default:
      return "other";
  }
}

bool holds(const Slice& object, const std::vector<Slice>& body) {
  if (object.size() != total_size(body)) return false;
  const uint8_t* at = object.data();
  for (const Slice& slice : body) {
    if (!std::equal(slice.view().begin(), slice.view().end(), at)) return false;
    at += slice.size();
  }
  return true;
}

}  // namespace

// Lives in the frame of the call.
struct RetryingStore::Call {
  StoreOperation operation;
  MonotonicTime deadline;
  Duration body_time;
  bool may_repeat_unknown = true;
  std::optional<StoreError> unknown{};  // of a write: the last outcome that leaves its effect open
  Backoff backoff;
};

RetryingStore::RetryingStore(ObjectStore& store, runtime::Runtime& runtime, MetricRegistry& metrics,
                             RetryOptions options)
    : store_(store), runtime_(runtime), metrics_(metrics), options_(std::move(options)) {}

RetryingStore::Call RetryingStore::begin(StoreOperation operation, Duration deadline, size_t bytes) {
  Duration body_time(
      static_cast<int64_t>(static_cast<double>(bytes) / static_cast<double>(options_.bytes_per_second_min) *
                           static_cast<double>(Duration(1s).count())));
  return Call{.operation = operation,
              .deadline = runtime_.now() + deadline,
              .body_time = body_time,
              .backoff = Backoff(runtime_, options_.backoff)};
}

template <class T>
Task<StoreResult<T>> RetryingStore::attempt(Call& call, Task<StoreResult<T>> task) {
  if ((co_await runtime::this_context()).stop.stop_requested()) {
    co_return fail(StoreErrc::kTimeout, "asked to stop");
  }
  std::atomic<uint32_t>& patience = patience_[call.operation];
  uint32_t level = patience.load(std::memory_order_relaxed);
  MonotonicTime begin = runtime_.now();
  Duration limit = attempt_limit(level) + call.body_time;
  MonotonicTime end = std::min(call.deadline, begin + limit);
  StoreResult<T> result = co_await runtime::with_deadline(end, std::move(task));
  if (result) {
    has_problem_.store(false, std::memory_order_relaxed);
    bool is_quick = level > 0 && runtime_.now() - begin < attempt_limit(level - 1) / 2;
    if (is_quick) patience.compare_exchange_strong(level, level - 1, std::memory_order_relaxed);
  } else if (result.error().code == StoreErrc::kTimeout && runtime_.now() >= end) {
    if (level < kPatienceMax) patience.compare_exchange_strong(level, level + 1, std::memory_order_relaxed);
    result.error().message = fmt::format(
        "no answer within {} ms", std::chrono::duration_cast<std::chrono::milliseconds>(end - begin).count());
  }
  co_return result;
}

Duration RetryingStore::attempt_limit(uint32_t patience) const {
  Duration grown = std::min(options_.attempt_max * (1 << patience), options_.deadline_max / 2);
  return std::max(options_.attempt_max, grown);
}

Task<bool> RetryingStore::goes_on(Call& call, StoreError error) {
  if (is_outcome_unknown(error.code)) call.unknown = error;
  if (!is_retried(error.code) || (call.unknown && !call.may_repeat_unknown)) co_return false;
  {
    std::lock_guard lock(mutex_);
    problem_ = std::move(error.message);
    has_problem_.store(true, std::memory_order_relaxed);
  }
  MonotonicTime when = runtime_.now() + call.backoff.next();
  if (when >= call.deadline) co_return false;
  if (co_await runtime::sleep_until(when) == runtime::Wake::kStopped) co_return false;
  count_retry(call.operation, reason_name(error.code));
  co_return true;
}

std::optional<std::string> RetryingStore::last_problem() const {
  if (!has_problem_.load(std::memory_order_relaxed)) return std::nullopt;
  std::lock_guard lock(mutex_);
  return problem_;
}

void RetryingStore::count_retry(StoreOperation operation, std::string_view reason) {
  metrics_
      .counter("varve_store_retries_total", "Attempts of calls of the object store after the first",
               {{"operation", std::string(kStoreOperationNames[operation])}, {"reason", std::string(reason)}})
      .add();
}

// What a write that failed is told to have come to.
StoreError RetryingStore::error_of(const Call& call, StoreError last) {
  if (!call.unknown || is_outcome_unknown(last.code)) return last;
  return {StoreErrc::kTimeout,
          fmt::format("{}; an earlier attempt: {}", last.message, call.unknown->message)};
}

template <class T>
Task<StoreResult<T>> RetryingStore::repeat(Call& call, Attempt<T> attempt_once) {
  while (true) {
    StoreResult<T> result = co_await attempt<T>(call, attempt_once());
    if (result || !co_await goes_on(call, result.error())) co_return result;
  }
}

Task<StoreResult<void>> RetryingStore::put(std::string key, std::vector<Slice> body) {
  Call call = begin(kPut, options_.deadline_max, total_size(body));
  call.may_repeat_unknown = may_write_twice(key);
  StoreResult<void> result = co_await repeat<void>(call, [&] { return store_.put(key, body); });
  if (!result) co_return std::unexpected(error_of(call, std::move(result.error())));
  co_return result;
}

Task<StoreResult<void>> RetryingStore::put_if_absent(std::string key, std::vector<Slice> body) {
  Call call = begin(kPut, options_.deadline_max, total_size(body));
  call.may_repeat_unknown = may_write_twice(key);
  StoreResult<void> result = co_await repeat<void>(call, [&] { return store_.put_if_absent(key, body); });
  if (result) co_return result;
  if (call.unknown && result.error().code == StoreErrc::kPreconditionFailed) {
    co_return co_await settle_taken(call, key, body);
  }
  co_return std::unexpected(error_of(call, std::move(result.error())));
}

Task<StoreResult<void>> RetryingStore::settle_taken(Call& call, std::string key, std::vector<Slice> body) {
  std::optional<Slice> before;
  for (int reads = 0; reads < kSettlingReadsMax; ++reads) {
    Call reading = begin(kGet, call.deadline - runtime_.now(), total_size(body));
    StoreResult<Slice> found = co_await repeat<Slice>(reading, [&] { return store_.get(key, std::nullopt); });
    if (!found) {
      co_return fail(StoreErrc::kTimeout,
                     fmt::format("{} is there, perhaps by this call: {}", key, found.error().message));
    }
    if (holds(*found, body)) co_return StoreResult<void>();
    // A single read may have been damaged on its way.
    if (before && *before == *found) {
      co_return fail(StoreErrc::kPreconditionFailed, key + " is there, with other bytes");
    }
    before = std::move(*found);
  }
  co_return fail(StoreErrc::kTimeout, key + " is there, and no two reads of it agree");
}

Task<StoreResult<Slice>> RetryingStore::get(std::string key, std::optional<ByteRange> range) {
  bool is_bounded = range && range->size != 0;
  Call call = begin(kGet, options_.read_deadline_max,
                    is_bounded ? std::min<uint64_t>(range->size, UINT32_MAX) : kUnknownBodyBytes);
  co_return co_await repeat<Slice>(call, [&] { return store_.get(key, range); });
}

Task<StoreResult<ObjectInfo>> RetryingStore::head(std::string key) {
  Call call = begin(kHead, options_.read_deadline_max, 0);
  co_return co_await repeat<ObjectInfo>(call, [&] { return store_.head(key); });
}

Task<StoreResult<ListPage>> RetryingStore::list(std::string prefix, std::string start_after,
                                                size_t max_keys) {
  Call call = begin(kList, options_.deadline_max, 0);
  co_return co_await repeat<ListPage>(call, [&] { return store_.list(prefix, start_after, max_keys); });
}

Task<StoreResult<std::vector<std::string>>> RetryingStore::delete_many(std::vector<std::string> keys) {
  Call call = begin(kDelete, options_.deadline_max, 0);
  bool is_answered = false;
  while (true) {
    StoreResult<std::vector<std::string>> left =
        co_await attempt<std::vector<std::string>>(call, store_.delete_many(keys));
    if (left) {
      is_answered = true;
      keys = std::move(*left);
      if (keys.empty()) co_return std::move(keys);
    }
    StoreError error =
        left ? StoreError{StoreErrc::kUnavailable, "some keys were not deleted"} : std::move(left.error());
    if (co_await goes_on(call, error)) continue;
    if (is_answered) co_return std::move(keys);
    co_return std::unexpected(error_of(call, std::move(error)));
  }
}

}  // namespace varve::object_store
