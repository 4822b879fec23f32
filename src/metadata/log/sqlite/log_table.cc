#include "metadata/log/sqlite/log_table.h"

#include <algorithm>
#include <array>

#include "base/crc32c.h"

namespace varve::metadata {

namespace {

constexpr uint64_t kRowsDeletedAtOnce = 256;
constexpr int kPagesVacuumedAtOnce = 512;

int64_t stored(uint64_t value) { return static_cast<int64_t>(value); }

uint32_t checksum_of(LogPosition position, const EntryKey& key, ByteView entry) {
  std::array<uint8_t, 24> head;
  store_be(head.data(), position.value());
  store_be(head.data() + 8, key.nonce.value());
  store_be(head.data() + 16, key.sequence.value());
  return crc32c_extend(crc32c(head), entry);
}

}  // namespace

LogResult<void> LogTable::check_usable() const {
  if (vfs_.sync_failure()) return problem(SQLITE_IOERR_FSYNC, "using");
  if (!connection_) return fail(LogErrc::kUnavailable, "the metadata log " + path_ + " is closed");
  return {};
}

LogResult<void> LogTable::begin_session(Nonce nonce) {
  auto usable = check_usable();
  if (usable) sessions_.insert(nonce);
  return usable;
}

LogResult<void> LogTable::end_session(Nonce nonce) {
  sessions_.erase(nonce);
  return {};
}

LogResult<std::vector<Nonce>> LogTable::sessions() {
  if (auto usable = check_usable(); !usable) return pass_error(usable);
  return std::vector<Nonce>(sessions_.begin(), sessions_.end());
}

LogResult<LogPosition> LogTable::tail() {
  if (auto usable = check_usable(); !usable) return pass_error(usable);
  return tail_;
}

LogResult<std::optional<LogPosition>> LogTable::find(const EntryKey& key) {
  ResetAtEnd reset(find_);
  find_.bind(1, stored(key.nonce.value())).bind(2, stored(key.sequence.value()));
  int code = find_.step();
  if (code == SQLITE_ROW) return LogPosition(static_cast<uint64_t>(find_.integer(0)));
  if (code == SQLITE_DONE) return std::optional<LogPosition>();
  return problem(code, "reading");
}

int LogTable::insert(const EntryKey& key, const Slice& entry) {
  LogPosition position = tail_.plus(1);
  insert_.bind(1, stored(position.value()))
      .bind(2, stored(key.nonce.value()))
      .bind(3, stored(key.sequence.value()))
      .bind(4, checksum_of(position, key, entry.view()))
      .bind(5, entry.view());
  int code = insert_.run();
  if (code == SQLITE_OK) tail_ = position;
  return code;
}

bool LogTable::has_room() {
  auto space = files_.space(options_.folder);
  if (!space) return true;  // the write will tell
  uint64_t reserve = std::max(options_.reserve_bytes, space->total_bytes / 100 * options_.reserve_percent);
  has_plenty_ = space->free_bytes >= reserve + options_.ballast_bytes;
  return space->free_bytes >= reserve;
}

template <class Change>
int LogTable::with_ballast(Change change) {
  int code = change();
  if ((code & 0xff) == SQLITE_FULL && !vfs_.sync_failure() && ballast_.release()) {
    has_plenty_ = false;
    code = change();
  }
  return code;
}

LogResult<LogPosition> LogTable::append(const EntryKey& key, LogPosition applied, const Slice& entry,
                                        EntryRoom room) {
  if (auto usable = check_usable(); !usable) return pass_error(usable);
  if (entry.size() > kMaxEntryBytes) return fail(LogErrc::kTooLarge, "entry above 512 KiB");
  if (!sessions_.contains(key.nonce)) return fail(LogErrc::kSessionGone, "the session has ended");
  auto found = find(key);
  if (!found) return pass_error(found);
  if (*found) return **found;
  if (applied != tail_) {
    return fail(LogErrc::kTailMoved, fmt::format("the log ends at {}, not at {}", tail_, applied));
  }
  bool has_space = has_room();
  if (!has_space && room == EntryRoom::kNormal) {
    return fail(LogErrc::kFull, fmt::format("the disk of the metadata log {} is nearly full", path_));
  }
  auto change = [&] { return insert(key, entry); };
  int code = room == EntryRoom::kReserve ? with_ballast(change) : change();
  // For want of space the commit was not written to its end: it is not there and will not come to be there.
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_FULL && !vfs_.sync_failure() && !is_corrupt_code(code)) {
    // After any other failure it may be there now, or after the next recovery. Look, and if it is not, write the
    // same again in its place.
    found = find(key);
    if (found && *found) {
      tail_ = **found;
      return tail_;
    }
    if (insert(key, entry) == SQLITE_OK) return tail_;
    auto failed = problem(code, "appending to", LogErrc::kUnknown);
    if (failed.error().code == LogErrc::kFull) failed.error().code = LogErrc::kUnknown;
    return failed;
  }
  if (code != SQLITE_OK) return problem(code, "appending to", LogErrc::kUnknown);
  return tail_;
}

