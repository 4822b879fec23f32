// What every object store must do. Included by each store's test, which instantiates StoreConformance with its
// factory:
//
//   INSTANTIATE_TEST_SUITE_P(Folder, StoreConformance, testing::Values(StoreCase{"posix", make_it}), store_case_name);
//
// The bodies hold for a store without faults.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "object_store/object_store.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"

namespace varve::object_store {

// A store, empty and ready, and a way to run tasks on it.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual ObjectStore& store() = 0;
  // Runs `task` to its end; from the test's thread.
  virtual void run(runtime::Task<> task) = 0;
  // Whether keys with control characters are listed as they are.
  virtual bool lists_control_characters() const { return true; }
};

struct StoreCase {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};
inline std::string store_case_name(const testing::TestParamInfo<StoreCase>& info) { return info.param.name; }

class StoreConformance : public testing::TestWithParam<StoreCase> {
 protected:
  // The body of a test: a plain function that is a coroutine.
  void run(runtime::Task<> (*body)(ObjectStore&)) {
    std::unique_ptr<StoreUnderTest> host = GetParam().make();
    host->run(body(host->store()));
  }
};

namespace conformance {

using runtime::Task;

inline std::vector<Slice> body_of(std::string_view text) { return {Slice::copy_of(as_bytes(text))}; }

inline Task<> must_put(ObjectStore& store, std::string key, std::string text) {
  auto put = co_await store.put_if_absent(key, body_of(text));
  EXPECT_TRUE(put) << key << ": " << put.error().message;
}

// The object's bytes as text, or a text that no test stores.
inline Task<std::string> text_at(ObjectStore& store, std::string key, std::optional<ByteRange> range = {}) {
  auto got = co_await store.get(key, range);
  if (!got) co_return fmt::format("<error {}: {}>", static_cast<int>(got.error().code), got.error().message);
  co_return std::string(as_text(got->view()));
}

template <class T>
StoreErrc code_of(const StoreResult<T>& result) {
  EXPECT_FALSE(result) << "it should have failed";
  return result ? StoreErrc::kThrottled : result.error().code;
}

inline Task<> put_and_get(ObjectStore& store) {
  std::vector<Slice> body = body_of("one");
  body.push_back(Slice());
  body.push_back(Slice::copy_of(as_bytes(", two")));
  auto put = co_await store.put_if_absent("a/b/c", body);
  EXPECT_TRUE(put);
  EXPECT_EQ(co_await text_at(store, "a/b/c"), "one, two");
  co_await must_put(store, "empty", "");
  EXPECT_EQ(co_await text_at(store, "empty"), "");
  EXPECT_EQ(code_of(co_await store.get("a/b/d", {})), StoreErrc::kNotFound);
  EXPECT_EQ(code_of(co_await store.get("a/b", {})), StoreErrc::kNotFound) << "a folder is no object";
  EXPECT_EQ(code_of(co_await store.get("x/y/z", {})), StoreErrc::kNotFound);
  EXPECT_EQ(code_of(co_await store.get("a/b/c/d", {})), StoreErrc::kNotFound);
}

inline Task<> put_replaces(ObjectStore& store) {
  for (std::string text : {"first", "a longer second", ""}) {
    auto put = co_await store.put("key", body_of(text));
    EXPECT_TRUE(put);
    EXPECT_EQ(co_await text_at(store, "key"), text);
  }
}

inline Task<> absent_means_absent(ObjectStore& store) {
  co_await must_put(store, "key", "mine");
  EXPECT_EQ(code_of(co_await store.put_if_absent("key", body_of("other"))), StoreErrc::kPreconditionFailed);
  EXPECT_EQ(code_of(co_await store.put_if_absent("key", body_of("mine"))), StoreErrc::kPreconditionFailed);
  EXPECT_EQ(co_await text_at(store, "key"), "mine");
  auto deleted = co_await store.delete_many({"key"});
  EXPECT_TRUE(deleted && deleted->empty());
  co_await must_put(store, "key", "again");
  EXPECT_EQ(co_await text_at(store, "key"), "again");
}

inline Task<> rival(ObjectStore& store, int number, std::vector<int>* winners, int* losers) {
  auto put = co_await store.put_if_absent("race/key", body_of(fmt::format("rival {}", number)));
  if (put) {
    winners->push_back(number);
  } else {
    EXPECT_TRUE(put.error().code == StoreErrc::kPreconditionFailed ||
                put.error().code == StoreErrc::kConflict)
        << put.error().message;
    ++*losers;
  }
}

inline Task<> one_rival_wins(ObjectStore& store) {
  runtime::TaskContext& context = co_await runtime::this_context();
  runtime::TaskScope scope;
  std::vector<int> winners;
  int losers = 0;
  for (int i = 0; i < 12; ++i) {
    scope.spawn(*context.executor, "rival", rival(store, i, &winners, &losers));
  }
  while (scope.size() > 0) co_await runtime::sleep_for(1ms);
  EXPECT_EQ(losers, 11);
  EXPECT_EQ(winners.size(), 1u);
  if (winners.size() == 1) {
    EXPECT_EQ(co_await text_at(store, "race/key"), fmt::format("rival {}", winners[0]));
  }
}

inline Task<> ranges(ObjectStore& store) {
  co_await must_put(store, "key", "0123456789");
  EXPECT_EQ(co_await text_at(store, "key", ByteRange{0, 3}), "012");
  EXPECT_EQ(co_await text_at(store, "key", ByteRange{9, 1}), "9");
  EXPECT_EQ(co_await text_at(store, "key", ByteRange{4, 0}), "456789") << "size 0 means to the end";
  EXPECT_EQ(co_await text_at(store, "key", ByteRange{8, 100}), "89");
  EXPECT_EQ(co_await text_at(store, "key", ByteRange{1, UINT64_MAX}), "123456789");
  EXPECT_EQ(code_of(co_await store.get("key", ByteRange{10, 1})), StoreErrc::kInvalidRange);
  EXPECT_EQ(code_of(co_await store.get("key", ByteRange{UINT64_MAX, 0})), StoreErrc::kInvalidRange);
  EXPECT_EQ(code_of(co_await store.get("no key", ByteRange{0, 1})), StoreErrc::kNotFound);
  co_await must_put(store, "empty", "");
  EXPECT_EQ(code_of(co_await store.get("empty", ByteRange{0, 0})), StoreErrc::kInvalidRange);
}

inline Task<> heads(ObjectStore& store) {
  co_await must_put(store, "a/key", "12345");
  auto found = co_await store.head("a/key");
  EXPECT_TRUE(found);
  if (found) {
    EXPECT_EQ(found->key, "a/key");
    EXPECT_EQ(found->size, 5u);
  }
  EXPECT_EQ(code_of(co_await store.head("a")), StoreErrc::kNotFound);
  EXPECT_EQ(code_of(co_await store.head("a/other")), StoreErrc::kNotFound);
}

// All keys under a prefix, read in pages.
inline Task<std::vector<std::string>> keys_under(ObjectStore& store, std::string prefix, std::string after,
                                                 size_t page_keys) {
  std::vector<std::string> keys;
  for (;;) {
    auto page = co_await store.list(prefix, after, page_keys);
    EXPECT_TRUE(page) << page.error().message;
    if (!page) co_return keys;
    EXPECT_LE(page->objects.size(), page_keys);
    for (const ObjectInfo& info : page->objects) keys.push_back(info.key);
    if (!page->is_truncated) co_return keys;
    EXPECT_FALSE(page->objects.empty()) << "a truncated page must make progress";
    if (page->objects.empty()) co_return keys;
    after = page->objects.back().key;
  }
}

inline Task<> lists_in_order(ObjectStore& store) {
  EXPECT_TRUE((co_await keys_under(store, "", "", 10)).empty());
  // Bytes that sort before and after '/': an order by folders would be another one.
  std::vector<std::string> keys = {"a-b/1", "a.b",   "a/1",  "a/2/x", "a/2/y", "a/2-z", "a0",
                                   "a/10",  "b/c/d", "b/ca", "b/c-d", "ab",    "B",     "\xc3\xa9/1"};
  for (const std::string& key : keys) co_await must_put(store, key, key);
  std::ranges::sort(keys);
  for (size_t page_keys : {1, 2, 3, 1000}) {
    EXPECT_EQ(co_await keys_under(store, "", "", page_keys), keys);
    for (std::string prefix : {"a", "a/", "a/2", "a/2/", "b/c", "b/c/", "none", "none/", "a/1", "a/1/"}) {
      std::vector<std::string> expected;
      std::ranges::copy_if(keys, std::back_inserter(expected),
                           [&](auto& key) { return key.starts_with(prefix); });
      EXPECT_EQ(co_await keys_under(store, prefix, "", page_keys), expected) << prefix;
    }
  }
  for (std::string after : {"a", "a/", "a/1", "a/2/x", "a/2/", "a/3", "a-b/", "zzz", "\xff"}) {
    std::vector<std::string> expected;
    std::ranges::copy_if(keys, std::back_inserter(expected), [&](auto& key) { return key > after; });
    EXPECT_EQ(co_await keys_under(store, "", after, 2), expected) << after;
    std::erase_if(expected, [](auto& key) { return !key.starts_with("a/"); });
    EXPECT_EQ(co_await keys_under(store, "a/", after, 2), expected) << after;
  }
  auto page = co_await store.list("a/1", "", 1000);
  EXPECT_TRUE(page && page->objects.size() == 2 && page->objects[0].size == 3);
  EXPECT_EQ(code_of(co_await store.list("", "", 0)), StoreErrc::kBadRequest);
  EXPECT_EQ(code_of(co_await store.list("", "", 1001)), StoreErrc::kBadRequest);
}

inline Task<> deletes(ObjectStore& store) {
  for (std::string key : {"a/1", "a/2", "b"}) co_await must_put(store, key, key);
  auto kept = co_await store.delete_many({"a/1", "b", "none", "x/y/z", "a/2/below"});
  EXPECT_TRUE(kept && kept->empty()) << "absent keys count as deleted";
  EXPECT_EQ(co_await keys_under(store, "", "", 10), std::vector<std::string>{"a/2"});
  EXPECT_EQ(code_of(co_await store.get("a/1", {})), StoreErrc::kNotFound);
  EXPECT_EQ(code_of(co_await store.head("b")), StoreErrc::kNotFound);
  kept = co_await store.delete_many({});
  EXPECT_TRUE(kept && kept->empty());
  EXPECT_EQ(code_of(co_await store.delete_many(std::vector<std::string>(1001, "k"))), StoreErrc::kBadRequest);
  EXPECT_EQ(co_await text_at(store, "a/2"), "a/2");
}

inline Task<> refuses_bad_keys(ObjectStore& store) {
  std::string with_zero("a\0b", 3);
  for (const std::string& key :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("."),
        std::string(".."), std::string("a/../b"), std::string("../a"), std::string("a/./b"),
        std::string(1025, 'k'), with_zero}) {
    EXPECT_EQ(code_of(co_await store.put(key, body_of("x"))), StoreErrc::kBadRequest) << key;
    EXPECT_EQ(code_of(co_await store.put_if_absent(key, body_of("x"))), StoreErrc::kBadRequest) << key;
  }
  EXPECT_TRUE((co_await keys_under(store, "", "", 10)).empty());
  for (std::string prefix : {"../", "..", "/", "a//"}) {
    EXPECT_TRUE((co_await keys_under(store, prefix, "", 10)).empty()) << prefix;
  }
}

