// Opening, making and closing the database.
#include <array>

#include "metadata/log/sqlite/log_table.h"

namespace varve::metadata {

namespace {

constexpr int64_t kApplicationId = 0x76617276;  // "varv"
constexpr int64_t kFormat = 1;
constexpr const char* kDatabaseName = "log.db";
// A larger database is not checked as a whole at each start, which must be quick.
constexpr uint64_t kCheckedBytesMax = 64ull << 20;

// Before anything is read: without shared memory a write-ahead log needs exclusive locking from the start.
// Checkpoints are made by hand, outside the appends. Page size and vacuum mode count when the file is made.
// secure_delete, which some builds switch on, would write all that is freed.
constexpr std::array kSettings = {
    "PRAGMA locking_mode = EXCLUSIVE",  "PRAGMA temp_store = MEMORY", "PRAGMA cell_size_check = ON",
    "PRAGMA cache_size = -8192",        "PRAGMA secure_delete = OFF", "PRAGMA page_size = 4096",
    "PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA journal_mode = WAL",  "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 0",
};

// docs/formats/sqlite_log.md
constexpr const char* kMakeTables =
    "CREATE TABLE log_identity (only_row INTEGER PRIMARY KEY CHECK (only_row = 1),"
    "  id BLOB NOT NULL, generation INTEGER NOT NULL, trimmed INTEGER NOT NULL) STRICT;"
    "CREATE TABLE log_entries (position INTEGER PRIMARY KEY,"
    "  nonce INTEGER NOT NULL, sequence INTEGER NOT NULL, checksum INTEGER NOT NULL, entry BLOB NOT NULL,"
    "  UNIQUE (nonce, sequence)) STRICT;";

}  // namespace

LogTable::LogTable(runtime::Runtime& runtime, SqliteLogOptions options)
    : files_(runtime.file_system()),
      options_(std::move(options)),
      path_(options_.folder + "/" + kDatabaseName),
      vfs_(runtime),
      ballast_(files_, options_.folder + "/ballast", options_.ballast_bytes) {}

LogTable::~LogTable() {
  vfs_.abandon();
  disconnect();
}

std::unexpected<LogError> LogTable::damaged(std::string_view what) const {
  return fail(
      LogErrc::kCorrupt,
      fmt::format(
          "the metadata log {} is damaged: {}. Keep a copy of the folder {}, then put back a "
          "newer copy of it; rebuilding it from the bucket ('varve restore') is not in this version yet",
          path_, what, options_.folder));
}

std::unexpected<LogError> LogTable::problem(int code, std::string_view what, LogErrc otherwise) const {
  if (vfs_.sync_failure()) {
    return fail(
        LogErrc::kSyncFailed,
        fmt::format("a sync of the metadata log {} failed ({}): what the disk has of it is not known. "
                    "This process must end; check the disk",
                    path_, *vfs_.sync_failure()));
  }
  const char* text = connection_ ? sqlite3_errmsg(connection_.get()) : sqlite3_errstr(code);
  if (is_corrupt_code(code)) return damaged(fmt::format("{} ({})", what, text));
  if ((code & 0xff) == SQLITE_FULL) {
    return fail(LogErrc::kFull, fmt::format("{} {}: the disk is full", what, path_));
  }
  return fail(otherwise,
              fmt::format("{} {}: {} ({}; {})", what, path_, text, sqlite3_errstr(code), vfs_.last_error()));
}

LogResult<LogIdentity> LogTable::open(Uuid new_id) {
  CHECK(!connection_, "the log is open");
  if (auto locked = lock_folder(); !locked) return pass_error(locked);
  auto opened = open_database(new_id);
  if (!opened && opened.error().code == LogErrc::kFull && ballast_.release()) {
    // What the last process left in the write-ahead log needs room in the database.
    disconnect();
    opened = open_database(new_id);
  }
  if (!opened) {
    disconnect();
    lock_.reset();
  }
  return opened;
}

LogResult<void> LogTable::lock_folder() {
  auto cannot = [this](const runtime::FileError& error) {
    LogErrc code = error.code == runtime::FileErrc::kNoSpace ? LogErrc::kFull : LogErrc::kUnavailable;
    return fail(
        code, fmt::format("the metadata log's folder {} cannot be used: {}", options_.folder, error.message));
  };
  auto made = runtime::make_folders(files_, options_.folder);
  if (!made) return cannot(made.error());
  auto file = files_.open(options_.folder + "/lock", runtime::OpenMode::kCreate);
  if (!file) return cannot(file.error());
  auto locked = (*file)->lock();
  if (!locked && locked.error().code == runtime::FileErrc::kLocked) {
    return fail(LogErrc::kLocked,
                fmt::format("another broker is running on the metadata log in {}; stop it, or "
                            "give this one a folder of its own",
                            options_.folder));
  }
  if (!locked) return cannot(locked.error());
  lock_ = std::move(*file);
  return {};
}

LogResult<LogIdentity> LogTable::open_database(Uuid new_id) {
  if (auto connected = connect(); !connected) return pass_error(connected);
  // Writes anew what the last process may have written without a successful sync, though it can be read now.
  int code =
      sqlite3_wal_checkpoint_v2(connection_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code != SQLITE_OK) return problem(code, "recovering");
  if (auto made = make_tables(new_id); !made) return pass_error(made);
  auto synced = files_.sync_folder(options_.folder);
  if (!synced)
    return fail(LogErrc::kSyncFailed, fmt::format("syncing {}: {}", options_.folder, synced.error().message));
  if (auto checked = check_pages(); !checked) return pass_error(checked);
  if (auto prepared = prepare_statements(); !prepared) return pass_error(prepared);
  return load();
}

LogResult<void> LogTable::connect() {
  sqlite3* opened = nullptr;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  int code = sqlite3_open_v2(path_.c_str(), &opened, flags, vfs_.name());
  connection_.reset(opened);
  if (code != SQLITE_OK) return problem(code, "opening");
  for (const char* setting : kSettings) {
    code = sqlite3_exec(opened, setting, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return problem(code, "opening");
  }
  sqlite3_wal_hook(
      opened,
      [](void* table, sqlite3*, const char*, int pages) {
        static_cast<LogTable*>(table)->wal_pages_ = static_cast<uint64_t>(pages);
        return SQLITE_OK;
      },
      this);
  return {};
}

LogResult<void> LogTable::make_tables(Uuid new_id) {
  SqliteStatement statement;
  auto number = [&](const char* sql, int64_t& out) {
    int code = statement.prepare(connection_.get(), sql);
    if (code != SQLITE_OK) return code;
    code = statement.step();
    if (code == SQLITE_ROW) out = statement.integer(0);
    return code == SQLITE_ROW ? SQLITE_OK : code;
  };
  int64_t application = 0;
  int64_t format = 0;
  int64_t objects = 0;
  int code = number("PRAGMA application_id", application);
  if (code == SQLITE_OK) code = number("PRAGMA user_version", format);
  if (code == SQLITE_OK) code = number("SELECT count(*) FROM sqlite_schema", objects);
  if (code != SQLITE_OK) return problem(code, "reading");
  statement = SqliteStatement();
  if (application == kApplicationId && format > kFormat) {
    return fail(LogErrc::kWrongLog,
                fmt::format("{} was written by a newer varve (format {}, this one knows {})", path_, format,
                            kFormat));
  }
  if (application == kApplicationId && format == kFormat) return {};
  if (application != 0 || format != 0 || objects != 0) {
    return fail(LogErrc::kWrongLog, fmt::format("{} is a database, but not a metadata log of varve", path_));
  }
  std::string sql = fmt::format(
      "BEGIN IMMEDIATE; {} PRAGMA application_id = {}; PRAGMA user_version = {};"
      "INSERT INTO log_identity VALUES (1, x'{}', 1, 0); COMMIT",
      kMakeTables, kApplicationId, kFormat, to_hex(new_id.bytes));
  code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return problem(code, "making");
  return {};
}

// A damaged page can hide rows, even the newest, where no gap would show it.
LogResult<void> LogTable::check_pages() {
  auto found = files_.stat(path_);
  if (!found || found->size > kCheckedBytesMax) return {};
  SqliteStatement statement;
  int code = statement.prepare(connection_.get(), "PRAGMA quick_check(1)");
  if (code == SQLITE_OK) code = statement.step();
  if (code != SQLITE_ROW) return problem(code, "checking");
  std::string_view verdict = as_text(statement.bytes(0));
  if (verdict != "ok") return damaged(verdict);
  return {};
}

LogResult<void> LogTable::prepare_statements() {
  struct Text {
    SqliteStatement& statement;
    const char* sql;
  };
  const Text texts[] = {
      {find_, "SELECT position FROM log_entries WHERE nonce = ?1 AND sequence = ?2"},
      {insert_, "INSERT INTO log_entries VALUES (?1, ?2, ?3, ?4, ?5)"},
      {read_,
       "SELECT position, nonce, sequence, checksum, entry FROM log_entries WHERE position > ?1 "
       "ORDER BY position"},
      {raise_mark_, "UPDATE log_identity SET trimmed = ?1"},
      {oldest_, "SELECT min(position) FROM log_entries"},
      {delete_, "DELETE FROM log_entries WHERE position <= ?1"},
  };
  for (const Text& text : texts) {
    int code = text.statement.prepare(connection_.get(), text.sql);
    if (code != SQLITE_OK) return problem(code, "reading");
  }
  return {};
}

LogResult<LogIdentity> LogTable::load() {
  SqliteStatement statement;
  int code = statement.prepare(connection_.get(), "SELECT id, generation, trimmed FROM log_identity");
  if (code == SQLITE_OK) code = statement.step();
  if (code == SQLITE_DONE) return damaged("its identity is missing");
  if (code != SQLITE_ROW) return problem(code, "reading");
  LogIdentity identity;
  ByteView id = statement.bytes(0);
  if (id.size() != identity.id.bytes.size()) return damaged("its identity has a wrong size");
  std::ranges::copy(id, identity.id.bytes.begin());
  identity.generation = LogGeneration(static_cast<uint32_t>(statement.integer(1)));
  trimmed_ = LogPosition(static_cast<uint64_t>(statement.integer(2)));

  code = statement.prepare(connection_.get(), "SELECT max(position) FROM log_entries");
  if (code == SQLITE_OK) code = statement.step();
  if (code != SQLITE_ROW) return problem(code, "reading");
  tail_ = LogPosition(static_cast<uint64_t>(statement.integer(0)));
  if (tail_ < trimmed_) return damaged(fmt::format("it ends at {}, below its trim mark {}", tail_, trimmed_));
  return identity;
}

void LogTable::disconnect() {
  for (SqliteStatement* statement : {&find_, &insert_, &read_, &raise_mark_, &oldest_, &delete_}) {
    *statement = SqliteStatement();
  }
  connection_.reset();
}

void LogTable::close() {
  sessions_.clear();
  if (!connection_) return;
  if (vfs_.sync_failure()) vfs_.abandon();
  // SQLite empties the write-ahead log into the database and removes it.
  disconnect();
  lock_.reset();
}

}  // namespace varve::metadata
