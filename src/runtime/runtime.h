// Runtime: the seam to the world. Production has runtime/asio, the simulator its own; everything else takes
// a Runtime& and names no clock, thread, socket or file of the operating system.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "base/random.h"
#include "base/time.h"
#include "runtime/completion.h"
#include "runtime/executor.h"
#include "runtime/file_system.h"
#include "runtime/network.h"
#include "runtime/task.h"

namespace varve::runtime {

// Queues of blocking work. Each lane runs its jobs in order on threads of its own, so that slow work of one kind
// never delays another.
enum class Lane : uint8_t {
  kLog,      // the metadata log's SQLite; one thread
  kDisk,     // the local-folder object store; several threads, order between jobs is not kept
  kBulk,     // catch-up reads and maintenance; low priority, one thread
  kResolve,  // name lookup
};
inline constexpr size_t kLaneCount = 4;

// One broker's world. Life: made by main() or the simulator before the broker, destroyed after it.
class Runtime {
 public:
  virtual ~Runtime() = default;

  // Any thread.
  virtual MonotonicTime now() const = 0;
  // Any thread. The host's idea of the date; may jump either way.
  virtual WallTime wall_now() const = 0;
  // Any thread. Seeds for Random: nonces, topic ids, jitter.
  virtual uint64_t random_seed() = 0;

  // Bookkeeping of cluster state: plain functions only (call()), no coroutine, nothing that blocks.
  virtual Executor& core() = 0;
  // Connections, checksums, object-store I/O: where coroutines live.
  virtual size_t io_count() const = 0;
  virtual Executor& io(size_t index) = 0;

  // Any thread. Runs `job`, which may block, in the lane.
  virtual void offload(Lane lane, Job job) = 0;

  virtual FileSystem& file_system() = 0;
  virtual Network& network() = 0;
};

// co_await call(executor, fn): runs fn() on another executor and gives its result here. Values in, values out.
template <std::invocable Function>
auto call(Executor& executor, Function function) -> Task<std::invoke_result_t<Function>> {
  using R = std::invoke_result_t<Function>;
  if constexpr (std::is_void_v<R>) {
    Completion<Done> done;
    executor.post([done, function = std::move(function)]() mutable {
      function();
      done.set(Done{});
    });
    co_await done.wait();
  } else {
    Completion<R> done;
    executor.post([done, function = std::move(function)]() mutable { done.set(function()); });
    co_return co_await done.wait();
  }
}

// co_await offload(runtime, lane, fn): runs blocking work in a lane and gives its result here.
template <std::invocable Function>
auto offload(Runtime& runtime, Lane lane, Function function) -> Task<std::invoke_result_t<Function>> {
  using R = std::invoke_result_t<Function>;
  if constexpr (std::is_void_v<R>) {
    Completion<Done> done;
    runtime.offload(lane, [done, function = std::move(function)]() mutable {
      function();
      done.set(Done{});
    });
    co_await done.wait();
  } else {
    Completion<R> done;
    runtime.offload(lane, [done, function = std::move(function)]() mutable { done.set(function()); });
    co_return co_await done.wait();
  }
}

enum class Wake : uint8_t { kTimeReached, kStopped };

// Sleeps on the task's executor until `when`, or until the task's context is asked to stop.
Task<Wake> sleep_until(MonotonicTime when);
Task<Wake> sleep_for(Duration span);

// Waits for the completion until `when` or until the context is asked to stop, whichever is first;
// `otherwise` is the value in the latter two cases. The completion is set in every case, so a late setter
// is told so.
template <class T>
Task<T> wait_until(Completion<T> completion, MonotonicTime when, T otherwise) {
  TaskContext& context = co_await this_context();
  std::unique_ptr<Timer> timer;
  if (when != MonotonicTime::never()) {
    timer = context.executor->start_timer(when, [completion, otherwise] { completion.set(otherwise); });
  }
  std::stop_callback on_stop(context.stop, [completion, otherwise] { completion.set(otherwise); });
  co_return co_await completion.wait();
}

// Runs `task` in a context of its own, which is asked to stop at `when`, or when the outer one is. The result is
// the task's: what it gives when stopped is its own affair.
template <class T>
Task<T> with_deadline(MonotonicTime when, Task<T> task) {
  TaskContext& outer = co_await this_context();
  std::stop_source stop;
  std::unique_ptr<Timer> timer;
  if (when != MonotonicTime::never()) {
    timer = outer.executor->start_timer(when, [stop]() mutable { stop.request_stop(); });
  }
  std::stop_callback on_stop(outer.stop, [stop]() mutable { stop.request_stop(); });
  TaskContext inner{outer.executor, stop.get_token()};
  co_return co_await std::move(task).in_context(inner);
}

}  // namespace varve::runtime
