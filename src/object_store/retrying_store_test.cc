#include "object_store/retrying_store.h"

#include <gmock/gmock.h>

#include <deque>

#include "object_store/memory/memory_store.h"
#include "object_store/store_conformance.h"
#include "sim/node.h"
#include "sim/object_store.h"
#include "sim/run_task.h"

namespace varve::object_store {
namespace {

using conformance::body_of;
using conformance::code_of;
using runtime::Task;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Duration kForEver = std::chrono::hours(1'000);

// What the next call comes to.
struct Step {
  std::optional<StoreErrc> error{};  // none: what the store under it says
  bool has_effect = true;            // also of a call that fails
  Duration takes = 1ms;
  std::vector<std::string> kept{};  // of a delete: keys that are left alone
};

// A store in memory whose calls go as the test says, and after that as they should.
class ScriptedStore final : public ObjectStore {
 public:
  explicit ScriptedStore(runtime::Runtime& runtime) : runtime_(runtime) {}

  Task<StoreResult<void>> put(std::string key, std::vector<Slice> body) override {
    Step step = next();
    StoreResult<void> result;
    if (step.has_effect) result = co_await memory.put(key, body);
    co_return co_await finish(step, std::move(result));
  }
  Task<StoreResult<void>> put_if_absent(std::string key, std::vector<Slice> body) override {
    Step step = next();
    StoreResult<void> result;
    if (step.has_effect) result = co_await memory.put_if_absent(key, body);
    co_return co_await finish(step, std::move(result));
  }
  Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override {
    Step step = next();
    co_return co_await finish(step, co_await memory.get(key, range));
  }
  Task<StoreResult<ObjectInfo>> head(std::string key) override {
    Step step = next();
    co_return co_await finish(step, co_await memory.head(key));
  }
  Task<StoreResult<ListPage>> list(std::string prefix, std::string after, size_t max_keys) override {
    Step step = next();
    co_return co_await finish(step, co_await memory.list(prefix, after, max_keys));
  }
  Task<StoreResult<std::vector<std::string>>> delete_many(std::vector<std::string> keys) override {
    Step step = next();
    asked_to_delete.push_back(keys);
    std::erase_if(keys, [&](const std::string& key) { return std::ranges::count(step.kept, key) > 0; });
    if (step.has_effect) co_await memory.delete_many(keys);
    co_return co_await finish(step, StoreResult<std::vector<std::string>>(step.kept));
  }

  MemoryStore memory;
  std::deque<Step> script;
  Step then{};  // after the script
  std::vector<MonotonicTime> attempts;
  std::vector<std::vector<std::string>> asked_to_delete;

 private:
  Step next() {
    attempts.push_back(runtime_.now());
    if (script.empty()) return then;
    Step step = script.front();
    script.pop_front();
    return step;
  }
  template <class T>
  static Task<StoreResult<T>> finish(Step step, StoreResult<T> result) {
    if (co_await runtime::sleep_for(step.takes) == runtime::Wake::kStopped) {
      co_return fail(StoreErrc::kTimeout, "stopped");
    }
    if (step.error) co_return fail(*step.error, "as the script says");
    co_return result;
  }

  runtime::Runtime& runtime_;
};

class RetryingStoreTest : public ::testing::Test {
 protected:
  RetryingStoreTest() : node_(world_, {.host = "a"}), inner_(node_.process()) { make({}); }

  void make(RetryOptions options) {
    store_ = std::make_unique<RetryingStore>(inner_, node_.process(), metrics_, std::move(options));
  }
  // Runs a call to its end and gives what it came to.
  template <class T>
  StoreResult<T> run(Task<StoreResult<T>> call) {
    std::optional<StoreResult<T>> result;
    began_ = world_.now();
    sim::run_task(world_, node_.process().io(0), keep(std::move(call), &result));
    took_ = world_.now() - began_;
    return std::move(*result);
  }
  StoreResult<void> put(std::string text = "mine") { return run(store_->put("key", body_of(text))); }
  StoreResult<void> put_if_absent(std::string text = "mine") {
    return run(store_->put_if_absent("key", body_of(text)));
  }
  std::string stored() {
    auto got = run(inner_.memory.get("key", std::nullopt));
    return got ? std::string(as_text(got->view())) : "<nothing>";
  }
  uint64_t retries(std::string operation, std::string reason) {
    return metrics_.counter("varve_store_retries_total", "", {{"operation", operation}, {"reason", reason}})
        .value();
  }

  sim::World world_{{.seed = 7}};
  sim::Node node_;
  ScriptedStore inner_;
  MetricRegistry metrics_;
  std::unique_ptr<RetryingStore> store_;
  MonotonicTime began_;
  Duration took_{0};

 private:
  template <class T>
  static Task<> keep(Task<StoreResult<T>> call, std::optional<StoreResult<T>>* result) {
    result->emplace(co_await std::move(call));
  }
};

TEST_F(RetryingStoreTest, WhatMayHealIsTriedAgainAndCountedByKind) {
  for (StoreErrc code : {StoreErrc::kThrottled, StoreErrc::kConflict, StoreErrc::kUnavailable,
                         StoreErrc::kTimeout, StoreErrc::kCorrupt}) {
    inner_.attempts.clear();
    inner_.script = {{code, false}, {code, false}};
    EXPECT_TRUE(put());
    EXPECT_THAT(inner_.attempts, SizeIs(3));
    inner_.attempts.clear();
    inner_.script = {{code}};
    EXPECT_TRUE(run(store_->get("key", std::nullopt)));
    EXPECT_THAT(inner_.attempts, SizeIs(2));
  }
  EXPECT_EQ(retries("put", "throttled"), 2u);
  EXPECT_EQ(retries("put", "unavailable"), 2u);
  EXPECT_EQ(retries("get", "corrupt"), 1u);
}

TEST_F(RetryingStoreTest, TellsWhyAttemptsFailUntilOneSucceeds) {
  EXPECT_EQ(store_->last_problem(), std::nullopt);
  inner_.then = {.error = StoreErrc::kUnavailable, .has_effect = false};
  EXPECT_FALSE(put());
  EXPECT_EQ(store_->last_problem(), "as the script says");
  inner_.then = {};
  EXPECT_TRUE(put());
  EXPECT_EQ(store_->last_problem(), std::nullopt);
}

TEST_F(RetryingStoreTest, AnswersAndWhatNeedsAPersonAreNotTriedAgain) {
  for (StoreErrc code : {StoreErrc::kNotFound, StoreErrc::kPreconditionFailed, StoreErrc::kInvalidRange,
                         StoreErrc::kNoSpace, StoreErrc::kDenied, StoreErrc::kBadRequest}) {
    inner_.attempts.clear();
    inner_.script = {{code, false}};
    EXPECT_EQ(code_of(put_if_absent()), code);
    inner_.script = {{code}};
    EXPECT_EQ(code_of(run(store_->get("key", std::nullopt))), code);
    inner_.script = {{code}};
    EXPECT_EQ(code_of(run(store_->head("key"))), code);
    inner_.script = {{code}};
    EXPECT_EQ(code_of(run(store_->list("", "", 10))), code);
    EXPECT_THAT(inner_.attempts, SizeIs(4));
  }
}

TEST_F(RetryingStoreTest, AnAttemptThatHangsIsGivenUpAfterTwoSecondsAndTheCallAfterThirty) {
  inner_.script = {{.takes = kForEver}};
  EXPECT_TRUE(put());
  EXPECT_GE(took_, 2s);
  EXPECT_LE(took_, 2s + 100ms);
  inner_.then = {.has_effect = false, .takes = kForEver};
  EXPECT_EQ(code_of(put()), StoreErrc::kTimeout);
  EXPECT_GE(took_, 29s);
  EXPECT_LE(took_, 30s + 1ms);
  EXPECT_EQ(code_of(run(store_->get("key", std::nullopt))), StoreErrc::kTimeout);
  EXPECT_LE(took_, 15s + 1ms);
}

TEST_F(RetryingStoreTest, AnAttemptMayTakeLongerForALargeBody) {
  inner_.script = {{.takes = 5s}};
  std::vector<Slice> body = {Slice::take(std::vector<uint8_t>(4 * kMiB))};
  EXPECT_TRUE(run(store_->put("key", body)));
  EXPECT_THAT(inner_.attempts, SizeIs(1));
  inner_.script = {{.takes = 7s}};
  EXPECT_TRUE(run(store_->put("key", body)));
  EXPECT_THAT(inner_.attempts, SizeIs(3));
}

TEST_F(RetryingStoreTest, AStoreThatIsSlowAsAWholeIsWaitedForAndOnceItIsQuickItMustBe) {
  inner_.then = {.takes = 5s};
  EXPECT_TRUE(put());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(put()) << "it has learned";
    EXPECT_LE(took_, 5s + 10ms);
  }
  EXPECT_TRUE(run(store_->head("key"))) << "each kind of call learns for itself";
  EXPECT_GT(took_, 6s);
  inner_.then = {};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(put());
  inner_.script = {{.takes = kForEver}};
  EXPECT_TRUE(put());
  EXPECT_LE(took_, 2s + 100ms);
}

TEST_F(RetryingStoreTest, PausesGrowAreRandomAndEndWithTheDeadline) {
  inner_.then = {StoreErrc::kThrottled, false};
  EXPECT_EQ(code_of(put()), StoreErrc::kThrottled) << "no attempt had an effect";
  EXPECT_LE(took_, 30s);
  EXPECT_GT(took_, 20s);
  EXPECT_GT(inner_.attempts.size(), 8u);
  EXPECT_LT(inner_.attempts.size(), 40u);
  std::set<Duration> pauses;
  for (size_t i = 1; i < inner_.attempts.size(); ++i) {
    pauses.insert(inner_.attempts[i] - inner_.attempts[i - 1]);
  }
  EXPECT_EQ(pauses.size(), inner_.attempts.size() - 1);
  EXPECT_LE(*pauses.rbegin(), 5s + 10ms);
}

TEST_F(RetryingStoreTest, APutSentAgainIsTheSamePut) {
  inner_.script = {{StoreErrc::kTimeout, true}, {StoreErrc::kUnavailable, false}};
  EXPECT_TRUE(put());
  EXPECT_EQ(stored(), "mine");
}

TEST_F(RetryingStoreTest, AnUnknownOutcomeNeverBecomesADefiniteOne) {
  inner_.script = {{StoreErrc::kUnavailable, true}};
  inner_.then = {StoreErrc::kThrottled, false};
  auto ended = put();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, StoreErrc::kTimeout);
  EXPECT_THAT(ended.error().message, HasSubstr("an earlier attempt"));
  for (StoreErrc code : {StoreErrc::kDenied, StoreErrc::kNoSpace, StoreErrc::kBadRequest}) {
    inner_.script = {{StoreErrc::kUnavailable, false}};
    inner_.then = {code, false};
    EXPECT_EQ(code_of(put()), StoreErrc::kTimeout);
    inner_.script = {{StoreErrc::kUnavailable, false}};
    EXPECT_EQ(code_of(put_if_absent()), StoreErrc::kTimeout);
    inner_.script = {{StoreErrc::kUnavailable, false}};
    EXPECT_EQ(code_of(run(store_->delete_many({"key"}))), StoreErrc::kTimeout);
  }
}

TEST_F(RetryingStoreTest, AKeyThatIsTakenByAnEarlierAttemptWithOwnBytesIsSuccess) {
  inner_.script = {{StoreErrc::kTimeout, true}};
  EXPECT_TRUE(put_if_absent());
  EXPECT_EQ(stored(), "mine");
}

TEST_F(RetryingStoreTest, AKeyThatIsTakenByAnotherIsARefusal) {
  EXPECT_TRUE(run(inner_.memory.put("key", body_of("theirs"))));
  inner_.script = {{StoreErrc::kTimeout, false}};
  EXPECT_EQ(code_of(put_if_absent()), StoreErrc::kPreconditionFailed);
  EXPECT_EQ(stored(), "theirs");
}

TEST_F(RetryingStoreTest, WithoutAnUnknownOutcomeAKeyThatIsTakenIsARefusalWhateverItsBytes) {
  EXPECT_TRUE(run(inner_.memory.put("key", body_of("mine"))));
  inner_.script = {{StoreErrc::kThrottled, false}};
  EXPECT_EQ(code_of(put_if_absent()), StoreErrc::kPreconditionFailed);
  EXPECT_THAT(inner_.attempts, SizeIs(2));
}

TEST_F(RetryingStoreTest, ATakenKeyThatCannotBeReadStaysUnknown) {
  inner_.script = {{StoreErrc::kTimeout, true}, {}};
  inner_.then = {StoreErrc::kUnavailable};
  EXPECT_EQ(code_of(put_if_absent()), StoreErrc::kTimeout);
  EXPECT_LE(took_, 30s);
}

TEST_F(RetryingStoreTest, AKeyThatMayNotBeWrittenTwiceIsNotSentAgainAfterAnUnknownOutcome) {
  make({.may_write_twice = [](std::string_view key) { return key != "key"; }});
  inner_.script = {{StoreErrc::kThrottled, false}, {StoreErrc::kUnavailable, false}};
  EXPECT_EQ(code_of(put()), StoreErrc::kUnavailable);
  EXPECT_THAT(inner_.attempts, SizeIs(2));
  inner_.script = {{.has_effect = false, .takes = kForEver}};
  EXPECT_EQ(code_of(put_if_absent()), StoreErrc::kTimeout);
  EXPECT_THAT(inner_.attempts, SizeIs(3));
  // The answer was damaged, not the request.
  inner_.script = {{StoreErrc::kCorrupt, true}};
  EXPECT_EQ(code_of(put()), StoreErrc::kCorrupt);
  EXPECT_THAT(inner_.attempts, SizeIs(4));
  inner_.script = {{StoreErrc::kUnavailable, false}};
  EXPECT_TRUE(run(store_->put("another", body_of("x"))));
}

TEST_F(RetryingStoreTest, DeletesAreAskedAgainForTheKeysThatAreLeft) {
  inner_.script = {{.kept = {"b", "c"}}, {StoreErrc::kTimeout, false}, {.kept = {"c"}}};
  auto left = run(store_->delete_many({"a", "b", "c"}));
  EXPECT_TRUE(left && left->empty());
  EXPECT_THAT(inner_.asked_to_delete, ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("b", "c"),
                                                  ElementsAre("b", "c"), ElementsAre("c")));
  EXPECT_EQ(retries("delete", "timeout"), 1u);
}

