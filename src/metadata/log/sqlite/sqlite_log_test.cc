#include "metadata/log/sqlite/sqlite_log.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "metadata/log/log_conformance.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/temporary_folder_testing.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::metadata {
namespace {

using conformance::key_of;
using conformance::kManyBytes;
using conformance::kNonce;
using runtime::Task;
using runtime::TemporaryFolder;

constexpr const char* kFolder = "/broker/log";

// No ballast and no reserve, unless a test is about them.
SqliteLogOptions small(std::string folder) {
  return {.folder = std::move(folder), .reserve_bytes = 0, .reserve_percent = 0, .ballast_bytes = 0};
}

class PosixUnderTest final : public LogUnderTest {
 public:
  PosixUnderTest() { reopen(); }
  MetadataLog& log() override { return *log_; }
  MetadataLog* second() override { return nullptr; }
  void reopen() override {
    log_.reset();
    log_ = std::make_unique<SqliteLog>(runtime_, SqliteLogOptions{.folder = folder_.path() + "/made"});
  }
  void run(Task<> task) override { run_blocking(runtime_.io(0), std::move(task)); }

 private:
  TemporaryFolder folder_;
  runtime::AsioRuntime runtime_{{.io_threads = 1}};
  std::unique_ptr<SqliteLog> log_;
};

class SimUnderTest final : public LogUnderTest {
 public:
  SimUnderTest() { reopen(); }
  MetadataLog& log() override { return *log_; }
  MetadataLog* second() override { return nullptr; }
  void reopen() override {
    log_.reset();
    log_ = std::make_unique<SqliteLog>(node_.process(), small(kFolder));
  }
  void run(Task<> task) override { sim::run_task(world_, node_.process().io(0), std::move(task)); }

