#include "sim/metadata_log.h"

#include <gtest/gtest.h>

#include "metadata/log/log_conformance.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using metadata::EntryKey;
using metadata::LogErrc;
using metadata::LogIdentity;
using metadata::LogPage;
using metadata::LogResult;
using metadata::MetadataLog;
using runtime::Task;

class SimLogUnderTest final : public metadata::LogUnderTest {
 public:
  SimLogUnderTest(uint64_t seed, Duration lag_max) : world_({.seed = seed}) {
    log_.set_faults({.watch_missed = 100, .watch_broken = 100, .lag_max = lag_max});
    reopen();
    second_ = log_.client(node_.process());
  }
  MetadataLog& log() override { return *client_; }
  MetadataLog* second() override { return second_.get(); }
  void reopen() override { client_ = log_.client(node_.process()); }
  void run(Task<> task) override { run_task(world_, node_.process().io(0), std::move(task)); }

 private:
  World world_;
  Node node_{world_, {.host = "a"}};
  SimMetadataLog log_{world_};
  std::unique_ptr<MetadataLog> client_;
  std::unique_ptr<MetadataLog> second_;
};

metadata::LogCase sim_case(uint64_t seed, Duration lag_max) {
  return {fmt::format("Seed{}Lag{}ms", seed, lag_max.count() / 1'000'000),
          [=] { return std::make_unique<SimLogUnderTest>(seed, lag_max); }};
}

// Two nodes on one log; calls run to their end.
class SimLogTest : public testing::Test {
 protected:
  void SetUp() override {
    EXPECT_TRUE(run(a_, log_a_->open(Uuid{})));
    EXPECT_TRUE(run(b_, log_b_->open(Uuid{})));
    EXPECT_TRUE(run(a_, log_a_->begin_session(Nonce(1))));
    EXPECT_TRUE(run(b_, log_b_->begin_session(Nonce(2))));
  }
  template <class T>
  LogResult<T> run(Node& node, Task<LogResult<T>> call) {
    std::optional<LogResult<T>> result;
    run_task(world_, node.process().io(0), keep(std::move(call), &result));
    return std::move(*result);
  }
  template <class T>
  static Task<> keep(Task<LogResult<T>> call, std::optional<LogResult<T>>* result) {
    result->emplace(co_await std::move(call));
  }
  LogResult<LogPosition> append(uint64_t sequence) {
    return run(a_, log_a_->append({Nonce(1), EntrySequence(sequence)}, LogPosition(),
                                  Slice::copy_of(as_bytes(fmt::format("entry {}", sequence)))));
  }
  LogErrc append_error(uint64_t sequence) {
    auto result = append(sequence);
    EXPECT_FALSE(result);
    return result ? LogErrc::kCorrupt : result.error().code;
  }

  World world_{{.seed = 3}};
  Node a_{world_, {.host = "a"}};
  Node b_{world_, {.host = "b"}};
  SimMetadataLog log_{world_};
  std::unique_ptr<MetadataLog> log_a_ = log_.client(a_.process());
  std::unique_ptr<MetadataLog> log_b_ = log_.client(b_.process());
};

TEST_F(SimLogTest, AnUnknownAppendMayBeThereMayNotAndMayComeLater) {
  log_.set_faults({.append = {.request_lost = 1000}});
  EXPECT_EQ(append_error(1), LogErrc::kUnknown);
  world_.run_for(1min);
  EXPECT_EQ(log_.tail(), LogPosition());

  log_.set_faults({.append = {.reply_lost = 1000}});
  EXPECT_EQ(append_error(1), LogErrc::kUnknown);
  world_.run_for(1s);
  LogPosition first = log_.tail();
  EXPECT_GT(first, LogPosition());

  log_.set_faults({.append = {.lands_late = 1000}});
  EXPECT_EQ(append_error(2), LogErrc::kUnknown);
  log_.set_faults({});
  world_.run_for(1min);
  EXPECT_GT(log_.tail(), first);
  EXPECT_EQ(append(2), log_.tail()) << "the same key is the entry that came late";
}

TEST_F(SimLogTest, ASessionLastsWhileItsProcessRuns) {
  world_.run_for(5min);
  EXPECT_EQ(log_.sessions(), (std::vector<Nonce>{Nonce(1), Nonce(2)}));
  a_.pause();
  b_.crash(CrashKind::kKilled);
  world_.run_for(10s);
  EXPECT_EQ(log_.sessions().size(), 2u) << "the lease is 20 s";
  world_.run_for(15s);
  EXPECT_TRUE(log_.sessions().empty());
  a_.resume();
  EXPECT_EQ(append_error(1), LogErrc::kSessionGone) << "a paused broker that wakes appends nothing";
  b_.boot();
  log_b_ = log_.client(b_.process());
  EXPECT_TRUE(run(b_, log_b_->open(Uuid{})));
  EXPECT_TRUE(run(b_, log_b_->sessions())->empty());
}