inline Task<> odd_keys_are_data(ObjectStore& store, bool lists_control_characters) {
  std::vector<std::string> keys = {"%",
                                   "%tmp/1",
                                   "%41",
                                   "a%2Fb",
                                   "a b",
                                   "line\nbreak",
                                   "tab\t",
                                   "...",
                                   ".hidden/.x",
                                   "~",
                                   "*?",
                                   "\"q\"",
                                   "back\\slash",
                                   "-rf",
                                   "\x7f",
                                   "CON",
                                   "a:b",
                                   "%%/%25",
                                   "trailing.",
                                   "trailing ",
                                   "lock",
                                   "%tmp%",
                                   "\xe2\x82\xac/\xf0\x9f\x98\x80"};
  if (lists_control_characters) keys.emplace_back("\x01");
  keys.push_back(std::string(200, 'n') + "/" + std::string(200, 'm') + "/" + std::string(200, 'o'));
  for (const std::string& key : keys) co_await must_put(store, key, "of " + key);
  for (const std::string& key : keys) EXPECT_EQ(co_await text_at(store, key), "of " + key);
  std::ranges::sort(keys);
  EXPECT_EQ(co_await keys_under(store, "", "", 7), keys);
  auto kept = co_await store.delete_many(keys);
  EXPECT_TRUE(kept && kept->empty());
  EXPECT_TRUE((co_await keys_under(store, "", "", 7)).empty());
}

