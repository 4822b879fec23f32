#include "runtime/runtime.h"

namespace varve::runtime {

Task<Wake> sleep_until(MonotonicTime when) {
  TaskContext& context = co_await this_context();
  if (context.stop.stop_requested()) co_return Wake::kStopped;
  Completion<Wake> done;
  std::unique_ptr<Timer> timer;
  if (when != MonotonicTime::never()) {
    timer = context.executor->start_timer(when, [done] { done.set(Wake::kTimeReached); });
  }
  std::stop_callback on_stop(context.stop, [done] { done.set(Wake::kStopped); });
  co_return co_await done.wait();
}

Task<Wake> sleep_for(Duration span) {
  TaskContext& context = co_await this_context();
  co_return co_await sleep_until(context.executor->now() + span);
}

}  // namespace varve::runtime