LogResult<LogPage> LogTable::read(LogPosition after, size_t max_bytes) {
  if (auto usable = check_usable(); !usable) return pass_error(usable);
  LogPage page;
  page.trimmed = trimmed_;
  LogPosition at = std::max(after, trimmed_);
  ResetAtEnd reset(read_);
  read_.bind(1, stored(at.value()));
  size_t bytes = 0;
  while (at < tail_) {
    int code = read_.step();
    if (code != SQLITE_ROW && code != SQLITE_DONE) return problem(code, "reading");
    LogPosition position(code == SQLITE_ROW ? static_cast<uint64_t>(read_.integer(0)) : 0);
    if (position != at.plus(1)) return damaged(fmt::format("entry {} is missing", at.plus(1)));
    ByteView entry = read_.bytes(4);
    EntryKey key{Nonce(static_cast<uint64_t>(read_.integer(1))),
                 EntrySequence(static_cast<uint64_t>(read_.integer(2)))};
    if (checksum_of(position, key, entry) != static_cast<uint32_t>(read_.integer(3))) {
      return damaged(fmt::format("entry {} fails its checksum", position));
    }
    if (!page.entries.empty() && bytes + entry.size() > max_bytes) break;
    bytes += entry.size();
    page.entries.push_back({position, Slice::copy_of(entry)});
    at = position;
  }
  return page;
}

LogResult<void> LogTable::raise_mark(LogPosition up_to) {
  if (auto usable = check_usable(); !usable) return usable;
  up_to = std::min(up_to, tail_);
  if (up_to <= trimmed_) return {};
  int code = with_ballast([&] { return raise_mark_.bind(1, stored(up_to.value())).run(); });
  if (code != SQLITE_OK) return problem(code, "trimming");
  trimmed_ = up_to;
  return {};
}

LogResult<bool> LogTable::clean_some() {
  if (auto usable = check_usable(); !usable) return pass_error(usable);
  if (trimmed_.value() == 0) return false;
  uint64_t oldest = 0;
  {
    ResetAtEnd reset(oldest_);
    int code = oldest_.step();
    if (code != SQLITE_ROW) return problem(code, "trimming");
    oldest = static_cast<uint64_t>(oldest_.integer(0));
  }
  uint64_t last = std::min(trimmed_.value(), tail_.value() - 1);
  if (oldest == 0 || oldest > last) return vacuum_some();
  uint64_t up_to = std::min(last, oldest + kRowsDeletedAtOnce - 1);
  int code = with_ballast([&] { return delete_.bind(1, stored(up_to)).run(); });
  if (code != SQLITE_OK) return problem(code, "trimming");
  return true;
}

LogResult<bool> LogTable::vacuum_some() {
  SqliteStatement statement;
  int code = statement.prepare(connection_.get(), "PRAGMA freelist_count");
  if (code == SQLITE_OK) code = statement.step();
  if (code != SQLITE_ROW) return problem(code, "trimming");
  uint64_t free_pages = static_cast<uint64_t>(statement.integer(0));
  statement = SqliteStatement();
  if (free_pages * kPageBytes <= options_.free_page_bytes_max) return false;
  std::string sql = fmt::format("PRAGMA incremental_vacuum({})", kPagesVacuumedAtOnce);
  code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return problem(code, "trimming");
  return true;
}

void LogTable::checkpoint() {
  if (!check_usable() || !wants_checkpoint()) return;
  // Afterwards the write-ahead log is written from its start again. If there is no room for that, all the more
  // must it not grow on.
  int code = with_ballast([this] {
    return sqlite3_wal_checkpoint_v2(connection_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  });
  if (code == SQLITE_OK) wal_pages_ = 0;
}

}  // namespace varve::metadata
