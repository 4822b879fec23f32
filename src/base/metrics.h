// Metric instruments and the registry that prints them as Prometheus text (exposition format 0.0.4).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/time.h"

namespace varve {

// Instruments belong to a Registry, which outlives every user. Any thread may update or read one: relaxed
// atomics, no lock. Each fills its own cache line, so that executors do not slow one another down.
class alignas(64) Counter {
 public:
  void add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class alignas(64) Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double delta) { value_.fetch_add(delta, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Counts observations in fixed buckets; a value equal to a bound falls into that bound's bucket (le).
class alignas(64) Histogram {
 public:
  // bounds: strictly rising, finite; the +Inf bucket is implied.
  Histogram(std::string_view name, std::span<const double> bounds);

  void observe(double value);
  // In the unit that the metric's name ends with: _seconds or _ms. CHECKs that it ends with one.
  void observe(Duration span);

  uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  std::span<const double> bounds() const { return bounds_; }
  // Observations in the bucket, not cumulated; index bounds().size() is +Inf.
  uint64_t in_bucket(size_t index) const { return counts_[index].load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  double units_per_second_;  // 0: the name has no unit of time
  std::unique_ptr<std::atomic<uint64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

// KafScale's buckets for kafscale_produce_latency_ms, and ours for stages, from 0.1 ms to 30 s.
inline constexpr double kLatencyMsBuckets[] = {1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2000, 5000};
inline constexpr double kStageSecondsBuckets[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                  0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    30};

// Names and values, printed in the order given. Values may be any text; names are [a-zA-Z_][a-zA-Z0-9_]*.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Owned by a broker and destroyed after everything that measures. Any thread may call it; getting an
// instrument takes a lock, so callers get it once and keep the reference, which lives as long as the
// registry.
//
// Asking again for the same name and labels gives the same instrument. A name registered with two kinds or
// two sets of label names, and a malformed name, are our bugs: CHECK. Beyond
// limits.metric_series_per_name_max series, further label values share one series whose values all read
// "_other".
class MetricRegistry {
 public:
  explicit MetricRegistry(const Limits& limits = {})
      : series_per_name_max_(limits.metric_series_per_name_max) {}
  MetricRegistry(const MetricRegistry&) = delete;
  MetricRegistry& operator=(const MetricRegistry&) = delete;

  Counter& counter(std::string_view name, std::string_view help, MetricLabels labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, MetricLabels labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                       MetricLabels labels = {});
  // A gauge read when the text is made, on the thread that asks for it. `read` must not call the registry.
  void gauge_from(std::string_view name, std::string_view help, std::function<double()> read,
                  MetricLabels labels = {});

  // Everything, ordered by name and then by labels.
  std::string to_prometheus_text() const;

 private:
  using Instrument = std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>,
                                  std::unique_ptr<Histogram>, std::function<double()>>;
  enum class Kind : uint8_t { kCounter, kGauge, kHistogram };
  struct Family {
    Kind kind;
    std::string help;
    std::vector<std::string> label_names;
    std::map<std::string, Instrument> series;  // by the labels' text, without braces
  };

  static const char* kind_name(Kind kind);
  static void print_series(std::string& out, const std::string& name, const std::string& labels,
                           const Instrument& instrument);
  // The slot of the series; empty (a null pointer) when new.
  Instrument& slot(std::string_view name, std::string_view help, Kind kind, MetricLabels labels);

  const size_t series_per_name_max_;
  mutable std::mutex mutex_;
  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace varve
