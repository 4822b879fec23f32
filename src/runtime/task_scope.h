// TaskScope: every background coroutine belongs to one.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "runtime/completion.h"
#include "runtime/task.h"

namespace varve::runtime {

// Owns root tasks. Life: spawn() while open; close() asks all tasks to stop and waits for them; then destroy.
// Destroying it without close() destroys the frames where they stand: only legal when no executor can run them
// any more (a simulated crash, or after the runtime has stopped its threads).
// Thread-safe.
class TaskScope {
 public:
  TaskScope();
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;
  ~TaskScope();

  // Starts `task` on `executor`, soon. The name is for stack dumps. After close() began the task is dropped
  // unstarted and false is returned.
  bool spawn(Executor& executor, std::string name, Task<> task);

  // Asks all tasks to stop (their context's stop token) without waiting.
  void request_stop();
  std::stop_token stop_token() const { return stop_source_.get_token(); }

  // Stops and waits until every task has ended. To be awaited by a task outside the scope, once.
  Task<> close();

  size_t size() const;

 private:
  struct Root;
  struct State;

  std::shared_ptr<State> state_;
  std::stop_source stop_source_;
};

}  // namespace varve::runtime
