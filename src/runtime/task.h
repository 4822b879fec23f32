// Task<T>: a lazily started coroutine, awaited at most once, resumed by symmetric transfer.
//
// A Task belongs to the coroutine that awaits it (or to a TaskScope, for a root). Destroying a suspended Task
// destroys its frame and, with it, everything that frame awaits; destructors run then and must only free memory.
// Every Task runs on one executor for its whole life: it inherits the context of its awaiter.
//
// Traps (docs/coroutines.md): pass parameters by value; never call a lambda coroutine that has captures.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <stop_token>
#include <utility>
#include <variant>

#include "base/check.h"
#include "runtime/executor.h"

namespace varve::runtime {

// What a running task knows of its surroundings. Owned by the root (TaskScope) or by with_deadline().
struct TaskContext {
  Executor* executor = nullptr;
  std::stop_token stop;
};

namespace internal {

struct PromiseBase {
  TaskContext* context = nullptr;
  std::coroutine_handle<> continuation;

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
      std::coroutine_handle<> next = finished.promise().continuation;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  // Errors are values; an exception that reaches the edge of a task is a bug of ours.
  [[noreturn]] void unhandled_exception() const noexcept {
    try {
      throw;
    } catch (const std::exception& exception) {
      CHECK(false, "exception left a task: {}", exception.what());
    } catch (...) {
      CHECK(false, "exception left a task");
    }
    std::terminate();
  }
};

template <class T>
struct ResultHolder : PromiseBase {
  std::optional<T> result;
  template <class U = T>
  void return_value(U&& value) {
    result.emplace(std::forward<U>(value));
  }
  T take_result() { return std::move(*result); }
};

template <>
struct ResultHolder<void> : PromiseBase {
  void return_void() const noexcept {}
  void take_result() const noexcept {}
};

}  // namespace internal

template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : internal::ResultHolder<T> {
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // Awaiting starts the task in the awaiter's context and gives its result.
  auto operator co_await() && noexcept { return Awaiter{handle_, nullptr}; }

  // As co_await, but in another context (with_deadline). The context must outlive the task.
  auto in_context(TaskContext& context) && noexcept { return Awaiter{handle_, &context}; }

 private:
  struct Awaiter {
    std::coroutine_handle<promise_type> child;
    TaskContext* context;

    bool await_ready() const noexcept { return false; }
    template <class Parent>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Parent> parent) const noexcept {
      child.promise().continuation = parent;
      child.promise().context = context != nullptr ? context : parent.promise().context;
      return child;
    }
    T await_resume() const { return child.promise().take_result(); }
  };

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

// co_await this_context(): the TaskContext the coroutine runs in; valid for as long as the coroutine runs.
struct ThisContext {
  TaskContext* context = nullptr;
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    context = handle.promise().context;
    return false;
  }
  TaskContext& await_resume() const noexcept { return *context; }
};
inline ThisContext this_context() { return {}; }

}  // namespace varve::runtime
