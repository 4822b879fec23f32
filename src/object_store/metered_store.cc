#include "object_store/metered_store.h"

#include <utility>

namespace varve::object_store {
namespace {

bool is_failure(StoreErrc code) {
  switch (code) {
    case StoreErrc::kNotFound:
    case StoreErrc::kPreconditionFailed:
    case StoreErrc::kConflict:
    case StoreErrc::kInvalidRange:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string_view store_health_name(StoreHealth health) {
  switch (health) {
    case StoreHealth::kHealthy:
      return "healthy";
    case StoreHealth::kDegraded:
      return "degraded";
    case StoreHealth::kUnavailable:
      return "unavailable";
  }
  return "";
}

MeteredStore::MeteredStore(ObjectStore& store, runtime::Runtime& runtime, MetricRegistry& metrics,
                           StoreHealthLimits limits)
    : store_(store),
      runtime_(runtime),
      limits_(limits),
      bytes_put_(metrics.counter("varve_store_put_bytes_total", "Bytes of objects put")),
      bytes_got_(metrics.counter("varve_store_get_bytes_total", "Bytes of objects read")),
      health_since_(runtime.now()) {
  for (size_t i = 0; i < kStoreOperationCount; ++i) {
    MetricLabels labels = {{"operation", std::string(kStoreOperationNames[i])}};
    meters_[i].failures =
        &metrics.counter("varve_store_failures_total", "Calls of the object store that failed", labels);
    meters_[i].seconds = &metrics.histogram("varve_store_seconds", "Time of a call of the object store",
                                            kStageSecondsBuckets, labels);
  }
  add_gauges(metrics);
}

MeteredStore::~MeteredStore() = default;

// KafScale's names; its own dashboard asks for the states with a capital, its broker gives them without.
void MeteredStore::add_gauges(MetricRegistry& metrics) {
  for (StoreHealth state : {StoreHealth::kHealthy, StoreHealth::kDegraded, StoreHealth::kUnavailable}) {
    std::string name(store_health_name(state));
    std::string capital = name;
    capital[0] = static_cast<char>(capital[0] - 'a' + 'A');
    for (const std::string& label : {name, capital}) {
      metrics.gauge_from("kafscale_s3_health_state", "1 for the state that the object store is in",
                         [this, state] { return health() == state ? 1.0 : 0.0; }, {{"state", label}});
    }
  }
  metrics.gauge_from("kafscale_s3_latency_ms_avg", "Mean latency of the object store over the window",
                     [this] { return window().latency_ms_avg; });
  metrics.gauge_from("kafscale_s3_error_rate", "Share of failed calls of the object store over the window",
                     [this] { return window().error_rate; });
  metrics.gauge_from("kafscale_s3_state_duration_seconds", "Time since the state of the object store changed",
                     [this] {
                       std::lock_guard lock(mutex_);
                       return std::chrono::duration<double>(runtime_.now() - health_since_).count();
                     });
}

runtime::Task<StoreResult<void>> MeteredStore::put(std::string key, std::vector<Slice> body) {
  size_t bytes = total_size(body);
  return measured_put(bytes, store_.put(std::move(key), std::move(body)));
}

runtime::Task<StoreResult<void>> MeteredStore::put_if_absent(std::string key, std::vector<Slice> body) {
  size_t bytes = total_size(body);
  return measured_put(bytes, store_.put_if_absent(std::move(key), std::move(body)));
}

runtime::Task<StoreResult<void>> MeteredStore::measured_put(size_t bytes,
                                                            runtime::Task<StoreResult<void>> call) {
  MonotonicTime began = runtime_.now();
  auto result = measured(kPut, began, co_await std::move(call));
  if (result) bytes_put_.add(bytes);
  co_return result;
}

runtime::Task<StoreResult<Slice>> MeteredStore::get(std::string key, std::optional<ByteRange> range) {
  MonotonicTime began = runtime_.now();
  auto result = measured(kGet, began, co_await store_.get(std::move(key), range));
  if (result) bytes_got_.add(result->size());
  co_return result;
}

runtime::Task<StoreResult<ObjectInfo>> MeteredStore::head(std::string key) {
  MonotonicTime began = runtime_.now();
  co_return measured(kHead, began, co_await store_.head(std::move(key)));
}

runtime::Task<StoreResult<ListPage>> MeteredStore::list(std::string prefix, std::string start_after,
                                                        size_t max_keys) {
  MonotonicTime began = runtime_.now();
  co_return measured(kList, began, co_await store_.list(std::move(prefix), std::move(start_after), max_keys));
}

runtime::Task<StoreResult<std::vector<std::string>>> MeteredStore::delete_many(
    std::vector<std::string> keys) {
  MonotonicTime began = runtime_.now();
  co_return measured(kDelete, began, co_await store_.delete_many(std::move(keys)));
}

template <class T>
StoreResult<T> MeteredStore::measured(StoreOperation operation, MonotonicTime began, StoreResult<T> result) {
  note(operation, runtime_.now() - began, !result && is_failure(result.error().code));
  return result;
}

void MeteredStore::note(StoreOperation operation, Duration taken, bool has_failed) {
  meters_[operation].seconds->observe(taken);
  if (has_failed) meters_[operation].failures->add();
  std::lock_guard lock(mutex_);
  MonotonicTime now = runtime_.now();
  samples_.push_back({now, std::chrono::duration<double, std::milli>(taken).count(), has_failed});
  while (samples_.size() > limits_.samples_max || now - samples_.front().at > limits_.window)
    samples_.pop_front();
  update_health(now);
}

MeteredStore::Window MeteredStore::window_of_samples(MonotonicTime now) const {
  Window window;
  double failed = 0;
  for (const Sample& sample : samples_) {
    if (now - sample.at > limits_.window) continue;
    ++window.samples;
    window.latency_ms_avg += sample.ms;
    failed += sample.has_failed ? 1 : 0;
  }
  if (window.samples == 0) return window;
  window.latency_ms_avg /= static_cast<double>(window.samples);
  window.error_rate = failed / static_cast<double>(window.samples);
  return window;
}

MeteredStore::Window MeteredStore::window() const {
  std::lock_guard lock(mutex_);
  return window_of_samples(runtime_.now());
}

StoreHealth MeteredStore::judged(const Window& window) const {
  if (window.samples < limits_.samples_min) return StoreHealth::kHealthy;
  if (window.latency_ms_avg >= limits_.latency_ms_crit || window.error_rate >= limits_.error_rate_crit) {
    return StoreHealth::kUnavailable;
  }
  if (window.latency_ms_avg >= limits_.latency_ms_warn || window.error_rate >= limits_.error_rate_warn) {
    return StoreHealth::kDegraded;
  }
  return StoreHealth::kHealthy;
}

void MeteredStore::update_health(MonotonicTime now) {
  StoreHealth health = judged(window_of_samples(now));
  if (health == health_) return;
  health_ = health;
  health_since_ = now;
}

StoreHealth MeteredStore::health() const {
  std::lock_guard lock(mutex_);
  return judged(window_of_samples(runtime_.now()));
}

}  // namespace varve::object_store
