// SqliteLog: the metadata log of one machine, in an SQLite database.
#pragma once

#include <memory>

#include "metadata/log/metadata_log.h"
#include "metadata/log/sqlite/sqlite_log_options.h"
#include "runtime/runtime.h"

namespace varve::metadata {

class LogTable;

// One broker at a time: a lock on the folder stops the second one with kLocked. Sessions live in the process, so a
// restart ends them all. One append is one transaction, synced before its position is returned.
//
// All of SQLite runs in Lane::kLog. Life: as MetadataLog says; the runtime outlives it. Destroyed without close(), as
// in a crash, it leaves the files as they are, and jobs that wait in the lane do nothing any more.
class SqliteLog final : public MetadataLog {
 public:
  SqliteLog(runtime::Runtime& runtime, SqliteLogOptions options);
  ~SqliteLog() override;

  runtime::Task<LogResult<LogIdentity>> open(Uuid new_id) override;
  runtime::Task<LogResult<void>> begin_session(Nonce nonce) override;
  runtime::Task<LogResult<void>> end_session(Nonce nonce) override;
  runtime::Task<LogResult<std::vector<Nonce>>> sessions() override;
  runtime::Task<LogResult<LogPosition>> append(EntryKey key, LogPosition applied, Slice entry,
                                               EntryRoom room = EntryRoom::kNormal) override;
  bool is_single_writer() const override { return true; }
  runtime::Task<LogResult<LogPage>> read(LogPosition after, size_t max_bytes) override;
  runtime::Task<LogResult<LogPosition>> tail() override;
  runtime::Task<void> wait_for_entries(LogPosition after, MonotonicTime deadline) override;
  runtime::Task<LogResult<void>> trim(LogPosition up_to) override;
  runtime::Task<void> close() override;

 private:
  struct Waiters;

  template <class Function>
  auto in_lane(LogErrc when_stopped, Function function)
      -> runtime::Task<std::invoke_result_t<Function, LogTable&>>;

  void take_ballast_later();

  runtime::Runtime& runtime_;
  std::shared_ptr<LogTable> table_;
  std::shared_ptr<Waiters> waiters_;
};

}  // namespace varve::metadata
