// LogTable: the metadata log as a table in an SQLite database. The blocking half of SqliteLog.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "metadata/log/metadata_log.h"
#include "metadata/log/sqlite/ballast.h"
#include "metadata/log/sqlite/sqlite_connection.h"
#include "metadata/log/sqlite/sqlite_log_options.h"
#include "metadata/log/sqlite/sqlite_vfs.h"
#include "runtime/runtime.h"

namespace varve::metadata {

// Positions are rowids, 1 and up without gaps, so that a lost row shows. The newest row always stays, trimmed or
// not: it holds the place where the log goes on. Each row has a checksum of its own, for SQLite has none.
//
// Everything runs in Lane::kLog, one call at a time, but for the ballast, which Lane::kBulk fills. After a failed
// sync every call gives kSyncFailed. Life: open() once, close() in the end; destroying it without close() leaves the
// files as they are, as a crash would.
class LogTable {
 public:
  LogTable(runtime::Runtime& runtime, SqliteLogOptions options);
  LogTable(const LogTable&) = delete;
  LogTable& operator=(const LogTable&) = delete;
  ~LogTable();

  LogResult<LogIdentity> open(Uuid new_id);
  void close();

  LogResult<void> begin_session(Nonce nonce);
  LogResult<void> end_session(Nonce nonce);
  LogResult<std::vector<Nonce>> sessions();

  LogResult<LogPosition> append(const EntryKey& key, LogPosition applied, const Slice& entry, EntryRoom room);
  LogResult<LogPage> read(LogPosition after, size_t max_bytes);
  LogResult<LogPosition> tail();
  // Raises the mark durably; nothing is deleted yet. A lower one is no error.
  LogResult<void> raise_mark(LogPosition up_to);
  // Deletes some of what lies at or below the mark, and gives surplus space back; true if more is to do.
  LogResult<bool> clean_some();

  // Any thread.
  bool wants_checkpoint() const { return wal_pages_ * kPageBytes >= options_.checkpoint_bytes; }
  bool wants_ballast() const { return options_.ballast_bytes > 0 && !ballast_.is_held() && has_plenty_; }

  // Copies the write-ahead log into the database. A failure is noted or left to the next time.
  void checkpoint();
  // Lane::kBulk.
  void take_ballast() { ballast_.take(); }

 private:
  static constexpr uint64_t kPageBytes = 4096;

  LogResult<void> lock_folder();
  LogResult<LogIdentity> open_database(Uuid new_id);
  LogResult<void> connect();
  LogResult<void> make_tables(Uuid new_id);
  LogResult<void> check_pages();
  LogResult<LogIdentity> load();
  LogResult<void> prepare_statements();
  void disconnect();

  LogResult<void> check_usable() const;
  LogResult<std::optional<LogPosition>> find(const EntryKey& key);
  int insert(const EntryKey& key, const Slice& entry);
  bool has_room();
  // Runs `change` again without the ballast if it finds no space.
  template <class Change>
  int with_ballast(Change change);
  LogResult<bool> vacuum_some();

  // The error that an SQLite code stands for.
  std::unexpected<LogError> problem(int code, std::string_view what,
                                    LogErrc otherwise = LogErrc::kUnavailable) const;
  std::unexpected<LogError> damaged(std::string_view what) const;

  runtime::FileSystem& files_;
  const SqliteLogOptions options_;
  const std::string path_;
  SqliteVfs vfs_;
  Ballast ballast_;
  std::unique_ptr<runtime::File> lock_;
  SqliteConnection connection_;
  SqliteStatement find_;
  SqliteStatement insert_;
  SqliteStatement read_;
  SqliteStatement raise_mark_;
  SqliteStatement oldest_;
  SqliteStatement delete_;

  LogPosition tail_;
  LogPosition trimmed_;
  std::set<Nonce> sessions_;
  std::atomic<uint64_t> wal_pages_ = 0;
  std::atomic<bool> has_plenty_ = false;
};

}  // namespace varve::metadata
