#include "runtime/asio/asio_executor.h"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <chrono>

#include "base/check.h"
#include "runtime/asio/threads.h"

namespace varve::runtime {

// Forgets the job when destroyed; harmless after the job ran.
class AsioExecutor::HeldTimer final : public Timer {
 public:
  HeldTimer(AsioExecutor& executor, TimerKey key) : executor_(executor), key_(key) {}
  HeldTimer(const HeldTimer&) = delete;
  HeldTimer& operator=(const HeldTimer&) = delete;
  ~HeldTimer() override {
    // The job is destroyed after the map is in order again: its destructor may start or cancel timers.
    auto held = executor_.timers_.extract(key_);
  }

 private:
  AsioExecutor& executor_;
  TimerKey key_;
};

AsioExecutor::AsioExecutor(std::string name) : name_(std::move(name)), context_(1), alarm_(context_) {
  std::atomic<bool> running = false;
  thread_ = std::thread([this, &running] {
    name_this_thread(name_);
    auto work = boost::asio::make_work_guard(context_);
    running = true;
    running.notify_one();
    context_.run();
  });
  running.wait(false);
}

AsioExecutor::~AsioExecutor() { stop(); }

void AsioExecutor::post(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    queue_.push_back(std::move(job));
    if (drain_is_scheduled_) return;
    drain_is_scheduled_ = true;
  }
  schedule_drain();
}

void AsioExecutor::schedule_drain() {
  boost::asio::post(context_, [this] { drain(); });
}

void AsioExecutor::drain() {
  {
    std::lock_guard lock(mutex_);
    draining_.swap(queue_);
  }
  for (Job& slot : draining_) {
    Job job = std::move(slot);
    job();
  }
  draining_.clear();
  {
    std::lock_guard lock(mutex_);
    if (queue_.empty()) {
      drain_is_scheduled_ = false;
      return;
    }
  }
  schedule_drain();
}

std::unique_ptr<Timer> AsioExecutor::start_timer(MonotonicTime when, Job job) {
  CHECK(is_current(), "timer started on {} from another thread", name_);
  TimerKey key{when, next_timer_++};
  timers_.emplace(key, std::move(job));
  arm();
  return std::make_unique<HeldTimer>(*this, key);
}

// One alarm for all timers. A cancelled timer leaves it set: waking once for nothing costs less than setting
// it anew for each deadline that did not come.
void AsioExecutor::arm() {
  if (timers_.empty()) return;
  MonotonicTime first = timers_.begin()->first.first;
  if (first >= armed_for_) return;
  armed_for_ = first;
  alarm_.expires_at(std::chrono::steady_clock::time_point(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(first.since_zero())));
  alarm_.async_wait([this](const boost::system::error_code& error) {
    if (!error) fire_timers();
  });
}

void AsioExecutor::fire_timers() {
  armed_for_ = MonotonicTime::never();
  // What a job starts anew for a time already past waits for the next round, so that jobs and sockets come
  // first.
  MonotonicTime limit = now();
  uint64_t end = next_timer_;
  for (auto at = timers_.begin(); at != timers_.end() && at->first.first <= limit;) {
    TimerKey key = at->first;
    if (key.second < end) {
      auto due = timers_.extract(at);
      due.mapped()();
    }
    at = timers_.upper_bound(key);  // the job may have changed the map
  }
  arm();
}

MonotonicTime AsioExecutor::now() const {
  return MonotonicTime(std::chrono::steady_clock::now().time_since_epoch());
}

bool AsioExecutor::is_current() const { return thread_.get_id() == std::this_thread::get_id(); }

void AsioExecutor::stop() {
  if (!thread_.joinable()) return;
  CHECK(!is_current(), "{} cannot stop itself", name_);
  post([this] { context_.stop(); });
  thread_.join();
  std::vector<Job> left;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(queue_);
  }
}

}  // namespace varve::runtime
