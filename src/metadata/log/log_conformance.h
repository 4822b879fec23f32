// What every host of the metadata log must do. Included by each host's test, which instantiates LogConformance
// with its factory:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, LogConformance, testing::Values(LogCase{"sqlite", make_it}), log_case_name);
//
// The bodies hold for a host that is stale, slow and reorders what is concurrent, but that loses no request.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "metadata/log/log_test_steps.h"
#include "metadata/log/metadata_log.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"

namespace varve::metadata {

// A fresh log that a test may open, and a way to run tasks on it.
class LogUnderTest {
 public:
  virtual ~LogUnderTest() = default;
  // Not yet opened.
  virtual MetadataLog& log() = 0;
  // Another broker's hold on the same log, or null where the host allows one. Not yet opened.
  virtual MetadataLog* second() = 0;
  // Destroys log(), which was closed, and makes it anew over what it left, as after a restart of the process.
  virtual void reopen() = 0;
  // Runs `task` to its end; from the test's thread.
  virtual void run(runtime::Task<> task) = 0;
};

struct LogCase {
  std::string name;
  std::function<std::unique_ptr<LogUnderTest>()> make;

  // For gtest, which would print its bytes.
  friend std::ostream& operator<<(std::ostream& out, const LogCase& self) { return out << self.name; }
};
inline std::string log_case_name(const testing::TestParamInfo<LogCase>& info) { return info.param.name; }

class LogConformance : public testing::TestWithParam<LogCase> {
 protected:
  void SetUp() override { host_ = GetParam().make(); }

  void run(runtime::Task<> task) { host_->run(std::move(task)); }
  // Runs a test's body on the log, opened.
  void run_open(runtime::Task<> (*body)(MetadataLog&));

  std::unique_ptr<LogUnderTest> host_;
};

namespace conformance {

inline Task<> empty_log(MetadataLog& log) {
  EXPECT_EQ((co_await tail_of(log)).value(), 0u);
  auto page = co_await log.read(LogPosition(), kManyBytes);
  EXPECT_TRUE(page);
  if (page) {
    EXPECT_TRUE(page->entries.empty());
    EXPECT_EQ(page->trimmed.value(), 0u);
  }
  auto sessions = co_await log.sessions();
  EXPECT_TRUE(sessions && sessions->empty());
}

inline Task<> entries_come_back(MetadataLog& log) {
  co_await begin(log, kNonce);
  std::vector<LogPosition> positions;
  for (uint64_t i = 1; i <= 20; ++i) {
    positions.push_back(co_await must_append(log, key_of(kNonce, i), fmt::format("entry {}", i)));
    EXPECT_EQ(co_await tail_of(log), positions.back()) << "the tail is linearizable";
  }
  EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
  auto entries = co_await read_up_to(log, LogPosition(), positions.back(), kManyBytes);
  EXPECT_EQ(entries.size(), 20u);
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].position, positions[i]);
    EXPECT_EQ(text_of(entries[i]), fmt::format("entry {}", i + 1));
  }
  auto later = co_await read_up_to(log, positions[9], positions.back(), kManyBytes);
  EXPECT_EQ(later.size(), 10u);
  EXPECT_TRUE(!later.empty() && text_of(later.front()) == "entry 11");
  auto none = co_await log.read(positions.back(), kManyBytes);
  EXPECT_TRUE(none && none->entries.empty());
}

inline Task<> keys_name_entries(MetadataLog& log) {
  co_await begin(log, kNonce);
  co_await begin(log, kOtherNonce);
  LogPosition first = co_await must_append(log, key_of(kNonce, 1), "first");
  LogPosition again = co_await must_append(log, key_of(kNonce, 1), "first");
  EXPECT_EQ(first, again) << "the same key again is the same entry";
  LogPosition other = co_await must_append(log, key_of(kOtherNonce, 1), "other");
  EXPECT_GT(other, first) << "another nonce, another entry";
  again = co_await must_append(log, key_of(kNonce, 1), "first");
  EXPECT_EQ(first, again);
  EXPECT_EQ(co_await tail_of(log), other) << "nothing was added";
  auto entries = co_await read_up_to(log, LogPosition(), other, kManyBytes);
  EXPECT_EQ(entries.size(), 2u);
}

