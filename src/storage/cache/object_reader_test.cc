// Reads of objects through the cache, on a simulated machine over a store that does what the test says.
#include "storage/cache/object_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "object_store/retrying_store.h"
#include "sim/node.h"
#include "sim/run_task.h"
#include "storage/cache/scripted_store_testing.h"

namespace varve::storage {
namespace {

using object_store::StoreErrc;
using runtime::Task;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Duration kForEver = std::chrono::hours(1'000);
constexpr uint64_t kSeeds = 30;
constexpr size_t kReaders = 20;
constexpr size_t kBlock = 1'024;

ObjectRef object_for_test(uint64_t number) {
  ObjectRef object;
  object.id = {Incarnation(1), ObjectNumber(number)};
  object.name = {.log_id = {}, .nonce = Nonce(7), .epoch = FenceEpoch(1), .number = ObjectNumber(number)};
  return object;
}
std::string key_of(const ObjectRef& object) { return metadata::wal_key("ns", object.name); }

// The object's bytes; no two stretches of it are alike.
std::string body_of(const ObjectRef& object, size_t size) {
  Random random(object.id.number.value());
  std::string body(size, '\0');
  for (char& c : body) c = static_cast<char>(random.below(256));
  return body;
}

// What a reader got, and when.
struct Outcome {
  uint64_t from = 0;
  uint64_t to = 0;
  MonotonicTime began = MonotonicTime::never();
  MonotonicTime ended = MonotonicTime::never();
  std::optional<StoreErrc> error{};
  std::string text{};

  bool has_ended() const { return ended != MonotonicTime::never(); }
};

struct Options {
  uint64_t seed = 1;
  size_t cache_bytes = kMiB;
  size_t reads_in_flight_max = 64;
  size_t load_bytes_max = 4 * kBlock;
  bool retries = false;  // as in a broker: with deadlines
};

// A broker's reader, its cache and a store.
struct Ground {
  explicit Ground(const Options& options)
      : world({.seed = options.seed}),
        node(world, {.host = "a", .io_count = 4}),
        retrying(store, node.process(), metrics),
        cache({.bytes_max = options.cache_bytes,
               .block_bytes = kBlock,
               .load_bytes_max = options.load_bytes_max},
              metrics),
        reader(node.process(), options.retries ? static_cast<object_store::ObjectStore&>(retrying) : store,
               cache, "ns", limits_of(options), metrics) {}

  static Limits limits_of(const Options& options) {
    Limits limits;
    limits.cache_bytes_max = options.cache_bytes;
    limits.object_reads_in_flight_max = options.reads_in_flight_max;
    return limits;
  }

  sim::World world;
  sim::Node node;
  ScriptedStore store;
  MetricRegistry metrics;
  object_store::RetryingStore retrying;
  BlockCache cache;
  ObjectReader reader;
  runtime::TaskScope readers;
};

class ObjectReaderTest : public testing::Test {
 protected:
  void make(const Options& options = {}) {
    outcomes_.clear();
    ground_ = std::make_unique<Ground>(options);
    store_object(kObject, 10 * kBlock);
  }
  void store_object(const ObjectRef& object, size_t size) {
    bodies_[key_of(object)] = body_of(object, size);
    store().objects[key_of(object)] = Slice::copy_of(as_bytes(bodies_[key_of(object)]));
  }

  ScriptedStore& store() { return ground_->store; }
  sim::World& world() { return ground_->world; }
  uint64_t counter(std::string name) { return ground_->metrics.counter(name, "").value(); }
  double cached_bytes() { return ground_->metrics.gauge("varve_cache_bytes", "").value(); }

  // A reader that begins after the delay, on an executor of its own or one shared with others.
  Outcome& start(uint64_t from, uint64_t to, Duration delay = 0s, const ObjectRef& object = kObject,
                 ReadClass read_class = ReadClass::kTail) {
    return start_in(ground_->readers, from, to, delay, object, read_class);
  }
  Outcome& start_in(runtime::TaskScope& scope, uint64_t from, uint64_t to, Duration delay = 0s,
                    const ObjectRef& object = kObject, ReadClass read_class = ReadClass::kTail) {
    Outcome& outcome = outcomes_.emplace_back(Outcome{.from = from, .to = to});
    runtime::Executor& executor = ground_->node.process().io(outcomes_.size() % 4);
    scope.spawn(executor, "reader", read(ground_.get(), object, read_class, delay, &outcome));
    return outcome;
  }
  // Until all readers have ended.
  void settle() {
    ASSERT_EQ(world().run_until([&] { return ground_->readers.size() == 0; }), sim::RunEnd::kDone);
  }
  Outcome& read_now(uint64_t from, uint64_t to, const ObjectRef& object = kObject) {
    Outcome& outcome = start(from, to, 0s, object);
    settle();
    return outcome;
  }
  // Readers of the first block, all of them before the GET of the first ends.
  void start_readers_of_one_block() {
    for (size_t i = 0; i < kReaders; ++i) {
      uint64_t from = world().random().below(kBlock - 1);
      uint64_t to = from + 1 + world().random().below(kBlock - from - 1);
      start(from, to, i == 0 ? 0us : Duration(world().random().between(0, Duration(5ms).count())));
    }
  }
  std::vector<std::optional<StoreErrc>> errors() const {
    std::vector<std::optional<StoreErrc>> errors;
    for (const Outcome& outcome : outcomes_) {
      EXPECT_TRUE(outcome.has_ended());
      errors.push_back(outcome.error);
    }
    return errors;
  }
  void expect_right(const Outcome& outcome, const ObjectRef& object = kObject) {
    ASSERT_TRUE(outcome.has_ended());
    ASSERT_FALSE(outcome.error) << static_cast<int>(*outcome.error);
    EXPECT_EQ(outcome.text, bodies_.at(key_of(object)).substr(outcome.from, outcome.to - outcome.from));
  }

  static Task<> read(Ground* ground, ObjectRef object, ReadClass read_class, Duration delay,
                     Outcome* outcome) {
    co_await runtime::sleep_for(delay);
    outcome->began = ground->world.now();
    runtime::Executor& executor = *(co_await runtime::this_context()).executor;
    StartedRead started = ground->reader.start(executor, object, outcome->from, outcome->to, read_class);
    auto bytes = co_await ground->reader.finish(std::move(started));
    outcome->ended = ground->world.now();
    if (!bytes) {
      outcome->error = bytes.error().code;
      co_return;
    }
    EXPECT_TRUE(bytes->covers(outcome->from, outcome->to));
    std::vector<Slice> slices;
    bytes->slice(outcome->from, outcome->to, slices);
    for (const Slice& slice : slices) outcome->text += as_text(slice.view());
    std::vector<uint8_t> copy;
    EXPECT_EQ(as_text(bytes->contiguous(outcome->from, outcome->to, copy)), outcome->text);
  }

  inline static const ObjectRef kObject = object_for_test(1);

  std::unique_ptr<Ground> ground_;
  std::map<std::string, std::string> bodies_;
  std::deque<Outcome> outcomes_;
};

TEST_F(ObjectReaderTest, one_get_serves_all_who_wait_for_the_same_block) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make({.seed = seed});
    start_readers_of_one_block();
    settle();
    ASSERT_THAT(store().gets, ElementsAre(ScriptedStore::Get{key_of(kObject), 0, kBlock}));
    for (const Outcome& outcome : outcomes_) expect_right(outcome);
    EXPECT_EQ(counter("varve_cache_misses_total"), 1u);
    EXPECT_EQ(counter("varve_cache_joins_total"), kReaders - 1);
    expect_right(read_now(3, 30));
    EXPECT_THAT(store().gets, SizeIs(1));
    EXPECT_EQ(counter("varve_cache_hits_total"), 1u);
    EXPECT_EQ(counter("varve_object_get_bytes_total"), kBlock);
  }
}

TEST_F(ObjectReaderTest, readers_of_ranges_that_overlap_ask_for_no_byte_twice) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make({.seed = seed});
    for (size_t i = 0; i < kReaders; ++i) {
      uint64_t from = world().random().below(10 * kBlock - 1);
      uint64_t to = from + 1 + world().random().below(10 * kBlock - from - 1);
      start(from, to, Duration(world().random().between(0, Duration(30ms).count())));
    }
    settle();
    std::vector<int> asked(11 * kBlock);
    for (const ScriptedStore::Get& get : store().gets) {
      EXPECT_EQ(get.offset % kBlock, 0u);
      EXPECT_LE(get.size, 4 * kBlock);
      for (uint64_t i = get.offset; i < get.offset + get.size; ++i) asked.at(i) += 1;
    }
    EXPECT_LE(*std::ranges::max_element(asked), 1);
    for (const Outcome& outcome : outcomes_) expect_right(outcome);
  }
}

