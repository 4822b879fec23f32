#include "runtime/asio/threads.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace varve::runtime {

void name_this_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

void lower_this_threads_priority() {
  // ioprio_set(2) has no wrapper: who = one thread (1), itself (0); class best effort (2), lowest level (7).
  // Not the idle class: behind a busy disk it would never be served.
  constexpr int kWhoProcess = 1;
  constexpr int kBestEffortLowest = (2 << 13) | 7;
  syscall(SYS_ioprio_set, kWhoProcess, 0, kBestEffortLowest);
  // On Linux the nice value belongs to the thread. Below the others, whatever the process was started with.
  constexpr int kBelow = 10;
  auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kBelow);
}

}  // namespace varve::runtime
