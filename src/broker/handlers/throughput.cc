#include "broker/handlers/throughput.h"

#include <algorithm>
#include <numeric>

namespace varve::broker {
namespace {

int64_t second_of(MonotonicTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.since_zero()).count();
}

}  // namespace

MessageRate::MessageRate(Duration window)
    : window_seconds_(std::max<int64_t>(1, std::chrono::duration_cast<std::chrono::seconds>(window).count())),
      counts_(static_cast<size_t>(window_seconds_)) {}

void MessageRate::add(uint64_t messages, MonotonicTime now) {
  std::lock_guard lock(mutex_);
  int64_t second = second_of(now);
  advance(second);
  counts_[static_cast<size_t>(second % window_seconds_)] += messages;
}

double MessageRate::per_second(MonotonicTime now) const {
  std::lock_guard lock(mutex_);
  advance(second_of(now));
  uint64_t sum = std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
  return static_cast<double>(sum) / static_cast<double>(window_seconds_);
}

// Clears the seconds between the newest one counted and `second`.
void MessageRate::advance(int64_t second) const {
  if (second <= second_) return;
  int64_t steps = std::min(second - second_, window_seconds_);
  for (int64_t i = 1; i <= steps; ++i) counts_[static_cast<size_t>((second_ + i) % window_seconds_)] = 0;
  second_ = second;
}

}  // namespace varve::broker
