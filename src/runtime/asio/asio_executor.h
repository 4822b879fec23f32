// One io_context and its thread. Private to runtime/asio: includes Asio.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/executor.h"

namespace varve::runtime {

// Jobs are kept in a queue of our own and drained in batches by one Asio handler, so a post costs one lock
// and a batch one wake-up. Between batches Asio's reactor gets its turn: posts cannot starve sockets.
class AsioExecutor final : public Executor {
 public:
  explicit AsioExecutor(std::string name);
  AsioExecutor(const AsioExecutor&) = delete;
  AsioExecutor& operator=(const AsioExecutor&) = delete;
  ~AsioExecutor() override;

  void post(Job job) override;
  std::unique_ptr<Timer> start_timer(MonotonicTime when, Job job) override;
  MonotonicTime now() const override;
  bool is_current() const override;
  std::string_view name() const override { return name_; }

  boost::asio::io_context& context() { return context_; }

  // Finishes the jobs posted so far and joins the thread; later jobs are dropped.
  void stop();

 private:
  class HeldTimer;
  // Equal times keep the order in which they were started.
  using TimerKey = std::pair<MonotonicTime, uint64_t>;

  void schedule_drain();
  void drain();
  void arm();
  void fire_timers();

  const std::string name_;
  boost::asio::io_context context_;

  std::mutex mutex_;
  std::vector<Job> queue_;
  bool drain_is_scheduled_ = false;
  bool stopped_ = false;

  // The rest belongs to the thread.
  std::vector<Job> draining_;
  std::map<TimerKey, Job> timers_;
  uint64_t next_timer_ = 0;
  boost::asio::steady_timer alarm_;
  MonotonicTime armed_for_ = MonotonicTime::never();

  std::thread thread_;
};

}  // namespace varve::runtime
