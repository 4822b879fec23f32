#include "sim/object_store.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/task_scope.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using object_store::ByteRange;
using object_store::ListPage;
using object_store::ObjectStore;
using object_store::StoreErrc;
using object_store::StoreResult;
using runtime::Task;
using runtime::TaskScope;

Slice text(std::string_view value) { return Slice::copy_of(as_bytes(value)); }
std::vector<Slice> body(std::string_view value) { return {text(value)}; }

// One node and a store; calls run to their end.
class SimStoreTest : public testing::Test {
 protected:
  template <class T>
  StoreResult<T> run(Task<StoreResult<T>> call) {
    std::optional<StoreResult<T>> result;
    run_task(world_, node_.process().io(0), keep(std::move(call), &result));
    return std::move(*result);
  }
  template <class T>
  static Task<> keep(Task<StoreResult<T>> call, std::optional<StoreResult<T>>* result) {
    result->emplace(co_await std::move(call));
  }
  // How often `call` ended with `code` in `tries`.
  template <class Call>
  int count(int tries, StoreErrc code, Call call) {
    int hits = 0;
    for (int i = 0; i < tries; ++i) {
      auto result = run(call());
      hits += !result && result.error().code == code;
    }
    return hits;
  }

  World world_{{.seed = 5}};
  Node node_{world_, {.host = "a"}};
  SimObjectStore store_{world_};
  std::unique_ptr<ObjectStore> client_ = store_.client("a");
};

TEST_F(SimStoreTest, WithoutFaultsItIsAnHonestStore) {
  EXPECT_TRUE(run(client_->put("k/1", {text("he"), text("llo")})));
  auto whole = run(client_->get("k/1", std::nullopt));
  ASSERT_TRUE(whole);
  EXPECT_EQ(as_text(whole->view()), "hello");
  EXPECT_EQ(as_text(run(client_->get("k/1", ByteRange{1, 3}))->view()), "ell");
  EXPECT_EQ(as_text(run(client_->get("k/1", ByteRange{3, 0}))->view()), "lo");
  EXPECT_EQ(as_text(run(client_->get("k/1", ByteRange{3, 100}))->view()), "lo");
  EXPECT_EQ(run(client_->get("k/1", ByteRange{5, 1})).error().code, StoreErrc::kInvalidRange);
  EXPECT_EQ(run(client_->get("k/2", std::nullopt)).error().code, StoreErrc::kNotFound);
  EXPECT_EQ(run(client_->head("k/1"))->size, 5u);
  EXPECT_EQ(run(client_->head("k/2")).error().code, StoreErrc::kNotFound);
  EXPECT_EQ(run(client_->put_if_absent("k/1", body("x"))).error().code, StoreErrc::kPreconditionFailed);
  EXPECT_TRUE(run(client_->put_if_absent("k/2", body("x"))));
  EXPECT_EQ(run(client_->put("/bad", body("x"))).error().code, StoreErrc::kBadRequest);
  EXPECT_EQ(run(client_->list("", "", 1001)).error().code, StoreErrc::kBadRequest);
  EXPECT_TRUE(run(client_->delete_many({"k/1", "absent"}))->empty());
  EXPECT_EQ(run(client_->head("k/1")).error().code, StoreErrc::kNotFound);
}

TEST_F(SimStoreTest, ListsByPrefixInPages) {
  for (std::string key : {"a/1", "a/2", "a/3", "a0", "b/1"}) EXPECT_TRUE(run(client_->put(key, body("x"))));
  auto page = run(client_->list("a/", "", 2));
  ASSERT_TRUE(page && page->objects.size() == 2);
  EXPECT_EQ(page->objects[1].key, "a/2");
  EXPECT_TRUE(page->is_truncated);
  page = run(client_->list("a/", "a/2", 2));
  ASSERT_TRUE(page && page->objects.size() == 1);
  EXPECT_FALSE(page->is_truncated);
  EXPECT_EQ(run(client_->list("a/", "zzz", 10))->objects.size(), 0u);
  EXPECT_EQ(run(client_->list("", "", 10))->objects.size(), 5u);

  store_.set_faults({.list_small_page = 1000});
  std::vector<std::string> seen;
  std::string after;
  for (bool more = true; more;) {
    auto small = run(client_->list("", after, 3));
    ASSERT_TRUE(small && !small->objects.empty());
    for (auto& object : small->objects) seen.push_back(object.key);
    after = seen.back();
    more = small->is_truncated;
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"a/1", "a/2", "a/3", "a0", "b/1"}));
}

