#include "apps/varve/process_metrics.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

namespace varve::apps {
namespace {

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double thread_count() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    double count = 0;
    if (word == "Threads:" && file >> count) return count;
  }
  return 0;
}

double open_files() {
  std::error_code error;
  double count = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    ++count;
  }
  return count;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Share of one processor since it was last asked for.
class CpuMeter {
 public:
  double percent(MonotonicTime now) {
    std::lock_guard lock(mutex_);
    double wall = std::chrono::duration<double>(now.since_zero()).count();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    double used = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    double percent = wall > wall_ ? 100 * (used - used_) / (wall - wall_) : 0;
    wall_ = wall;
    used_ = used;
    return percent;
  }

 private:
  std::mutex mutex_;
  double wall_ = 0;
  double used_ = 0;
};

}  // namespace

void add_process_metrics(MetricRegistry& metrics, runtime::Runtime& runtime) {
  metrics.gauge_from("kafscale_broker_mem_alloc_bytes", "Bytes allocated and not freed",
                     [] { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd); });
  metrics.gauge_from("kafscale_broker_mem_sys_bytes", "Resident memory", resident_bytes);
  metrics.gauge_from("kafscale_broker_heap_inuse_bytes", "Bytes of the heap in use",
                     [] { return static_cast<double>(mallinfo2().uordblks); });
  metrics.gauge_from("kafscale_broker_goroutines", "Threads", thread_count);
  metrics.gauge_from("varve_open_files", "Open file descriptors", open_files);
  auto meter = std::make_shared<CpuMeter>();
  metrics.gauge_from("kafscale_broker_cpu_percent", "Use of one processor since the last reading",
                     [meter, &runtime] { return meter->percent(runtime.now()); });
}

}  // namespace varve::apps
