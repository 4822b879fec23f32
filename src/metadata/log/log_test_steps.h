// Steps that tests of any metadata log are made of; each expects that it succeeds.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "metadata/log/metadata_log.h"
#include "runtime/runtime.h"

namespace varve::metadata {

namespace conformance {

using runtime::Task;

inline constexpr Nonce kNonce{77};
inline constexpr Nonce kOtherNonce{88};
inline constexpr size_t kManyBytes = 1 << 20;

inline Uuid some_uuid(uint8_t fill) {
  Uuid id;
  id.bytes.fill(fill);
  return id;
}
inline EntryKey key_of(Nonce nonce, uint64_t sequence) { return {nonce, EntrySequence(sequence)}; }
inline std::string text_of(const LogEntry& entry) { return std::string(as_text(entry.bytes.view())); }

inline Task<MonotonicTime> now_plus(Duration span) {
  runtime::TaskContext& context = co_await runtime::this_context();
  co_return context.executor->now() + span;
}

inline Task<> open_log(MetadataLog& log, Uuid new_id, LogIdentity* opened) {
  auto identity = co_await log.open(new_id);
  EXPECT_TRUE(identity) << identity.error().message;
  if (identity && opened != nullptr) *opened = *identity;
}

inline Task<> close_log(MetadataLog& log) { co_await log.close(); }

inline Task<> begin(MetadataLog& log, Nonce nonce) {
  auto begun = co_await log.begin_session(nonce);
  EXPECT_TRUE(begun) << begun.error().message;
}

inline Task<LogPosition> tail_of(MetadataLog& log) {
  auto tail = co_await log.tail();
  EXPECT_TRUE(tail) << tail.error().message;
  co_return tail ? *tail : LogPosition();
}

// Appends as a broker that has applied the whole log. The bytes are gone when it returns.
inline Task<LogResult<LogPosition>> append(MetadataLog& log, EntryKey key, std::string text) {
  LogPosition applied = co_await tail_of(log);
  co_return co_await log.append(key, applied, Slice::copy_of(as_bytes(text)));
}

inline Task<LogPosition> must_append(MetadataLog& log, EntryKey key, std::string text) {
  auto position = co_await append(log, key, std::move(text));
  EXPECT_TRUE(position) << position.error().message;
  co_return position ? *position : LogPosition();
}

// Reads on from `after` until `up_to` is among the entries; waits where the host is behind.
inline Task<std::vector<LogEntry>> read_up_to(MetadataLog& log, LogPosition after, LogPosition up_to,
                                              size_t page_bytes) {
  std::vector<LogEntry> entries;
  for (int tries = 0; tries < 10'000 && after < up_to; ++tries) {
    auto page = co_await log.read(after, page_bytes);
    EXPECT_TRUE(page) << page.error().message;
    if (!page) break;
    for (LogEntry& entry : page->entries) {
      EXPECT_GT(entry.position, after) << "positions rise";
      after = entry.position;
      entries.push_back(std::move(entry));
    }
    if (page->entries.empty()) co_await log.wait_for_entries(after, co_await now_plus(1s));
  }
  EXPECT_GE(after, up_to) << "the reader never got there";
  co_return entries;
}

// One page with an entry in it; asks again where the host is behind.
inline Task<LogPage> read_page(MetadataLog& log, LogPosition after, size_t max_bytes) {
  for (int tries = 0; tries < 10'000; ++tries) {
    auto page = co_await log.read(after, max_bytes);
    EXPECT_TRUE(page) << page.error().message;
    if (!page) break;
    if (!page->entries.empty()) co_return std::move(*page);
    co_await log.wait_for_entries(after, co_await now_plus(1s));
  }
  ADD_FAILURE() << "no entry came";
  co_return LogPage{};
}

}  // namespace conformance

}  // namespace varve::metadata