TEST_F(SimStoreTest, LostRequestsDoNothingLostRepliesAndLateOnesDo) {
  store_.set_faults({.put = {.request_lost = 1000}});
  EXPECT_TRUE(is_outcome_unknown(run(client_->put("lost", body("x"))).error().code));
  world_.run_for(20min);
  EXPECT_FALSE(store_.objects().contains("lost"));

  store_.set_faults({.put = {.reply_lost = 1000}});
  EXPECT_TRUE(is_outcome_unknown(run(client_->put("done", body("x"))).error().code));
  world_.run_for(1s);
  EXPECT_TRUE(store_.objects().contains("done"));

  store_.set_faults({.put = {.lands_late = 1000}});
  int there_at_once = 0;
  for (int i = 0; i < 20; ++i) {
    std::string key = fmt::format("late/{}", i);
    EXPECT_TRUE(is_outcome_unknown(run(client_->put(key, body("x"))).error().code));
    there_at_once += store_.objects().contains(key);
  }
  EXPECT_LT(there_at_once, 10);
  world_.run_for(10min);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(store_.objects().contains(fmt::format("late/{}", i)));

  // A delete that lands late takes the object that was written meanwhile.
  store_.set_faults({.remove = {.lands_late = 1000}});
  EXPECT_FALSE(run(client_->delete_many({"done"})));
  store_.set_faults({});
  EXPECT_TRUE(run(client_->put("done", body("new"))));
  world_.run_for(10min);
  EXPECT_FALSE(store_.objects().contains("done"));
}

TEST_F(SimStoreTest, ThrottledRequestsDoNothingAndSlowOnesTakeSeconds) {
  store_.set_faults({.put = {.throttled = 1000}});
  EXPECT_EQ(run(client_->put("k", body("x"))).error().code, StoreErrc::kThrottled);
  EXPECT_TRUE(store_.objects().empty());
  store_.set_faults({.put = {.slow = 1000}});
  MonotonicTime before = world_.now();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(run(client_->put("k", body("x"))));
  EXPECT_GT(world_.now() - before, 20s);
}

TEST_F(SimStoreTest, BodiesAreCutShortAndCorrupted) {
  std::string content(1000, 'x');
  EXPECT_TRUE(run(client_->put("k", body(content))));
  store_.set_faults({.get_cut_short = 1000});
  EXPECT_EQ(count(5, StoreErrc::kCorrupt, [&] { return client_->get("k", std::nullopt); }), 5);
  store_.set_faults({.get_short = 1000});
  EXPECT_LT(run(client_->get("k", std::nullopt))->size(), 1000u);
  store_.set_faults({.get_corrupt = 1000});
  auto spoiled = run(client_->get("k", std::nullopt));
  ASSERT_TRUE(spoiled && spoiled->size() == 1000u);
  EXPECT_NE(as_text(spoiled->view()), content);
  store_.set_faults({});
  EXPECT_EQ(as_text(run(client_->get("k", std::nullopt))->view()), content) << "at rest it is whole";
  EXPECT_TRUE(store_.damage("k"));
  EXPECT_NE(as_text(run(client_->get("k", std::nullopt))->view()), content);
}

Task<> put_once(ObjectStore& store, std::vector<StoreErrc>* errors, int* wins, int number) {
  auto result = co_await store.put_if_absent("contended", body(fmt::format("writer {}", number)));
  if (result) {
    ++*wins;
  } else {
    errors->push_back(result.error().code);
  }
}