TEST_F(ObjectReaderTest, a_get_that_fails_fails_all_who_wait_and_the_next_reader_asks_again) {
  for (StoreErrc code : {StoreErrc::kUnavailable, StoreErrc::kTimeout, StoreErrc::kNotFound,
                         StoreErrc::kCorrupt, StoreErrc::kDenied}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      make({.seed = seed});
      store().script = {{.error = code}};
      start_readers_of_one_block();
      settle();
      EXPECT_THAT(errors(), Each(std::optional(code)));
      EXPECT_THAT(store().gets, SizeIs(1));
      EXPECT_EQ(cached_bytes(), 0);
      expect_right(read_now(0, kBlock));
      EXPECT_THAT(store().gets, SizeIs(2));
    }
  }
}

TEST_F(ObjectReaderTest, who_comes_around_the_moment_of_a_failure_gets_the_error_or_asks_again) {
  size_t failed = 0;
  size_t served = 0;
  for (uint64_t seed = 1; seed <= 10 * kSeeds; ++seed) {
    make({.seed = seed});
    store().script = {{.error = StoreErrc::kUnavailable, .takes = 10us}};
    for (size_t i = 0; i < kReaders; ++i) {
      start(0, kBlock, Duration(world().random().between(0, Duration(60us).count())));
    }
    settle();
    MonotonicTime failed_at = MonotonicTime::never();
    for (const Outcome& outcome : outcomes_) {
      if (outcome.error) failed_at = std::min(failed_at, outcome.ended);
    }
    size_t served_before = served;
    for (const Outcome& outcome : outcomes_) {
      (outcome.error ? failed : served) += 1;
      if (outcome.error) {
        EXPECT_LE(outcome.began, failed_at);
      } else {
        expect_right(outcome);
      }
    }
    EXPECT_THAT(store().gets, SizeIs(served > served_before ? 2 : 1));
  }
  EXPECT_GT(failed, kSeeds);
  EXPECT_GT(served, kSeeds);
}