inline Task<> sessions_are_needed(MetadataLog& log) {
  auto refused = co_await append(log, key_of(kNonce, 1), "no session");
  EXPECT_TRUE(!refused && refused.error().code == LogErrc::kSessionGone);
  co_await begin(log, kNonce);
  co_await begin(log, kNonce);  // a second try, after a lost reply
  LogPosition first = co_await must_append(log, key_of(kNonce, 1), "mine");
  refused = co_await append(log, key_of(kOtherNonce, 1), "another's");
  EXPECT_TRUE(!refused && refused.error().code == LogErrc::kSessionGone);
  auto ended = co_await log.end_session(kNonce);
  EXPECT_TRUE(ended);
  ended = co_await log.end_session(kNonce);
  EXPECT_TRUE(ended) << "ending what has ended is no error";
  refused = co_await append(log, key_of(kNonce, 2), "too late");
  EXPECT_TRUE(!refused && refused.error().code == LogErrc::kSessionGone);
  EXPECT_EQ(co_await tail_of(log), first) << "what was refused is not there";
}

inline Task<> sessions_are_listed(MetadataLog& log) {
  co_await begin(log, kNonce);
  co_await begin(log, kOtherNonce);
  auto both = co_await log.sessions();
  EXPECT_TRUE(both && both->size() == 2);
  EXPECT_TRUE(both && std::ranges::find(*both, kNonce) != both->end());
  EXPECT_TRUE(both && std::ranges::find(*both, kOtherNonce) != both->end());
  auto ended = co_await log.end_session(kNonce);
  EXPECT_TRUE(ended);
  auto one = co_await log.sessions();
  EXPECT_TRUE(one && *one == std::vector<Nonce>{kOtherNonce});
}

inline Task<> pages_are_limited(MetadataLog& log) {
  co_await begin(log, kNonce);
  LogPosition last;
  for (uint64_t i = 1; i <= 8; ++i) {
    last = co_await must_append(log, key_of(kNonce, i), std::string(1000 * i, static_cast<char>('a' + i)));
  }
  for (size_t page_bytes : {size_t{1}, size_t{3000}, kManyBytes}) {
    auto entries = co_await read_up_to(log, LogPosition(), last, page_bytes);
    EXPECT_EQ(entries.size(), 8u);
    for (size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].bytes.size(), 1000 * (i + 1));
  }
  LogPage page = co_await read_page(log, LogPosition(), 1);
  EXPECT_EQ(page.entries.size(), 1u) << "at least one entry, and no more than asked for";
  page = co_await read_page(log, LogPosition(), 4000);
  EXPECT_LE(page.entries.size(), 3u);
}

inline Task<> large_entries(MetadataLog& log) {
  co_await begin(log, kNonce);
  LogPosition largest = co_await must_append(log, key_of(kNonce, 1), std::string(kMaxEntryBytes, 'x'));
  auto refused = co_await append(log, key_of(kNonce, 2), std::string(kMaxEntryBytes + 1, 'x'));
  EXPECT_TRUE(!refused && refused.error().code == LogErrc::kTooLarge);
  EXPECT_EQ(co_await tail_of(log), largest);
  auto entries = co_await read_up_to(log, LogPosition(), largest, 1);
  EXPECT_TRUE(entries.size() == 1 && entries[0].bytes.size() == kMaxEntryBytes);
}

