#include "metadata/log/sqlite/sqlite_log.h"

#include <mutex>
#include <utility>

#include "metadata/log/sqlite/log_table.h"

namespace varve::metadata {

using runtime::Completion;
using runtime::Done;
using runtime::Lane;
using runtime::Task;

// Tasks that wait for entries. Shared with the jobs that bring them.
struct SqliteLog::Waiters {
  struct Waiter {
    LogPosition after;
    Completion<Done> woken;
  };

  std::mutex mutex;
  LogPosition tail;
  bool is_closed = false;
  std::vector<Waiter> waiting;

  void raise_tail(LogPosition position) {
    std::vector<Waiter> ready;
    {
      std::lock_guard lock(mutex);
      tail = std::max(tail, position);
      for (Waiter& waiter : std::exchange(waiting, {}))
        (waiter.after < tail ? ready : waiting).push_back(waiter);
    }
    for (const Waiter& waiter : ready) waiter.woken.set(Done{});
  }

  void close() {
    std::vector<Waiter> ready;
    {
      std::lock_guard lock(mutex);
      is_closed = true;
      ready.swap(waiting);
    }
    for (const Waiter& waiter : ready) waiter.woken.set(Done{});
  }
};

SqliteLog::SqliteLog(runtime::Runtime& runtime, SqliteLogOptions options)
    : runtime_(runtime),
      table_(std::make_shared<LogTable>(runtime, std::move(options))),
      waiters_(std::make_shared<Waiters>()) {}

SqliteLog::~SqliteLog() = default;

// Runs function(table) in the log's lane. A stop ends the waiting, not the work; the end of the log does, so that no
// job keeps the files open.
template <class Function>
auto SqliteLog::in_lane(LogErrc when_stopped, Function function)
    -> Task<std::invoke_result_t<Function, LogTable&>> {
  using R = std::invoke_result_t<Function, LogTable&>;
  R stopped = fail(when_stopped, "asked to stop");
  runtime::TaskContext& context = co_await runtime::this_context();
  if (context.stop.stop_requested()) co_return stopped;
  Completion<R> done;
  runtime_.offload(Lane::kLog,
                   [done, weak = std::weak_ptr(table_), function = std::move(function)]() mutable {
                     if (auto table = weak.lock()) done.set(function(*table));
                   });
  co_return co_await runtime::wait_until(done, MonotonicTime::never(), std::move(stopped));
}

Task<LogResult<LogIdentity>> SqliteLog::open(Uuid new_id) {
  auto opened = co_await in_lane(LogErrc::kUnavailable, [new_id, waiters = waiters_](LogTable& table) {
    auto identity = table.open(new_id);
    if (identity) waiters->raise_tail(table.tail().value_or(LogPosition()));
    return identity;
  });
  // Not awaited: a start must not pay for it.
  if (opened) take_ballast_later();
  co_return opened;
}

Task<LogResult<void>> SqliteLog::begin_session(Nonce nonce) {
  co_return co_await in_lane(LogErrc::kUnavailable,
                             [nonce](LogTable& table) { return table.begin_session(nonce); });
}

Task<LogResult<void>> SqliteLog::end_session(Nonce nonce) {
  co_return co_await in_lane(LogErrc::kUnavailable,
                             [nonce](LogTable& table) { return table.end_session(nonce); });
}

Task<LogResult<std::vector<Nonce>>> SqliteLog::sessions() {
  co_return co_await in_lane(LogErrc::kUnavailable, [](LogTable& table) { return table.sessions(); });
}

Task<LogResult<LogPosition>> SqliteLog::append(EntryKey key, LogPosition applied, Slice entry,
                                               EntryRoom room) {
  auto job = [key, applied, entry = std::move(entry), room, waiters = waiters_](LogTable& table) {
    auto position = table.append(key, applied, entry, room);
    if (position) waiters->raise_tail(*position);
    return position;
  };
  auto position = co_await in_lane(LogErrc::kUnknown, std::move(job));
  // After the answer, so that no append pays for them but the next one in the lane.
  if (table_->wants_checkpoint()) {
    runtime_.offload(Lane::kLog, [weak = std::weak_ptr(table_)] {
      if (auto table = weak.lock()) table->checkpoint();
    });
  }
  if (table_->wants_ballast()) take_ballast_later();
  co_return position;
}

void SqliteLog::take_ballast_later() {
  runtime_.offload(Lane::kBulk, [weak = std::weak_ptr(table_)] {
    if (auto table = weak.lock()) table->take_ballast();
  });
}

Task<LogResult<LogPage>> SqliteLog::read(LogPosition after, size_t max_bytes) {
  co_return co_await in_lane(LogErrc::kUnavailable,
                             [after, max_bytes](LogTable& table) { return table.read(after, max_bytes); });
}

Task<LogResult<LogPosition>> SqliteLog::tail() {
  co_return co_await in_lane(LogErrc::kUnavailable, [](LogTable& table) { return table.tail(); });
}

Task<void> SqliteLog::wait_for_entries(LogPosition after, MonotonicTime deadline) {
  Completion<Done> woken;
  {
    std::lock_guard lock(waiters_->mutex);
    if (waiters_->is_closed || waiters_->tail > after) co_return;
    // Those that gave up by deadline leave here, at the latest with the next entry.
    std::erase_if(waiters_->waiting, [](const auto& waiter) { return waiter.woken.is_set(); });
    waiters_->waiting.push_back({after, woken});
  }
  co_await runtime::wait_until(woken, deadline, Done{});
}

Task<LogResult<void>> SqliteLog::trim(LogPosition up_to) {
  auto raised =
      co_await in_lane(LogErrc::kUnavailable, [up_to](LogTable& table) { return table.raise_mark(up_to); });
  if (!raised) co_return raised;
  // In small pieces: appends come in between.
  for (;;) {
    auto more = co_await in_lane(LogErrc::kUnavailable, [](LogTable& table) {
      auto cleaned = table.clean_some();
      table.checkpoint();
      return cleaned;
    });
    if (!more) co_return pass_error(more);
    if (!*more) co_return LogResult<void>{};
  }
}

Task<void> SqliteLog::close() {
  waiters_->close();
  co_await runtime::offload(runtime_, Lane::kLog, [table = table_] { table->close(); });
}

}  // namespace varve::metadata
