// Points and spans of time. Types only: clocks belong to the runtime.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/strong.h"

namespace varve {

using Duration = std::chrono::nanoseconds;
using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;

// Nanoseconds of a clock that only goes forward; its zero means nothing.
class MonotonicTime {
 public:
  constexpr MonotonicTime() = default;
  constexpr explicit MonotonicTime(Duration since_zero) : since_zero_(since_zero) {}
  static constexpr MonotonicTime never() { return MonotonicTime(Duration::max()); }

  constexpr Duration since_zero() const { return since_zero_; }
  constexpr auto operator<=>(const MonotonicTime&) const = default;
  constexpr Duration operator-(MonotonicTime earlier) const { return since_zero_ - earlier.since_zero_; }
  // Saturates at never().
  constexpr MonotonicTime operator+(Duration span) const {
    if (span > Duration::max() - since_zero_) return never();
    return MonotonicTime(since_zero_ + span);
  }

 private:
  Duration since_zero_{0};
};

// Milliseconds since 1970 UTC, as Kafka counts them.
using WallTime = Strong<int64_t, struct WallTimeTag>;

}  // namespace varve
