// run_blocking(): the bridge from a plain thread (main, a test) into tasks.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include "runtime/task.h"

namespace varve::runtime {

namespace internal {

struct BlockingWait {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;

  void finish() {
    std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return done; });
  }
};

// The root frame: it is gone before the waiting thread goes on.
struct BlockingRoot {
  struct promise_type : PromiseBase {
    TaskContext root_context;
    std::shared_ptr<BlockingWait> wait;

    struct Leave {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> frame) const noexcept {
        std::shared_ptr<BlockingWait> done = std::move(frame.promise().wait);
        frame.destroy();
        done->finish();
      }
      void await_resume() const noexcept {}
    };

    BlockingRoot get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    void return_void() const noexcept {}
    Leave final_suspend() const noexcept { return {}; }
  };

  std::coroutine_handle<promise_type> handle;
};

template <class T>
BlockingRoot run_root(Task<T> task, std::optional<T>* result) {
  result->emplace(co_await std::move(task));
}
inline BlockingRoot run_root(Task<> task) { co_await std::move(task); }

inline void run_and_wait(Executor& executor, BlockingRoot root, std::stop_token stop) {
  auto wait = std::make_shared<BlockingWait>();
  auto& promise = root.handle.promise();
  promise.root_context = TaskContext{&executor, std::move(stop)};
  promise.context = &promise.root_context;
  promise.wait = wait;
  executor.post([handle = root.handle] { handle.resume(); });
  wait->wait();
}

}  // namespace internal

// Runs `task` on `executor` and blocks the calling thread, which must not be one of the runtime's, until it
// ends.
template <class T>
T run_blocking(Executor& executor, Task<T> task, std::stop_token stop = {}) {
  if constexpr (std::is_void_v<T>) {
    internal::run_and_wait(executor, internal::run_root(std::move(task)), std::move(stop));
  } else {
    std::optional<T> result;
    internal::run_and_wait(executor, internal::run_root(std::move(task), &result), std::move(stop));
    return std::move(*result);
  }
}

}  // namespace varve::runtime
