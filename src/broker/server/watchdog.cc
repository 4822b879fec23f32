#include "broker/server/watchdog.h"

#include <utility>

namespace varve::broker {

void Watchdog::set(Wait wait, MonotonicTime deadline) {
  deadlines_[static_cast<size_t>(wait)] = deadline;
  if (!fired_ && next() < armed_for_) start_timer();
}

void Watchdog::start_timer() {
  armed_for_ = next();
  timer_.reset();
  if (armed_for_ == MonotonicTime::never()) return;
  timer_ = executor_.start_timer(armed_for_, [this] { on_timer(); });
}

void Watchdog::on_timer() {
  if (executor_.now() >= next()) {
    fired_ = static_cast<Wait>(std::ranges::min_element(deadlines_) - deadlines_.begin());
    stream_.close();
    return;
  }
  // The job that runs now is the timer's own: keep it until it has returned.
  std::unique_ptr<runtime::Timer> finished = std::move(timer_);
  start_timer();
}

}  // namespace varve::broker