TEST_F(RetryingStoreTest, KeysThatCannotBeDeletedAreNamedInTheEnd) {
  inner_.then = {.kept = {"b"}};
  auto left = run(store_->delete_many({"a", "b"}));
  ASSERT_TRUE(left);
  EXPECT_THAT(*left, ElementsAre("b"));
  EXPECT_LE(took_, 30s);
}

TEST_F(RetryingStoreTest, AStopEndsACallAtOnce) {
  inner_.then = {.has_effect = false, .takes = kForEver};
  std::optional<MonotonicTime> ended;
  runtime::TaskScope scope;
  auto call = [](RetryingStore* store, std::optional<MonotonicTime>* when) -> Task<> {
    auto got = co_await store->put("key", body_of("x"));
    EXPECT_EQ(code_of(got), StoreErrc::kTimeout);
    when->emplace((co_await runtime::this_context()).executor->now());
  };
  scope.spawn(node_.process().io(0), "call", call(store_.get(), &ended));
  world_.run_for(500ms);
  EXPECT_THAT(inner_.attempts, SizeIs(1));
  EXPECT_FALSE(ended);
  scope.request_stop();
  MonotonicTime stopped = world_.now();
  world_.run_for(60s);
  ASSERT_TRUE(ended);
  EXPECT_LE(*ended - stopped, 1ms);
  EXPECT_THAT(inner_.attempts, SizeIs(1)) << "nothing is sent after the stop";
}

