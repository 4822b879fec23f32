// MeteredStore: measures the store under it, and keeps the window from which its health is told.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/metrics.h"
#include "object_store/object_store.h"
#include "object_store/store_operation.h"
#include "runtime/runtime.h"

namespace varve::object_store {

enum class StoreHealth : uint8_t { kHealthy, kDegraded, kUnavailable };
std::string_view store_health_name(StoreHealth health);

// KafScale's thresholds (kafscale_s3_*); reports only.
struct StoreHealthLimits {
  Duration window = 60s;
  double latency_ms_warn = 500;
  double latency_ms_crit = 2000;
  double error_rate_warn = 0.01;
  double error_rate_crit = 0.05;
  size_t samples_max = 512;
  // Below so many samples one slow or failed call says nothing.
  size_t samples_min = 5;
};

// A decorator. Counts calls, failures, bytes and times by operation; adds no latency worth naming. Not found, a
// precondition that fails and a range past the end are answers, not failures.
// Life: made before who uses it, destroyed after; the store under it, the runtime and the registry outlive it.
class MeteredStore final : public ObjectStore {
 public:
  MeteredStore(ObjectStore& store, runtime::Runtime& runtime, MetricRegistry& metrics,
               StoreHealthLimits limits = {});
  ~MeteredStore() override;

  runtime::Task<StoreResult<void>> put(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<void>> put_if_absent(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override;
  runtime::Task<StoreResult<ObjectInfo>> head(std::string key) override;
  runtime::Task<StoreResult<ListPage>> list(std::string prefix, std::string start_after,
                                            size_t max_keys) override;
  runtime::Task<StoreResult<std::vector<std::string>>> delete_many(std::vector<std::string> keys) override;

  // Any thread.
  StoreHealth health() const;

 private:
  struct Meters {
    Counter* failures;
    Histogram* seconds;
  };
  struct Sample {
    MonotonicTime at;
    double ms;
    bool has_failed;
  };
  struct Window {
    double latency_ms_avg = 0;
    double error_rate = 0;
    size_t samples = 0;
  };

  // `call` is a put of so many bytes; it has not begun.
  runtime::Task<StoreResult<void>> measured_put(size_t bytes, runtime::Task<StoreResult<void>> call);
  template <class T>
  StoreResult<T> measured(StoreOperation operation, MonotonicTime began, StoreResult<T> result);
  void note(StoreOperation operation, Duration taken, bool has_failed);
  Window window() const;
  // Needs the mutex. The state as of the last sample, and since when.
  void update_health(MonotonicTime now);
  StoreHealth judged(const Window& window) const;
  Window window_of_samples(MonotonicTime now) const;
  void add_gauges(MetricRegistry& metrics);

  ObjectStore& store_;
  runtime::Runtime& runtime_;
  const StoreHealthLimits limits_;
  std::array<Meters, kStoreOperationCount> meters_{};
  Counter& bytes_put_;
  Counter& bytes_got_;

  mutable std::mutex mutex_;
  std::deque<Sample> samples_;
  StoreHealth health_ = StoreHealth::kHealthy;
  MonotonicTime health_since_;
};

}  // namespace varve::object_store