TEST_F(ObjectReaderTest, a_get_that_stalls_ends_at_the_deadline_for_all_who_wait) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make({.seed = seed, .retries = true});
    store().then = {.takes = kForEver};
    start_readers_of_one_block();
    settle();
    EXPECT_THAT(errors(), Each(std::optional(StoreErrc::kTimeout)));
    MonotonicTime deadline = outcomes_.front().began + object_store::RetryOptions{}.read_deadline_max;
    for (const Outcome& outcome : outcomes_) EXPECT_LE(outcome.ended, deadline + 1ms);
    EXPECT_EQ(store().under_way_max, 1u) << "never two GETs of the block at once";
    EXPECT_EQ(cached_bytes(), 0);
    size_t gets = store().gets.size();
    store().then = {};
    expect_right(read_now(0, kBlock));
    EXPECT_THAT(store().gets, SizeIs(gets + 1));
  }
}

TEST_F(ObjectReaderTest, a_reader_that_gives_up_leaves_the_get_to_the_others) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make({.seed = seed});
    runtime::TaskScope hasty;
    Outcome& gave_up = start_in(hasty, 0, kBlock);
    world().run_for(1ms);
    start_readers_of_one_block();
    world().run_for(3ms);
    hasty.request_stop();
    settle();
    EXPECT_EQ(gave_up.error, StoreErrc::kTimeout);
    EXPECT_LE(gave_up.ended - gave_up.began, 5ms);
    for (const Outcome& outcome : outcomes_) {
      if (&outcome != &gave_up) expect_right(outcome);
    }
    EXPECT_THAT(store().gets, SizeIs(1));
  }
}