// True if a read from `after` tells that the reader must load a snapshot.
inline Task<bool> must_load_snapshot(MetadataLog& log, LogPosition after) {
  auto page = co_await log.read(after, kManyBytes);
  if (!page) {
    EXPECT_EQ(page.error().code, LogErrc::kTrimmed) << page.error().message;
    co_return page.error().code == LogErrc::kTrimmed;
  }
  co_return page->trimmed > after;
}

// A stale reader may not know of the trim for a while.
inline Task<> expect_trimmed_below(MetadataLog& log, LogPosition mark) {
  bool is_known = false;
  for (int tries = 0; tries < 10'000 && !is_known; ++tries) {
    is_known = co_await must_load_snapshot(log, LogPosition(mark.value() - 1));
    if (!is_known) co_await runtime::sleep_for(10ms);
  }
  EXPECT_TRUE(is_known);
  bool must_load = co_await must_load_snapshot(log, mark);
  EXPECT_FALSE(must_load) << "who stands at the mark reads on";
}

inline Task<> trim_first_half(MetadataLog& log, std::vector<LogPosition>* positions) {
  co_await begin(log, kNonce);
  for (uint64_t i = 1; i <= 6; ++i) {
    positions->push_back(co_await must_append(log, key_of(kNonce, i), fmt::format("entry {}", i)));
  }
  auto trimmed = co_await log.trim((*positions)[2]);
  EXPECT_TRUE(trimmed) << trimmed.error().message;
  co_await expect_trimmed_below(log, (*positions)[2]);
}

inline Task<> after_trim(MetadataLog& log, std::vector<LogPosition>* positions) {
  co_await expect_trimmed_below(log, (*positions)[2]);
  auto rest = co_await read_up_to(log, (*positions)[2], positions->back(), kManyBytes);
  EXPECT_TRUE(rest.size() == 3 && text_of(rest[0]) == "entry 4");
  EXPECT_EQ(co_await tail_of(log), positions->back());
  auto lower = co_await log.trim((*positions)[0]);
  EXPECT_TRUE(lower) << "a lower mark is no error";
  co_await expect_trimmed_below(log, (*positions)[2]);
}

inline Task<> trim_everything(MetadataLog& log) {
  co_await begin(log, kNonce);
  LogPosition last = co_await must_append(log, key_of(kNonce, 1), "one");
  auto trimmed = co_await log.trim(last);
  EXPECT_TRUE(trimmed);
  EXPECT_EQ(co_await tail_of(log), last) << "the tail stays where it was";
  LogPosition next = co_await must_append(log, key_of(kNonce, 2), "two");
  EXPECT_GT(next, last);
  auto entries = co_await read_up_to(log, last, next, kManyBytes);
  EXPECT_TRUE(entries.size() == 1 && text_of(entries[0]) == "two");
}

inline Task<> wait_ends_at_deadline(MetadataLog& log) {
  MonotonicTime deadline = co_await now_plus(20ms);
  co_await log.wait_for_entries(LogPosition(), deadline);
  // It may end early; then the caller waits again, and time must go on meanwhile.
  for (int i = 0; i < 1000 && (co_await now_plus(0ns)) < deadline; ++i) {
    co_await log.wait_for_entries(LogPosition(), deadline);
  }
  EXPECT_GE(co_await now_plus(0ns), deadline);
}

inline Task<> wait_then_set(MetadataLog& log, LogPosition after, runtime::Completion<runtime::Done> woken) {
  co_await log.wait_for_entries(after, co_await now_plus(10min));
  woken.set(runtime::Done{});
}

