// SqliteVfs: lets SQLite reach its files through FileSystem, so that a power cut can be simulated and every failed
// sync is seen.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/random.h"
#include "runtime/runtime.h"

namespace varve::metadata {

// Serves one connection in exclusive locking mode: it takes no locks (the log's own lock file does) and has no
// shared memory. Register one for each database: SQLite's list of them belongs to the process, the rest to the
// owner. Life: outlives the connection. One thread at a time.
class SqliteVfs {
 public:
  explicit SqliteVfs(runtime::Runtime& runtime);
  SqliteVfs(const SqliteVfs&) = delete;
  SqliteVfs& operator=(const SqliteVfs&) = delete;
  ~SqliteVfs();

  // For sqlite3_open_v2().
  const char* name() const { return name_.c_str(); }

  // Why a sync failed, if ever one did: from then on nothing may be assumed of the files (invariant 10).
  const std::optional<std::string>& sync_failure() const { return sync_failure_; }
  // The newest error of the file system, for messages.
  const std::string& last_error() const { return last_error_; }
  // From now on every call fails: closing the connection only frees memory and changes no file.
  void abandon() { is_abandoned_ = true; }

 private:
  struct OpenFile;
  struct Calls;  // the functions that SQLite calls

  // Notes the error; gives `otherwise`, or SQLITE_FULL if that is the cause.
  int note(const runtime::FileError& error, int otherwise);
  int note_sync_failure(const runtime::FileError& error, int code);

  runtime::Runtime& runtime_;
  runtime::FileSystem& files_;
  Random random_;
  std::string name_;
  sqlite3_vfs vfs_{};
  bool is_abandoned_ = false;
  std::optional<std::string> sync_failure_;
  std::string last_error_;
};

}  // namespace varve::metadata