TEST_F(ObjectReaderTest, what_all_have_given_up_comes_for_the_next_reader) {
  make();
  runtime::TaskScope hasty;
  for (int i = 0; i < 5; ++i) start_in(hasty, 0, kBlock);
  world().run_for(3ms);
  hasty.request_stop();
  world().run_for(10ms);
  EXPECT_THAT(errors(), Each(std::optional(StoreErrc::kTimeout)));
  expect_right(read_now(0, kBlock));
  EXPECT_THAT(store().gets, SizeIs(1));
}

TEST_F(ObjectReaderTest, its_stop_ends_all_who_wait_and_later_readers_get_no_get) {
  // Some under way, some without a turn.
  make({.reads_in_flight_max = 2});
  store().then = {.takes = kForEver};
  for (uint64_t block = 0; block < 5; ++block) {
    for (int i = 0; i < 3; ++i) start(block * kBlock, block * kBlock + 10);
  }
  world().run_for(5ms);
  MonotonicTime stopped_at = world().now();
  sim::run_task(world(), ground_->node.process().io(0), ground_->reader.stop());
  settle();
  EXPECT_THAT(errors(), Each(std::optional(StoreErrc::kTimeout)));
  for (const Outcome& outcome : outcomes_) EXPECT_LE(outcome.ended, stopped_at + 1ms);
  EXPECT_THAT(store().gets, SizeIs(2));
  EXPECT_EQ(read_now(9 * kBlock, 10 * kBlock).error, StoreErrc::kTimeout);
  EXPECT_THAT(store().gets, SizeIs(2));
  EXPECT_EQ(cached_bytes(), 0);
}

TEST_F(ObjectReaderTest, reads_take_turns_and_those_who_catch_up_leave_most_of_them_to_the_others) {
  make({.reads_in_flight_max = 8});
  for (uint64_t number = 10; number < 50; ++number) {
    store_object(object_for_test(number), kBlock);
    ReadClass read_class = number < 30 ? ReadClass::kTail : ReadClass::kCatchUp;
    start(0, 10, 0s, object_for_test(number), read_class);
  }
  settle();
  EXPECT_EQ(store().under_way_max, 8u + 2u);
  for (const Outcome& outcome : outcomes_) EXPECT_FALSE(outcome.error);
  EXPECT_THAT(store().gets, SizeIs(40));
}

TEST_F(ObjectReaderTest, loads_under_way_hold_at_most_half_as_much_as_the_cache) {
  make({.cache_bytes = 16 * kBlock});
  for (uint64_t number = 10; number < 30; ++number) {
    store_object(object_for_test(number), 4 * kBlock);
    start(0, 3 * kBlock, 0s, object_for_test(number));
  }
  settle();
  EXPECT_EQ(store().bytes_under_way_max, 6 * kBlock);
  EXPECT_THAT(errors(), Each(std::optional<StoreErrc>()));
}