// The suite holds over it, and with faults that heal everything still does what it says.
class DecoratedUnderTest final : public StoreUnderTest {
 public:
  ObjectStore& store() override { return store_; }
  void run(Task<> task) override { sim::run_task(world_, node_.process().io(0), std::move(task)); }

 private:
  sim::World world_{{.seed = 1}};
  sim::SimObjectStore shared_{world_};
  sim::Node node_{world_, {.host = "a"}};
  std::unique_ptr<ObjectStore> client_ = shared_.client("a");
  MetricRegistry metrics_;
  RetryingStore store_{*client_, node_.process(), metrics_};
};

INSTANTIATE_TEST_SUITE_P(Retrying, StoreConformance,
                         testing::Values(StoreCase{"simulated",
                                                   [] { return std::make_unique<DecoratedUnderTest>(); }}),
                         store_case_name);

Task<> write_and_read(ObjectStore& store, int keys, int* failures) {
  for (int i = 0; i < keys; ++i) {
    std::string key = "k" + std::to_string(i);
    auto put = co_await store.put_if_absent(key, body_of(key));
    if (!put) {
      ++*failures;
      EXPECT_EQ(put.error().code, StoreErrc::kTimeout) << put.error().message;
      continue;
    }
    auto got = co_await store.get(key, std::nullopt);
    if (!got) ++*failures;
    auto left = co_await store.delete_many({key});
    if (!left || !left->empty()) ++*failures;
  }
}

TEST(RetryingStore, HidesTheFaultsOfTheSimulatedStore) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    sim::World world({.seed = seed});
    sim::SimObjectStore shared(world, {.slow_max = 4s, .timeout_max = 3s, .late_max = 20s});
    sim::Node node(world, {.host = "a"});
    std::unique_ptr<ObjectStore> client = shared.client("a");
    MetricRegistry metrics;
    RetryingStore store(*client, node.process(), metrics);
    sim::StoreFaults faults = sim::StoreFaults::all(50);
    faults.get_short = 0;
    faults.get_corrupt = 0;
    shared.set_faults(faults);
    int failures = 0;
    sim::run_task(world, node.process().io(0), write_and_read(store, 50, &failures));
    EXPECT_EQ(failures, 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace varve::object_store
