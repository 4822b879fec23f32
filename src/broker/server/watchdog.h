// Watchdog: closes a stream whose reader or writer waits too long.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/time.h"
#include "runtime/executor.h"
#include "runtime/network.h"

namespace varve::broker {

// Belongs to one connection and its executor. Its timer is moved only when a deadline comes nearer, so that setting
// a later one a thousand times a second costs nothing.
class Watchdog {
 public:
  enum class Wait : uint8_t { kIdle = 0, kFrame = 1, kWrite = 2 };

  // Both outlive it.
  Watchdog(runtime::Executor& executor, runtime::Stream& stream) : executor_(executor), stream_(stream) {}

  // never(): no deadline.
  void set(Wait wait, MonotonicTime deadline);
  // Which deadline passed, if one did and the stream was closed for it.
  std::optional<Wait> fired() const { return fired_; }

 private:
  MonotonicTime next() const { return *std::ranges::min_element(deadlines_); }
  void start_timer();
  void on_timer();

  runtime::Executor& executor_;
  runtime::Stream& stream_;
  std::array<MonotonicTime, 3> deadlines_{MonotonicTime::never(), MonotonicTime::never(),
                                          MonotonicTime::never()};
  MonotonicTime armed_for_ = MonotonicTime::never();
  std::unique_ptr<runtime::Timer> timer_;
  std::optional<Wait> fired_;
};

}  // namespace varve::broker
