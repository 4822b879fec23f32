#include "runtime/task_scope.h"

#include <vector>

namespace varve::runtime {

struct TaskScope::State {
  struct Entry {
    std::string name;
    std::coroutine_handle<> frame;
  };
  mutable std::mutex mutex;
  bool closing = false;
  std::list<Entry> entries;
  std::vector<Completion<Done>> waiting_for_empty;

  void finished(std::list<Entry>::iterator entry) {
    std::vector<Completion<Done>> to_wake;
    {
      std::lock_guard lock(mutex);
      entries.erase(entry);
      if (entries.empty()) to_wake.swap(waiting_for_empty);
    }
    for (const Completion<Done>& waiter : to_wake) waiter.set(Done{});
  }
};

// The frame around a spawned task: runs it in the scope's context, then frees itself and leaves the scope.
struct TaskScope::Root {
  struct promise_type : internal::PromiseBase {
    TaskContext root_context;
    std::shared_ptr<State> state;
    std::list<State::Entry>::iterator entry;

    struct Leave {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> frame) const noexcept {
        std::shared_ptr<State> scope_state = std::move(frame.promise().state);
        auto own_entry = frame.promise().entry;
        frame.destroy();
        scope_state->finished(own_entry);
      }
      void await_resume() const noexcept {}
    };

    Root get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    void return_void() const noexcept {}
    Leave final_suspend() const noexcept { return {}; }
  };

  static Root run(Task<> task) { co_await std::move(task); }

  std::coroutine_handle<promise_type> handle;
};

TaskScope::TaskScope() : state_(std::make_shared<State>()) {}

TaskScope::~TaskScope() {
  std::list<State::Entry> left;
  {
    std::lock_guard lock(state_->mutex);
    state_->closing = true;
    left.swap(state_->entries);
  }
  for (State::Entry& entry : left) entry.frame.destroy();
}

bool TaskScope::spawn(Executor& executor, std::string name, Task<> task) {
  auto frame = Root::run(std::move(task)).handle;
  auto& promise = frame.promise();
  promise.root_context = TaskContext{&executor, stop_source_.get_token()};
  promise.context = &promise.root_context;
  bool is_open = false;
  {
    std::lock_guard lock(state_->mutex);
    is_open = !state_->closing;
    if (is_open) {
      promise.state = state_;
      promise.entry = state_->entries.insert(state_->entries.end(), State::Entry{std::move(name), frame});
    }
  }
  if (!is_open) {
    frame.destroy();  // outside the lock: what the task holds may spawn, or ask for the size, as it goes
    return false;
  }
  // If the scope was destroyed first (a crash), the frame is gone: only frames and the scope keep the state.
  executor.post([weak = std::weak_ptr<State>(state_), frame] {
    if (!weak.expired()) frame.resume();
  });
  return true;
}

void TaskScope::request_stop() { stop_source_.request_stop(); }

Task<> TaskScope::close() {
  Completion<Done> empty;
  {
    std::lock_guard lock(state_->mutex);
    state_->closing = true;
    if (state_->entries.empty()) {
      empty.set(Done{});
    } else {
      state_->waiting_for_empty.push_back(empty);
    }
  }
  stop_source_.request_stop();
  co_await empty.wait();
}

size_t TaskScope::size() const {
  std::lock_guard lock(state_->mutex);
  return state_->entries.size();
}

}  // namespace varve::runtime
