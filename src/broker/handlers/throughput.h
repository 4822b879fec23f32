// Throughput: messages a second over a sliding window, for KafScale's kafscale_produce_rps and kafscale_fetch_rps.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/time.h"

namespace varve::broker {

// Counts by the second. Any thread.
class MessageRate {
 public:
  explicit MessageRate(Duration window);

  void add(uint64_t messages, MonotonicTime now);
  double per_second(MonotonicTime now) const;

 private:
  void advance(int64_t second) const;

  const int64_t window_seconds_;
  mutable std::mutex mutex_;
  mutable std::vector<uint64_t> counts_;  // by second modulo the window
  mutable int64_t second_ = 0;            // the newest one counted
};

struct Throughput {
  explicit Throughput(Duration window) : produced(window), fetched(window) {}

  MessageRate produced;
  MessageRate fetched;
};

}  // namespace varve::broker
