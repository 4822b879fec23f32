// One lane of blocking work: a queue and its threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/executor.h"

namespace varve::runtime {

// Jobs start in the order they came; with one thread they also end in it. Thread-safe.
class OffloadLane {
 public:
  struct Options {
    std::string name;
    size_t threads = 1;
    bool is_background = false;  // lower priority
  };

  explicit OffloadLane(Options options);
  OffloadLane(const OffloadLane&) = delete;
  OffloadLane& operator=(const OffloadLane&) = delete;
  ~OffloadLane() { stop(); }

  // Dropped after stop().
  void post(Job job);

  // Runs everything queued, then joins. Not from a thread of the lane.
  void stop();

 private:
  void run(const Options& options, size_t index);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace varve::runtime