inline Task<> wait_wakes(MetadataLog& log) {
  co_await begin(log, kNonce);
  runtime::TaskContext& context = co_await runtime::this_context();
  runtime::TaskScope scope;
  runtime::Completion<runtime::Done> woken;
  scope.spawn(*context.executor, "waiter", wait_then_set(log, LogPosition(), woken));
  MonotonicTime before = co_await now_plus(0ns);
  LogPosition first = co_await must_append(log, key_of(kNonce, 1), "one");
  co_await woken.wait();
  EXPECT_LT((co_await now_plus(0ns)) - before, 5min) << "an append wakes who waits";

  before = co_await now_plus(0ns);
  co_await log.wait_for_entries(LogPosition(), before + 10min);
  EXPECT_LT((co_await now_plus(0ns)) - before, 5min) << "an entry that is there ends the wait";

  runtime::Completion<runtime::Done> stopped;
  scope.spawn(*context.executor, "stopped waiter", wait_then_set(log, first, stopped));
  co_await runtime::sleep_for(1ms);
  before = co_await now_plus(0ns);
  co_await scope.close();
  EXPECT_TRUE(stopped.is_set());
  EXPECT_LT((co_await now_plus(0ns)) - before, 5min) << "a stop ends the wait";
}

inline Task<> single_writer_checks_tail(MetadataLog& log) {
  co_await begin(log, kNonce);
  LogPosition first = co_await must_append(log, key_of(kNonce, 1), "one");
  auto result = co_await log.append(key_of(kNonce, 2), LogPosition(), Slice::copy_of(as_bytes("two")));
  if (log.is_single_writer()) {
    EXPECT_TRUE(!result && result.error().code == LogErrc::kTailMoved);
    EXPECT_EQ(co_await tail_of(log), first);
  } else {
    EXPECT_TRUE(result) << "with many writers the tail may have moved";
  }
}

inline Task<> append_five(MetadataLog& log, std::vector<LogPosition>* positions) {
  co_await begin(log, kNonce);
  for (uint64_t i = 1; i <= 5; ++i) {
    positions->push_back(co_await must_append(log, key_of(kNonce, i), fmt::format("entry {}", i)));
  }
}

inline Task<> after_reopen(MetadataLog& log, std::vector<LogPosition>* positions) {
  EXPECT_EQ(co_await tail_of(log), positions->back());
  auto entries = co_await read_up_to(log, LogPosition(), positions->back(), kManyBytes);
  EXPECT_EQ(entries.size(), positions->size());
  co_await begin(log, kNonce);
  LogPosition again = co_await must_append(log, key_of(kNonce, 5), "entry 5");
  EXPECT_EQ(again, positions->back()) << "keys are durable too";
  co_await begin(log, kOtherNonce);
  LogPosition next = co_await must_append(log, key_of(kOtherNonce, 1), "entry 6");
  EXPECT_GT(next, positions->back());
}

inline Task<> two_brokers(MetadataLog& log, MetadataLog& second) {
  co_await begin(log, kNonce);
  co_await begin(second, kOtherNonce);
  LogPosition last;
  for (uint64_t i = 1; i <= 10; ++i) {
    LogPosition one = co_await must_append(log, key_of(kNonce, i), fmt::format("a{}", i));
    LogPosition two = co_await must_append(second, key_of(kOtherNonce, i), fmt::format("b{}", i));
    EXPECT_GT(one, last);
    EXPECT_GT(two, one);
    EXPECT_EQ(co_await tail_of(log), two) << "each sees the other's at once";
    last = two;
  }
  auto seen_by_first = co_await read_up_to(log, LogPosition(), last, kManyBytes);
  auto seen_by_second = co_await read_up_to(second, LogPosition(), last, 1);
  EXPECT_EQ(seen_by_first.size(), 20u);
  EXPECT_EQ(seen_by_second.size(), 20u);
  for (size_t i = 0; i < std::min(seen_by_first.size(), seen_by_second.size()); ++i) {
    EXPECT_EQ(seen_by_first[i].position, seen_by_second[i].position);
    EXPECT_EQ(text_of(seen_by_first[i]), text_of(seen_by_second[i]));
  }
  auto sessions = co_await second.sessions();
  EXPECT_TRUE(sessions && sessions->size() == 2);
}

}  // namespace conformance