TEST_F(ObjectReaderTest, what_is_cached_of_a_deleted_object_is_served_and_the_rest_is_missing) {
  make();
  expect_right(read_now(0, kBlock));
  double held = cached_bytes();
  store().objects.clear();
  expect_right(read_now(10, 20));
  EXPECT_THAT(store().gets, SizeIs(1));
  outcomes_.clear();
  for (int i = 0; i < 5; ++i) start(kBlock, kBlock + 10);
  for (int i = 0; i < 5; ++i) start(kBlock - 10, kBlock + 10);
  settle();
  EXPECT_THAT(errors(), Each(std::optional(StoreErrc::kNotFound)));
  EXPECT_THAT(store().gets, SizeIs(2));
  EXPECT_EQ(read_now(kBlock, kBlock + 10).error, StoreErrc::kNotFound);
  EXPECT_THAT(store().gets, SizeIs(3)) << "an absence is not cached";
  EXPECT_EQ(cached_bytes(), held);
}

TEST_F(ObjectReaderTest, an_object_that_ends_before_the_range_is_corrupt_wherever_a_block_ends) {
  for (size_t load_bytes : {kBlock, 4 * kBlock}) {
    for (size_t size : {kBlock - 1, kBlock, kBlock + 1, 2 * kBlock}) {
      for (uint64_t to : {size + 1, size + 2 * kBlock}) {
        make({.load_bytes_max = load_bytes});
        store_object(kObject, size);
        EXPECT_EQ(read_now(0, to).error, StoreErrc::kCorrupt) << size << " to " << to;
        EXPECT_EQ(read_now(size, to).error, StoreErrc::kCorrupt) << size << " to " << to;
        EXPECT_EQ(cached_bytes(), 0) << "what was too short is not kept";
        expect_right(read_now(0, size));
      }
    }
  }
}

TEST_F(ObjectReaderTest, bytes_that_came_cut_short_are_asked_for_again) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make({.seed = seed});
    store().script = {{.spoil = [](Slice whole) { return whole.sub(0, 500); }}};
    Outcome& inside = start(0, 400);
    Outcome& beyond = start(0, 600, 1ms);
    Outcome& further = start(100, 3 * kBlock, 1ms);
    settle();
    expect_right(inside);
    EXPECT_EQ(beyond.error, StoreErrc::kCorrupt);
    EXPECT_EQ(further.error, StoreErrc::kCorrupt);
    expect_right(read_now(0, 600));
    expect_right(read_now(100, 3 * kBlock));
  }
}

TEST_F(ObjectReaderTest, without_a_budget_nothing_is_kept_and_gets_are_still_shared) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make({.seed = seed, .cache_bytes = 0});
    start_readers_of_one_block();
    ASSERT_EQ(world().run_until([&] {
      EXPECT_EQ(cached_bytes(), 0);
      return ground_->readers.size() == 0;
    }),
              sim::RunEnd::kDone);
    for (const Outcome& outcome : outcomes_) expect_right(outcome);
    EXPECT_THAT(store().gets, SizeIs(1));
    expect_right(read_now(0, 10 * kBlock));
    EXPECT_THAT(store().gets, SizeIs(4));
  }
}

TEST_F(ObjectReaderTest, more_than_the_cache_holds_is_read_right_and_the_limit_holds_all_the_time) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make({.seed = seed, .cache_bytes = 8 * kBlock});
    std::vector<ObjectRef> objects;
    for (size_t i = 0; i < 200; ++i) {
      ObjectRef object = object_for_test(10 + world().random().below(5));
      if (i < 5) store_object(object_for_test(10 + i), 10 * kBlock);
      uint64_t from = world().random().below(10 * kBlock - 1);
      uint64_t to = from + 1 + world().random().below(std::min<uint64_t>(4 * kBlock, 10 * kBlock - from) - 1);
      start(from, to, Duration(world().random().between(0, Duration(1s).count())), object);
      objects.push_back(object);
    }
    double held_max = 0;
    ASSERT_EQ(world().run_until([&] {
      held_max = std::max(held_max, cached_bytes());
      return ground_->readers.size() == 0;
    }),
              sim::RunEnd::kDone);
    EXPECT_LE(held_max, 8 * kBlock);
    EXPECT_GT(held_max, 5 * kBlock);
    for (size_t i = 0; i < objects.size(); ++i) expect_right(outcomes_[i], objects[i]);
  }
}

}  // namespace
}  // namespace varve::storage