inline Task<> large_objects(ObjectStore& store) {
  std::vector<Slice> body;
  std::string whole;
  for (int i = 0; i < 600; ++i) {
    std::string part(static_cast<size_t>(i) * 31 % 20000, static_cast<char>('a' + i % 26));
    body.push_back(Slice::copy_of(as_bytes(part)));
    whole += part;
  }
  auto put = co_await store.put_if_absent("large", body);
  EXPECT_TRUE(put);
  EXPECT_TRUE(co_await text_at(store, "large") == whole);
  EXPECT_TRUE(co_await text_at(store, "large", ByteRange{1'000'000, 3000}) == whole.substr(1'000'000, 3000));
}

inline Task<> record_put(ObjectStore& store, std::vector<StoreErrc>* codes) {
  co_await runtime::sleep_until(MonotonicTime::never());
  auto put = co_await store.put("stopped", body_of("x"));
  if (!put) codes->push_back(put.error().code);
  auto got = co_await store.get("stopped", {});
  if (!got) codes->push_back(got.error().code);
}

// Whoever is asked to stop gets no answer any more.
inline Task<> stopped_calls_end(ObjectStore& store) {
  runtime::TaskContext& context = co_await runtime::this_context();
  runtime::TaskScope scope;
  std::vector<StoreErrc> codes;
  scope.spawn(*context.executor, "stopped", record_put(store, &codes));
  co_await runtime::sleep_for(1ms);
  co_await scope.close();
  EXPECT_EQ(codes, (std::vector{StoreErrc::kTimeout, StoreErrc::kTimeout}));
}

}  // namespace conformance

