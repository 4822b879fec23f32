// The SQLite log on simulated disks: power cuts, failing syncs and writes, full and damaged disks.
#include <gtest/gtest.h>

#include "metadata/log/log_test_steps.h"
#include "metadata/log/sqlite/sqlite_log.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::metadata {
namespace {

using conformance::key_of;
using conformance::kManyBytes;
using conformance::kNonce;
using runtime::Task;

constexpr const char* kFolder = "/broker/log";

SqliteLogOptions small() {
  return {.folder = kFolder,
          .reserve_bytes = 0,
          .reserve_percent = 0,
          .ballast_bytes = 0,
          .checkpoint_bytes = 100'000};
}

template <class T>
LogErrc code_of(const LogResult<T>& result) {
  EXPECT_FALSE(result) << "it should have failed";
  return result ? LogErrc::kTrimmed : result.error().code;
}

class SqliteLogDisk : public testing::Test {
 protected:
  void run(Task<> task) { sim::run_task(world_, node_.process().io(0), std::move(task)); }
  std::unique_ptr<SqliteLog> make(SqliteLogOptions options) {
    return std::make_unique<SqliteLog>(node_.process(), std::move(options));
  }

  sim::World world_{{.seed = 7}};
  sim::Node node_{world_, {.host = "a"}};
};

Task<> open(SqliteLog* log) { co_await conformance::open_log(*log, conformance::some_uuid(1), nullptr); }

Task<LogResult<LogPosition>> append(SqliteLog* log, EntryKey key, std::string text, EntryRoom room) {
  auto tail = co_await log->tail();
  if (!tail) co_return pass_error(tail);
  co_return co_await log->append(key, *tail, Slice::copy_of(as_bytes(text)), room);
}

Task<> fill(SqliteLog* log, sim::SimFileSystem* disk) {
  co_await conformance::begin(*log, kNonce);
  std::string text(10'000, 'x');
  uint64_t sequence = 0;
  LogErrc code = LogErrc::kTrimmed;
  while (code == LogErrc::kTrimmed && sequence < 1000) {
    auto appended = co_await append(log, key_of(kNonce, ++sequence), text, EntryRoom::kNormal);
    if (!appended) code = appended.error().code;
  }
  EXPECT_EQ(code, LogErrc::kFull);
  EXPECT_GT(sequence, 100u);
  auto space = disk->space("/");
  EXPECT_GE(space->free_bytes + 200'000, 1'000'000u) << "normal entries leave the reserve alone";

  // Somebody else takes all that is left: entries that free room still find the ballast's.
  disk->set_capacity(space->total_bytes - space->free_bytes);
  for (int i = 0; i < 20; ++i) {
    auto appended = co_await append(log, key_of(kNonce, sequence++), text, EntryRoom::kReserve);
    EXPECT_TRUE(appended) << appended.error().message;
  }
  EXPECT_FALSE(disk->stat(std::string(kFolder) + "/ballast")) << "it was given up";
  auto tail = co_await log->tail();
  auto trimmed = co_await log->trim(*tail);
  EXPECT_TRUE(trimmed) << trimmed.error().message;

  // The rest of the ballast ends too: an answer, and no damage.
  disk->set_capacity(1);
  for (int i = 0; i < 300 && code == LogErrc::kFull; ++i) {
    auto appended = co_await append(log, key_of(kNonce, sequence), text, EntryRoom::kReserve);
    if (appended) ++sequence;
    code = appended ? LogErrc::kFull : appended.error().code;
    if (!appended) break;
  }
  EXPECT_EQ(code, LogErrc::kFull);

  disk->set_capacity(20'000'000);
  for (int i = 0; i < 10; ++i) {
    auto appended = co_await append(log, key_of(kNonce, sequence++), text, EntryRoom::kNormal);
    EXPECT_TRUE(appended) << "it heals by itself: " << appended.error().message;
  }
  co_await runtime::sleep_for(1s);
  EXPECT_TRUE(disk->stat(std::string(kFolder) + "/ballast")) << "it was taken again";
  auto end = co_await log->tail();
  auto entries = co_await conformance::read_up_to(*log, *tail, *end, kManyBytes);
  EXPECT_EQ(entries.back().position, *end);
}

TEST_F(SqliteLogDisk, AFullDiskStopsNormalEntriesFirstAndHeals) {
  node_.disk().set_capacity(6'000'000);
  SqliteLogOptions options = small();
  options.reserve_bytes = 1'000'000;
  options.ballast_bytes = 1'000'000;
  auto log = make(options);
  run(open(log.get()));
  run(fill(log.get(), &node_.disk()));
  run(conformance::close_log(*log));
}

Task<> fill_and_trim(SqliteLog* log, sim::SimFileSystem* disk, uint64_t* largest) {
  co_await conformance::begin(*log, kNonce);
  LogPosition tail;
  for (uint64_t i = 1; i <= 6000; ++i) {
    tail = co_await conformance::must_append(*log, key_of(kNonce, i), std::string(1000, 'x'));
    if (i % 500 != 0) continue;
    EXPECT_TRUE(co_await log->trim(LogPosition(tail.value() - 100)));
    *largest = std::max(*largest, disk->stat(std::string(kFolder) + "/log.db")->size);
  }
  auto rest = co_await conformance::read_up_to(*log, LogPosition(tail.value() - 100), tail, kManyBytes);
  EXPECT_EQ(rest.size(), 100u);
}

TEST_F(SqliteLogDisk, TrimmedSpaceIsUsedAgain) {
  auto log = make(small());
  run(open(log.get()));
  uint64_t largest = 0;
  run(fill_and_trim(log.get(), &node_.disk(), &largest));
  EXPECT_LT(largest, 1'500'000u) << "6 MB of entries went through it";
  EXPECT_LT(node_.disk().stat(std::string(kFolder) + "/log.db-wal")->size, 1'000'000u);
  run(conformance::close_log(*log));
  EXPECT_FALSE(node_.disk().stat(std::string(kFolder) + "/log.db-wal")) << "a clean end leaves one file";
}

Task<> fail_a_sync(SqliteLog* log, sim::SimFileSystem* disk) {
  co_await conformance::begin(*log, kNonce);
  co_await conformance::must_append(*log, key_of(kNonce, 1), "one");
  disk->set_faults({.sync_fails = 1000});
  auto failed = co_await append(log, key_of(kNonce, 2), "two", EntryRoom::kNormal);
  EXPECT_EQ(code_of(failed), LogErrc::kSyncFailed);
  EXPECT_NE(failed.error().message.find("must end"), std::string::npos) << failed.error().message;
  disk->set_faults({});
  EXPECT_EQ(code_of(co_await log->append(key_of(kNonce, 2), LogPosition(1), Slice())), LogErrc::kSyncFailed);
  EXPECT_EQ(code_of(co_await log->tail()), LogErrc::kSyncFailed);
  EXPECT_EQ(code_of(co_await log->read(LogPosition(), 1)), LogErrc::kSyncFailed);
  EXPECT_EQ(code_of(co_await log->trim(LogPosition(1))), LogErrc::kSyncFailed);
  EXPECT_EQ(code_of(co_await log->sessions()), LogErrc::kSyncFailed);
}

Task<> expect_readable(SqliteLog* log) {
  auto tail = co_await log->tail();
  EXPECT_TRUE(tail && tail->value() >= 1);
  auto entries = co_await conformance::read_up_to(*log, LogPosition(), *tail, kManyBytes);
  EXPECT_TRUE(!entries.empty() && conformance::text_of(entries[0]) == "one");
}

TEST_F(SqliteLogDisk, AFailedSyncIsTheEndOfThisProcess) {
  auto log = make(small());
  run(open(log.get()));
  run(fail_a_sync(log.get(), &node_.disk()));
  run(conformance::close_log(*log));
  log = make(small());
  run(open(log.get()));
  run(expect_readable(log.get()));
}

Task<> append_among_failures(SqliteLog* log, std::vector<std::string>* texts) {
  co_await conformance::begin(*log, kNonce);
  for (uint64_t i = 1; i <= 400; ++i) {
    std::string text = fmt::format("entry {} {}", i, std::string(i * 7 % 900, 'x'));
    for (int tries = 0;; ++tries) {
      auto appended = co_await append(log, key_of(kNonce, i), text, EntryRoom::kNormal);
      if (appended) {
        EXPECT_EQ(appended->value(), i);
        break;
      }
      EXPECT_TRUE(appended.error().code == LogErrc::kUnknown ||
                  appended.error().code == LogErrc::kUnavailable)
          << appended.error().message;
      if (tries > 50) co_return;
    }
    texts->push_back(text);
  }
}

Task<> expect_texts(SqliteLog* log, std::vector<std::string>* texts) {
  auto entries =
      co_await conformance::read_up_to(*log, LogPosition(), LogPosition(texts->size()), kManyBytes);
  EXPECT_EQ(entries.size(), texts->size());
  for (size_t i = 0; i < std::min(entries.size(), texts->size()); ++i) {
    EXPECT_EQ(conformance::text_of(entries[i]), (*texts)[i]);
  }
}

TEST_F(SqliteLogDisk, FailedWritesAreTriedAgainAndNeverMakeAnEntryTwice) {
  auto log = make(small());
  run(open(log.get()));
  std::vector<std::string> texts;
  node_.disk().set_faults({.read_fails = 20, .write_fails = 60});
  run(append_among_failures(log.get(), &texts));
  node_.disk().set_faults({});
  EXPECT_EQ(texts.size(), 400u);
  run(expect_texts(log.get(), &texts));
  run(conformance::close_log(*log));
  log = make(small());
  run(open(log.get()));
  run(expect_texts(log.get(), &texts));
}

// What the world was told of a log, over all lives of its process.
struct Told {
  std::map<uint64_t, std::pair<EntryKey, std::string>> acknowledged;  // by position
  std::optional<std::pair<EntryKey, std::string>> in_doubt;
  uint64_t trimmed_at_least = 0;
  uint64_t trimmed_at_most = 0;
  uint64_t lives = 0;
  uint64_t landed_in_doubt = 0;
  bool must_end = false;  // a sync failed: the process ends, as the broker's does
};

Task<> check(SqliteLog* log, Told* told) {
  auto tail = co_await log->tail();
  EXPECT_TRUE(tail);
  if (!tail) co_return;
  uint64_t last = told->acknowledged.empty() ? 0 : told->acknowledged.rbegin()->first;
  EXPECT_GE(tail->value(), last) << "acknowledged entries are lost";
  EXPECT_LE(tail->value(), last + (told->in_doubt ? 1 : 0)) << "entries from nowhere";
  auto page = co_await log->read(LogPosition(), SIZE_MAX);
  EXPECT_TRUE(page) << page.error().message;
  if (!page) co_return;
  EXPECT_GE(page->trimmed.value(), told->trimmed_at_least);
  EXPECT_LE(page->trimmed.value(), told->trimmed_at_most);
  told->trimmed_at_least = page->trimmed.value();
  EXPECT_EQ(page->entries.size(), tail->value() - page->trimmed.value());
  for (const LogEntry& entry : page->entries) {
    auto known = told->acknowledged.find(entry.position.value());
    if (known != told->acknowledged.end()) {
      EXPECT_EQ(conformance::text_of(entry), known->second.second);
    } else if (told->in_doubt) {
      EXPECT_EQ(conformance::text_of(entry), told->in_doubt->second);
      told->acknowledged[entry.position.value()] = *told->in_doubt;
      ++told->landed_in_doubt;
    }
  }
  told->in_doubt.reset();
}

Task<> work(SqliteLog* log, Random random, Told* told) {
  Nonce nonce(++told->lives);
  co_await conformance::begin(*log, nonce);
  for (uint64_t i = 1;; ++i) {
    uint64_t last = told->acknowledged.empty() ? 0 : told->acknowledged.rbegin()->first;
    if (random.chance(1, 20) && last > 0) {
      uint64_t up_to = 1 + random.below(last);
      told->trimmed_at_most = std::max(told->trimmed_at_most, up_to);
      auto trimmed = co_await log->trim(LogPosition(up_to));
      if (trimmed) told->trimmed_at_least = std::max(told->trimmed_at_least, up_to);
    }
    size_t bytes = random.chance(1, 10) ? random.below(60'000) : random.below(400);
    std::string text = fmt::format("{} {} {}", nonce, i, std::string(bytes, 'x'));
    told->in_doubt = std::pair(key_of(nonce, i), text);
    auto appended = co_await append(log, key_of(nonce, i), text, EntryRoom::kNormal);
    // No answer: the same again, and nothing else, until its fate is known or the process ends.
    while (!appended) {
      told->must_end = appended.error().code == LogErrc::kSyncFailed;
      if (told->must_end) co_return;
      co_await runtime::sleep_for(1ms);
      appended = co_await append(log, key_of(nonce, i), text, EntryRoom::kNormal);
    }
    told->acknowledged[appended->value()] = *told->in_doubt;
    told->in_doubt.reset();
  }
}

struct Cuts {
  uint64_t acknowledged = 0;
  uint64_t landed_in_doubt = 0;
};

// Each round: open, compare with what was told, work until the power fails (or the process is killed).
Cuts live_and_die(uint64_t seed, int rounds, const sim::FileFaults& faults, uint64_t kills_per_mille) {
  sim::World world({.seed = seed});
  sim::Node node(world, {.host = "a"});
  Told told;
  for (int round = 0;; ++round) {
    auto log = std::make_unique<SqliteLog>(node.process(), small());
    bool is_dead = false;
    auto cut = [&](uint64_t calls) {
      node.cut_power_after(calls, [&] {
        node.crash(sim::CrashKind::kPowerCut);
        is_dead = true;
      });
    };
    // Sometimes it fails while the log is being opened.
    bool in_open = round < rounds && world.random().chance(1, 5);
    if (in_open) {
      cut(1 + world.random().below(30));
      runtime::TaskScope scope;
      auto open_only = [](SqliteLog* opened) -> Task<> { co_await opened->open(conformance::some_uuid(1)); };
      scope.spawn(node.process().io(0), "open", open_only(log.get()));
      world.run_until([&] { return is_dead || scope.size() == 0; });
      if (!is_dead) node.crash(sim::CrashKind::kPowerCut);
    } else {
      sim::run_task(world, node.process().io(0), open(log.get()));
      sim::run_task(world, node.process().io(0), check(log.get(), &told));
      if (round >= rounds || testing::Test::HasFailure()) {
        sim::run_task(world, node.process().io(0), log->close());
        break;
      }
      runtime::TaskScope scope;
      node.disk().set_faults(faults);
      uint64_t calls = 1 + world.random().below(300);
      bool is_kill = world.random().chance(kills_per_mille, 1000);
      if (!is_kill) cut(calls);
      scope.spawn(node.process().io(0), "work", work(log.get(), world.random().fork(), &told));
      uint64_t before = node.disk().changing_calls();
      told.must_end = false;
      auto is_over = [&] {
        return is_dead || told.must_end || (is_kill && node.disk().changing_calls() >= before + calls);
      };
      EXPECT_EQ(world.run_until(is_over), sim::RunEnd::kDone);
      if (!is_dead) node.crash(is_kill ? sim::CrashKind::kKilled : sim::CrashKind::kPowerCut);
      node.disk().set_faults({});
    }
    log.reset();
    node.boot();
  }
  return {told.acknowledged.size(), told.landed_in_doubt};
}

TEST(SqliteLogPower, TwoHundredCutsLoseAndDoubleNothing) {
  Cuts total;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    Cuts cuts = live_and_die(seed, 10, {}, 200);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    total.acknowledged += cuts.acknowledged;
    total.landed_in_doubt += cuts.landed_in_doubt;
  }
  EXPECT_GT(total.acknowledged, 1000u);
  EXPECT_GT(total.landed_in_doubt, 10u) << "some unanswered entries landed: both fates were met";
}

TEST(SqliteLogPower, CutsAmongFailingWritesLoseNothing) {
  uint64_t acknowledged = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    acknowledged += live_and_die(seed, 5, {.read_fails = 5, .write_fails = 20}, 200).acknowledged;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(acknowledged, 1000u);
}

// A sync that failed may have lost bytes which the next process still reads; the cut that tells comes later.
TEST(SqliteLogPower, AProcessEndedByAFailedSyncLosesNothingInLaterCuts) {
  uint64_t acknowledged = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    acknowledged += live_and_die(seed, 8, {.sync_fails = 15, .sync_folder_fails = 15}, 700).acknowledged;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(acknowledged, 1000u);
}

Task<> fill_for_damage(SqliteLog* log, std::vector<std::string>* texts) {
  co_await conformance::begin(*log, kNonce);
  for (uint64_t i = 1; i <= 60; ++i) {
    texts->push_back(
        fmt::format("entry {} {}", i, std::string(i * 37 % 3000, static_cast<char>('a' + i % 26))));
    co_await conformance::must_append(*log, key_of(kNonce, i), texts->back());
  }
  co_await log->close();
}

Task<> look_at_damaged(SqliteLog* log, std::vector<std::string>* texts, int* noticed) {
  auto opened = co_await log->open(conformance::some_uuid(1));
  if (!opened) {
    EXPECT_TRUE(opened.error().code == LogErrc::kCorrupt || opened.error().code == LogErrc::kWrongLog)
        << opened.error().message;
    ++*noticed;
    co_return;
  }
  auto tail = co_await log->tail();
  EXPECT_EQ(tail->value(), texts->size());
  auto page = co_await log->read(LogPosition(), SIZE_MAX);
  if (!page) {
    EXPECT_EQ(page.error().code, LogErrc::kCorrupt);
    ++*noticed;
    co_return;
  }
  EXPECT_EQ(page->entries.size(), texts->size());
  for (size_t i = 0; i < page->entries.size(); ++i) {
    EXPECT_EQ(conformance::text_of(page->entries[i]), (*texts)[i]);
  }
}

TEST(SqliteLogDamage, AFlippedBitIsNoticedOrHarmless) {
  int noticed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    sim::World world({.seed = seed});
    sim::Node node(world, {.host = "a"});
    std::vector<std::string> texts;
    for (bool is_damaged : {false, true}) {
      SqliteLog log(node.process(), small());
      if (is_damaged) {
        ASSERT_TRUE(node.disk().damage(std::string(kFolder) + "/log.db"));
        sim::run_task(world, node.process().io(0), look_at_damaged(&log, &texts, &noticed));
        sim::run_task(world, node.process().io(0), log.close());
        break;
      }
      sim::run_task(world, node.process().io(0), open(&log));
      sim::run_task(world, node.process().io(0), fill_for_damage(&log, &texts));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(noticed, 100);
}

}  // namespace
}  // namespace varve::metadata