inline void LogConformance::run_open(runtime::Task<> (*body)(MetadataLog&)) {
  run(conformance::open_log(host_->log(), conformance::some_uuid(1), nullptr));
  run(body(host_->log()));
  run(conformance::close_log(host_->log()));
}

TEST_P(LogConformance, OpeningMakesALogOnceAndThenFindsIt) {
  using namespace conformance;  // NOLINT: the suite's own names
  LogIdentity first;
  run(open_log(host_->log(), some_uuid(1), &first));
  EXPECT_EQ(first, (LogIdentity{some_uuid(1), LogGeneration(1)}));
  run(close_log(host_->log()));
  host_->reopen();
  LogIdentity again;
  run(open_log(host_->log(), some_uuid(2), &again));
  EXPECT_EQ(again, first);
  run(close_log(host_->log()));
}

TEST_P(LogConformance, WhatWasAppendedIsThereAfterAReopen) {
  std::vector<LogPosition> positions;
  run(conformance::open_log(host_->log(), conformance::some_uuid(1), nullptr));
  run(conformance::append_five(host_->log(), &positions));
  run(conformance::close_log(host_->log()));
  host_->reopen();
  run(conformance::open_log(host_->log(), conformance::some_uuid(1), nullptr));
  run(conformance::after_reopen(host_->log(), &positions));
  run(conformance::close_log(host_->log()));
}

TEST_P(LogConformance, ATrimHidesTheOldKeepsTheNewAndSurvivesAReopen) {
  std::vector<LogPosition> positions;
  run(conformance::open_log(host_->log(), conformance::some_uuid(1), nullptr));
  run(conformance::trim_first_half(host_->log(), &positions));
  run(conformance::close_log(host_->log()));
  host_->reopen();
  run(conformance::open_log(host_->log(), conformance::some_uuid(1), nullptr));
  run(conformance::after_trim(host_->log(), &positions));
  run(conformance::close_log(host_->log()));
}

TEST_P(LogConformance, TwoBrokersShareOneOrder) {
  MetadataLog* second = host_->second();
  if (second == nullptr) GTEST_SKIP() << "this host serves one broker";
  run(conformance::open_log(host_->log(), conformance::some_uuid(1), nullptr));
  LogIdentity seen_by_second;
  run(conformance::open_log(*second, conformance::some_uuid(2), &seen_by_second));
  EXPECT_EQ(seen_by_second.id, conformance::some_uuid(1));
  run(conformance::two_brokers(host_->log(), *second));
  run(conformance::close_log(*second));
  run(conformance::close_log(host_->log()));
}

TEST_P(LogConformance, ANewLogIsEmpty) { run_open(conformance::empty_log); }
TEST_P(LogConformance, EntriesComeBackInOrderWithTheirBytes) { run_open(conformance::entries_come_back); }
TEST_P(LogConformance, TheSameKeyIsTheSameEntry) { run_open(conformance::keys_name_entries); }
TEST_P(LogConformance, OnlyAnOwnSessionAppends) { run_open(conformance::sessions_are_needed); }
TEST_P(LogConformance, SessionsAreListedWhileTheyLast) { run_open(conformance::sessions_are_listed); }
TEST_P(LogConformance, PagesAreLimitedByBytes) { run_open(conformance::pages_are_limited); }
TEST_P(LogConformance, EntriesHaveALargestSize) { run_open(conformance::large_entries); }
TEST_P(LogConformance, TheWholeLogMayBeTrimmed) { run_open(conformance::trim_everything); }
TEST_P(LogConformance, AWaitEndsAtItsDeadline) { run_open(conformance::wait_ends_at_deadline); }
TEST_P(LogConformance, AWaitEndsWithAnEntryOrAStop) { run_open(conformance::wait_wakes); }
TEST_P(LogConformance, ASingleWriterChecksTheTail) { run_open(conformance::single_writer_checks_tail); }

}  // namespace varve::metadata
