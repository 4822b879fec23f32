#include "runtime/asio/offload_lane.h"

#include <fmt/format.h>

#include "runtime/asio/threads.h"

namespace varve::runtime {

OffloadLane::OffloadLane(Options options) {
  for (size_t i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this, options, i] { run(options, i); });
  }
}

void OffloadLane::run(const Options& options, size_t index) {
  name_this_thread(options.threads == 1 ? options.name : fmt::format("{}-{}", options.name, index));
  if (options.is_background) lower_this_threads_priority();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    {
      Job job = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
}

void OffloadLane::post(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void OffloadLane::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace varve::runtime
