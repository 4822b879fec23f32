// The real world: threads, sockets, files and clocks of Linux. Asio itself stays in the .cc files beside.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "runtime/runtime.h"

namespace varve::runtime {

struct AsioOptions {
  size_t io_threads = 2;    // 1 to 256
  size_t disk_threads = 8;  // of Lane::kDisk; 1 to 256
};

// Life: made by main() before everything else; the constructor starts all threads. Close every TaskScope,
// then stop(), then destroy. Scopes that could not be closed may be destroyed between stop() and the
// destructor.
class AsioRuntime final : public Runtime {
 public:
  explicit AsioRuntime(AsioOptions options);
  AsioRuntime(const AsioRuntime&) = delete;
  AsioRuntime& operator=(const AsioRuntime&) = delete;
  ~AsioRuntime() override;

  MonotonicTime now() const override;
  WallTime wall_now() const override;
  uint64_t random_seed() override;
  Executor& core() override;
  size_t io_count() const override;
  Executor& io(size_t index) override;
  void offload(Lane lane, Job job) override;
  FileSystem& file_system() override;
  Network& network() override;

  // Runs what the lanes hold to its end, lets the executors finish the jobs posted by then, and joins all
  // threads. Later jobs are dropped. Not from a thread of this runtime; again it does nothing.
  void stop();

  // Set to the number of the first of `signals` (SIGTERM, ...) that arrives from now on. After that one they
  // have their former effect again, so that a second, impatient ^C ends the process.
  Completion<int> on_signal(std::span<const int> signals);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::runtime