 private:
  sim::World world_{{.seed = 1}};
  sim::Node node_{world_, {.host = "a"}};
  std::unique_ptr<SqliteLog> log_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, LogConformance,
                         testing::Values(LogCase{"posix", [] { return std::make_unique<PosixUnderTest>(); }},
                                         LogCase{"sim", [] { return std::make_unique<SimUnderTest>(); }}),
                         log_case_name);

template <class T>
LogErrc code_of(const LogResult<T>& result) {
  EXPECT_FALSE(result) << "it should have failed";
  return result ? LogErrc::kTrimmed : result.error().code;
}

// On a disk of this machine.
class SqliteLogTest : public testing::Test {
 protected:
  template <class T>
  T run(Task<T> task) {
    return run_blocking(runtime_.io(0), std::move(task));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string open_error() {
    SqliteLog log(runtime_, small(folder_.path()));
    auto opened = run(log.open(conformance::some_uuid(1)));
    return opened ? "no error"
                  : fmt::format("{}: {}", static_cast<int>(opened.error().code), opened.error().message);
  }
  void make_database(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path("log.db").c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }

  TemporaryFolder folder_;
  runtime::AsioRuntime runtime_{{.io_threads = 1}};
};

TEST_F(SqliteLogTest, TheSecondBrokerOnOneFolderStopsAndIsToldWhy) {
  SqliteLog first(runtime_, small(folder_.path()));
  SqliteLog second(runtime_, small(folder_.path()));
  ASSERT_TRUE(run(first.open(conformance::some_uuid(1))));
  auto refused = run(second.open(conformance::some_uuid(2)));
  EXPECT_EQ(code_of(refused), LogErrc::kLocked);
  EXPECT_NE(
      refused.error().message.find("another broker is running on the metadata log in " + folder_.path()),
      std::string::npos)
      << refused.error().message;
  run(first.close());
  auto opened = run(second.open(conformance::some_uuid(2)));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->id, conformance::some_uuid(1));
}

TEST_F(SqliteLogTest, WhatIsNoLogOfOursIsLeftAlone) {
  make_database("CREATE TABLE something (x)");
  EXPECT_NE(open_error().find("is a database, but not a metadata log"), std::string::npos) << open_error();
  std::filesystem::remove(path("log.db"));
  make_database("PRAGMA application_id = 1986097782; PRAGMA user_version = 2");
  EXPECT_NE(open_error().find("written by a newer varve"), std::string::npos) << open_error();
  std::filesystem::remove(path("log.db"));
  std::ofstream(path("log.db")) << std::string(10'000, 'x');
  std::string message = open_error();
  EXPECT_NE(message.find(path("log.db") + " is damaged"), std::string::npos) << message;
  EXPECT_NE(message.find("put back a newer copy"), std::string::npos) << message;
}

TEST_F(SqliteLogTest, AFolderThatCannotBeUsedIsNamed) {
  std::ofstream(path("file")) << "x";
  SqliteLog log(runtime_, small(path("file")));
  auto opened = run(log.open(conformance::some_uuid(1)));
  EXPECT_EQ(code_of(opened), LogErrc::kUnavailable);
  EXPECT_NE(opened.error().message.find(path("file")), std::string::npos);
}

Task<> fill_large_and_trim(SqliteLog* log) {
  co_await conformance::begin(*log, kNonce);
  LogPosition tail;
  for (uint64_t i = 1; i <= 40; ++i) {
    tail = co_await conformance::must_append(*log, key_of(kNonce, i), std::string(kMaxEntryBytes, 'x'));
  }
  EXPECT_TRUE(co_await log->trim(tail));
}

TEST_F(SqliteLogTest, MuchFreeSpaceGoesBackToTheDisk) {
  SqliteLogOptions options = small(folder_.path());
  options.free_page_bytes_max = 1 << 20;
  SqliteLog log(runtime_, options);
  ASSERT_TRUE(run(log.open(conformance::some_uuid(1))));
  run(fill_large_and_trim(&log));
  run(log.close());
  EXPECT_LT(std::filesystem::file_size(path("log.db")), 3'000'000u) << "20 MB of entries were in it";
}

Task<> append_example(SqliteLog* log) {
  co_await conformance::begin(*log, Nonce(77));
  co_await conformance::must_append(*log, key_of(Nonce(77), 1), "one");
  co_await log->close();
}

// docs/formats/sqlite_log.md
TEST_F(SqliteLogTest, TheFileHoldsWhatItsPageSays) {
  SqliteLog log(runtime_, small(folder_.path()));
  ASSERT_TRUE(run(log.open(conformance::some_uuid(0xab))));
  run(append_example(&log));
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path("log.db").c_str(), &database), SQLITE_OK);
  std::vector<std::string> rows;
  auto note = [](void* into, int columns, char** values, char**) {
    std::string row;
    for (int i = 0; i < columns; ++i) row += std::string(i > 0 ? " " : "") + values[i];
    static_cast<std::vector<std::string>*>(into)->push_back(row);
    return 0;
  };
  sqlite3_exec(
      database,
      "PRAGMA application_id; PRAGMA user_version; SELECT hex(id), generation, trimmed FROM log_identity;"
      "SELECT position, nonce, sequence, checksum, hex(entry) FROM log_entries",
      note, &rows, nullptr);
  sqlite3_close(database);
  EXPECT_EQ(rows, (std::vector<std::string>{"1986097782", "1", "ABABABABABABABABABABABABABABABAB 1 0",
                                            "1 77 1 1478598956 6F6E65"}));
}

TEST_F(SqliteLogTest, TheBallastIsTakenInTheBackground) {
  SqliteLogOptions options = small(folder_.path());
  options.ballast_bytes = 3'000'000;
  SqliteLog log(runtime_, options);
  ASSERT_TRUE(run(log.open(conformance::some_uuid(1))));
  run(runtime::offload(runtime_, runtime::Lane::kBulk, [] {}));
  EXPECT_EQ(std::filesystem::file_size(path("ballast")), 3'000'000u);
  run(log.close());
}

}  // namespace
}  // namespace varve::metadata