TEST_F(SimStoreTest, OfRivalsAtMostOneWinsAndSomeMeetAConflict) {
  store_.set_faults({.conflict = 500});
  int conflicts = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<StoreErrc> errors;
    int wins = 0;
    {
      TaskScope scope;
      for (int i = 0; i < 4; ++i)
        scope.spawn(node_.process().io(0), "rival", put_once(*client_, &errors, &wins, i));
      EXPECT_EQ(world_.run_until([&] { return scope.size() == 0; }), RunEnd::kDone);
    }
    EXPECT_LE(wins, 1);
    conflicts += static_cast<int>(std::ranges::count(errors, StoreErrc::kConflict));
    EXPECT_EQ(wins == 1, store_.objects().contains("contended"));
    store_.foreign_delete("contended");
  }
  EXPECT_GT(conflicts, 0);
}

TEST_F(SimStoreTest, ACrashDropsTheReplyNotTheEffect) {
  auto scope = std::make_unique<TaskScope>();
  std::vector<StoreErrc> errors;
  int wins = 0;
  scope->spawn(node_.process().io(0), "put", put_once(*client_, &errors, &wins, 0));
  world_.run_for(5us);
  node_.crash(CrashKind::kKilled);
  scope.reset();
  world_.run_for(1min);
  EXPECT_TRUE(store_.objects().contains("contended"));
  EXPECT_EQ(wins, 0);
}

TEST_F(SimStoreTest, WhoIsCutOffGetsNoAnswerAndAFullStoreSaysSo) {
  store_.set_reachable("a", false);
  EXPECT_TRUE(is_outcome_unknown(run(client_->head("k")).error().code));
  store_.set_reachable("a", true);
  store_.set_down(true);
  EXPECT_TRUE(is_outcome_unknown(run(client_->head("k")).error().code));
  store_.set_down(false);
  store_.set_capacity(10);
  EXPECT_TRUE(run(client_->put("k", body("123456"))));
  EXPECT_EQ(run(client_->put("l", body("123456"))).error().code, StoreErrc::kNoSpace);
  EXPECT_TRUE(run(client_->delete_many({"k"}))->empty());
  EXPECT_TRUE(run(client_->put("l", body("123456"))));
}

TEST_F(SimStoreTest, TheObserverSeesOverwritesAndKeysThatComeBack) {
  std::vector<StoreEvent> events;
  store_.set_observer([&](const StoreEvent& event) { events.push_back(event); });
  EXPECT_TRUE(run(client_->put("k", body("x"))));
  EXPECT_TRUE(run(client_->put("k", body("x"))));
  EXPECT_TRUE(run(client_->put("k", body("y"))));
  EXPECT_TRUE(run(client_->delete_many({"k"})));
  store_.foreign_put("k", text("z"));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_FALSE(events[0].had_object);
  EXPECT_TRUE(events[1].had_object && events[1].is_same_bytes);
  EXPECT_TRUE(events[2].had_object && !events[2].is_same_bytes);
  EXPECT_EQ(events[3].kind, StoreEvent::Kind::kDelete);
  EXPECT_TRUE(events[4].was_deleted && events[4].host.empty());
}

TEST_F(SimStoreTest, EveryFaultOfThePlanHappensAndIsCounted) {
  store_.set_faults(StoreFaults::all(50));
  for (int i = 0; i < 300; ++i) {
    (void)run(client_->put(fmt::format("k/{}", i % 7), body("hello")));
    (void)run(client_->get("k/1", std::nullopt));
    (void)run(client_->head("k/1"));
    (void)run(client_->list("k/", "", 100));
    if (i % 3 == 0) (void)run(client_->delete_many({"k/2", "k/3"}));
  }
  for (std::string fault :
       {"store.put.throttled", "store.put.request_lost", "store.put.reply_lost", "store.put.lands_late",
        "store.put.slow", "store.get.cut_short", "store.get.short", "store.get.corrupt",
        "store.get.request_lost", "store.head.throttled", "store.list.small_page", "store.list.slow",
        "store.delete.partial", "store.delete.lands_late"}) {
    EXPECT_TRUE(world_.happenings().contains(fault)) << fault;
  }
}

}  // namespace
}  // namespace varve::sim
