// Completion<T>: the one primitive that everything waits on. One side sets a value, from any thread; one
// coroutine waits for it and is resumed on its own executor.
#pragma once

#include <coroutine>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/task.h"

namespace varve::runtime {

// A handle to shared state; copies refer to the same completion. The first set() wins, so that a result, a
// deadline and a stop can race: whoever comes first decides and the others learn that they came late.
// If the waiting frame is destroyed the later set() is harmless.
template <class T>
class Completion {
 public:
  Completion() : state_(std::make_shared<State>()) {}

  // Any thread. False if it was set before; the value is then dropped.
  bool set(T value) const {
    std::coroutine_handle<> waiter;
    Executor* executor = nullptr;
    {
      std::lock_guard lock(state_->mutex);
      if (state_->is_set) return false;
      state_->is_set = true;
      state_->value.emplace(std::move(value));
      waiter = state_->waiter;
      executor = state_->executor;
    }
    if (waiter) executor->post([state = state_] { resume(*state); });
    return true;
  }

  bool is_set() const {
    std::lock_guard lock(state_->mutex);
    return state_->is_set;
  }

  // Waits for the value and takes it. At most one coroutine, once.
  auto wait() const { return Awaiter(state_); }

 private:
  struct State {
    std::mutex mutex;
    bool is_set = false;
    std::optional<T> value;
    std::coroutine_handle<> waiter;
    Executor* executor = nullptr;
  };

  // Runs on the waiter's executor, where the awaiter's destructor also runs: the handle is alive or null.
  static void resume(State& state) {
    std::coroutine_handle<> waiter;
    {
      std::lock_guard lock(state.mutex);
      waiter = std::exchange(state.waiter, nullptr);
    }
    if (waiter) waiter.resume();
  }

  class Awaiter {
   public:
    explicit Awaiter(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    ~Awaiter() {
      std::lock_guard lock(state_->mutex);
      state_->waiter = nullptr;
    }

    bool await_ready() const {
      std::lock_guard lock(state_->mutex);
      return state_->is_set;
    }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) {
      std::lock_guard lock(state_->mutex);
      if (state_->is_set) return false;
      CHECK(!state_->waiter, "two coroutines wait for one completion");
      state_->executor = handle.promise().context->executor;
      state_->waiter = handle;
      return true;
    }
    T await_resume() {
      std::lock_guard lock(state_->mutex);
      return std::move(*state_->value);
    }

   private:
    std::shared_ptr<State> state_;
  };

  std::shared_ptr<State> state_;
};

// For completions that carry nothing.
struct Done {
  bool operator==(const Done&) const = default;
};

}  // namespace varve::runtime