TEST_F(SimLogTest, AShortPauseOrPartitionLosesNoSession) {
  a_.pause();
  log_.set_reachable("b", false);
  world_.run_for(12s);
  a_.resume();
  log_.set_reachable("b", true);
  world_.run_for(1min);
  EXPECT_EQ(log_.sessions().size(), 2u);
  log_.set_reachable("b", false);
  world_.run_for(1min);
  EXPECT_EQ(log_.sessions(), std::vector<Nonce>{Nonce(1)});
  log_.set_reachable("b", true);
  auto gone =
      run(b_, log_b_->append({Nonce(2), EntrySequence(1)}, LogPosition(), Slice::unowned(as_bytes("x"))));
  EXPECT_EQ(gone.error().code, LogErrc::kSessionGone);
}

TEST_F(SimLogTest, ReadsMayBeStaleButTheTailIsNot) {
  log_.set_faults({.lag_max = 10s});
  bool was_stale = false;
  LogPosition before;
  for (uint64_t i = 1; i <= 20; ++i) {
    auto position = append(i);
    ASSERT_TRUE(position);
    EXPECT_EQ(run(b_, log_b_->tail()), *position);
    auto page = run(b_, log_b_->read(before, 1 << 20));
    if (!page) continue;
    was_stale = was_stale || page->entries.empty();
    for (auto& entry : page->entries) EXPECT_LE(entry.position, *position);
    before = *position;
  }
  EXPECT_TRUE(was_stale);
}

TEST_F(SimLogTest, ATrimmedKeyIsForgottenAsInEtcd) {
  LogPosition first = *append(1);
  EXPECT_TRUE(run(a_, log_a_->trim(first)));
  world_.run_for(1s);
  EXPECT_GT(*append(1), first) << "so apply must drop what it has seen";
  EXPECT_EQ(log_.records().size(), 2u);
  EXPECT_EQ(log_.trim_mark(), first);
}

TEST_F(SimLogTest, ARestoredBackupIsNoticedByWhoSawMore) {
  LogPosition first = *append(1);
  LogPosition second = *append(2);
  log_.roll_back(first);
  EXPECT_EQ(log_.tail(), first);
  EXPECT_EQ(run(a_, log_a_->tail()).error().code, LogErrc::kCorrupt);
  EXPECT_EQ(append_error(3), LogErrc::kCorrupt);
  a_.crash(CrashKind::kKilled);
  a_.boot();
  log_a_ = log_.client(a_.process());
  ASSERT_TRUE(run(a_, log_a_->open(Uuid{})));
  EXPECT_EQ(run(a_, log_a_->tail()), first) << "a new process cannot know it from the log";
  EXPECT_LT(first, second);
}

TEST_F(SimLogTest, AnotherGenerationRefusesOldClients) {
  EXPECT_TRUE(append(1));
  log_.raise_generation();
  EXPECT_EQ(append_error(2), LogErrc::kWrongLog);
  auto identity = run(b_, log_b_->open(Uuid{}));
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->generation, LogGeneration(2));
}

TEST_F(SimLogTest, AFullHostRefusesAndForgetsNothing) {
  EXPECT_TRUE(append(1));
  log_.set_full(true);
  EXPECT_EQ(append_error(2), LogErrc::kFull);
  log_.set_full(false);
  EXPECT_TRUE(append(2));
}

TEST_F(SimLogTest, EveryFaultOfThePlanHappensAndAcknowledgedEntriesStay) {
  log_.set_faults(LogFaults::all(50));
  std::map<uint64_t, LogPosition> acknowledged;
  for (uint64_t i = 1; i <= 400; ++i) {
    auto position = append(i);
    if (position) {
      acknowledged[i] = *position;
    } else if (position.error().code == LogErrc::kSessionGone) {
      (void)run(a_, log_a_->begin_session(Nonce(1)));
    }
    (void)run(b_, log_b_->read(LogPosition(), 100));
    (void)run(b_, log_b_->tail());
    (void)run(b_, log_b_->trim(LogPosition(1)));
  }
  std::map<EntryKey, LogPosition> committed;
  LogPosition before;
  for (const auto& record : log_.records()) {
    EXPECT_LT(before, record.position);
    before = record.position;
    EXPECT_TRUE(committed.emplace(record.key, record.position).second) << "a key is appended once";
  }
  for (auto [sequence, position] : acknowledged) {
    EXPECT_EQ(committed.at({Nonce(1), EntrySequence(sequence)}), position);
  }
  for (std::string fault :
       {"log.append.request_lost", "log.append.reply_lost", "log.append.lands_late", "log.append.slow",
        "log.read.compacted", "log.read.request_lost", "log.tail.slow", "log.trim.without_deletes",
        "log.session.keep_alive_lost", "log.session.lease_lost"}) {
    EXPECT_TRUE(world_.happenings().contains(fault)) << fault;
  }
}

}  // namespace
}  // namespace varve::sim

namespace varve::metadata {
INSTANTIATE_TEST_SUITE_P(Sim, LogConformance,
                         testing::Values(sim::sim_case(1, 0ns), sim::sim_case(2, 50ms), sim::sim_case(3, 5s)),
                         log_case_name);
}  // namespace varve::metadata
