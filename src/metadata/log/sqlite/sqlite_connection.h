// A thin, owning layer over SQLite's C interface. Codes are SQLite's extended result codes.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/check.h"

namespace varve::metadata {

struct CloseConnection {
  // _v2: statements that are still there keep it alive until they go.
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};
using SqliteConnection = std::unique_ptr<sqlite3, CloseConnection>;

inline bool is_corrupt_code(int code) {
  return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

// A prepared statement, used again and again: bind, step, read columns, then reset. One thread at a time.
class SqliteStatement {
 public:
  SqliteStatement() = default;

  // A code of SQLite.
  int prepare(sqlite3* connection, const char* sql) {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v3(connection, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    statement_.reset(statement);
    return code;
  }

  // Parameters count from 1. Bytes must stay until the reset.
  SqliteStatement& bind(int index, int64_t value) {
    CHECK(sqlite3_bind_int64(statement_.get(), index, value) == SQLITE_OK);
    return *this;
  }
  SqliteStatement& bind(int index, ByteView bytes) {
    // A null pointer would bind NULL, not an empty blob.
    const void* data = bytes.empty() ? static_cast<const void*>("") : bytes.data();
    CHECK(sqlite3_bind_blob64(statement_.get(), index, data, bytes.size(), SQLITE_STATIC) == SQLITE_OK);
    return *this;
  }

  // SQLITE_ROW, SQLITE_DONE or an error.
  int step() { return sqlite3_step(statement_.get()); }
  // For statements without rows: SQLITE_OK or an error; resets.
  int run() {
    int code = step();
    reset();
    return code == SQLITE_DONE ? SQLITE_OK : code;
  }
  void reset() { sqlite3_reset(statement_.get()); }

  // Columns count from 0; valid until the next step or reset.
  int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  ByteView bytes(int column) const {
    const void* data = sqlite3_column_blob(statement_.get(), column);
    return {static_cast<const uint8_t*>(data),
            static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Resets a statement at the end of a block, whichever way it is left.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(SqliteStatement& statement) : statement_(statement) {}
  ResetAtEnd(const ResetAtEnd&) = delete;
  ResetAtEnd& operator=(const ResetAtEnd&) = delete;
  ~ResetAtEnd() { statement_.reset(); }

 private:
  SqliteStatement& statement_;
};

}  // namespace varve::metadata