TEST_P(StoreConformance, WhatIsPutIsThere) { run(conformance::put_and_get); }
TEST_P(StoreConformance, PutReplaces) { run(conformance::put_replaces); }
TEST_P(StoreConformance, PutIfAbsentNeverReplaces) { run(conformance::absent_means_absent); }
TEST_P(StoreConformance, OfRivalsExactlyOneWins) { run(conformance::one_rival_wins); }
TEST_P(StoreConformance, RangesAreCutAtTheEnd) { run(conformance::ranges); }
TEST_P(StoreConformance, HeadTellsTheSize) { run(conformance::heads); }
TEST_P(StoreConformance, ListsInOrderOfKeyByPages) { run(conformance::lists_in_order); }
TEST_P(StoreConformance, DeletesManyAndDoesNotMindAbsentOnes) { run(conformance::deletes); }
TEST_P(StoreConformance, BadKeysAreRefused) { run(conformance::refuses_bad_keys); }
TEST_P(StoreConformance, OddKeysAreData) {
  std::unique_ptr<StoreUnderTest> host = GetParam().make();
  host->run(conformance::odd_keys_are_data(host->store(), host->lists_control_characters()));
}
TEST_P(StoreConformance, LargeObjectsOfManySlices) { run(conformance::large_objects); }
TEST_P(StoreConformance, AStoppedTaskGetsNoAnswer) { run(conformance::stopped_calls_end); }

}  // namespace varve::object_store
