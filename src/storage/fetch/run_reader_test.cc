// Runs read by many at once, from a store that gives back what it was not given.
#include "storage/fetch/run_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "sim/node.h"
#include "sim/run_task.h"
#include "storage/cache/scripted_store_testing.h"
#include "storage/format/test_batch.h"

namespace varve::storage {
namespace {

using object_store::StoreErrc;
using runtime::Task;
using testing::SizeIs;

constexpr uint64_t kSeeds = 30;
constexpr size_t kReaders = 20;
constexpr size_t kBatches = 5;
constexpr size_t kBlock = 64 * 1'024;

// A copy with one bit changed.
Slice damaged(const Slice& bytes, size_t at) {
  std::vector<uint8_t> copy(bytes.view().begin(), bytes.view().end());
  copy.at(at) ^= 0x10;
  return Slice::take(std::move(copy));
}

// What a reader got.
struct Outcome {
  bool has_ended = false;
  RunReadEnd end = RunReadEnd::kDone;
  size_t bytes_taken = 0;
};

class AssemblingReader final : public RunVisitor {
 public:
  explicit AssemblingReader(const PlannedPartition& plan) : assembler_(plan, 1, false) {}
  BatchAssembler::End visit(const metadata::StoredRun& run, const ObjectBytes& bytes) override {
    return assembler_.add(run, bytes);
  }
  uint64_t needed_to() const override { return assembler_.needed_to(); }
  std::string problem() const override { return assembler_.problem(); }
  size_t bytes_taken() const { return assembler_.bytes_taken(); }

 private:
  BatchAssembler assembler_;
};

struct Ground {
  explicit Ground(uint64_t seed)
      : world({.seed = seed}),
        node(world, {.host = "a", .io_count = 4}),
        cache({.bytes_max = kMiB, .block_bytes = kBlock, .load_bytes_max = 4 * kBlock}, metrics),
        objects(node.process(), store, cache, "ns", {}, metrics),
        reader(objects, Logger(), node.process(), metrics) {}

  sim::World world;
  sim::Node node;
  ScriptedStore store;
  MetricRegistry metrics;
  BlockCache cache;
  ObjectReader objects;
  RunReader reader;
  runtime::TaskScope readers;
};

// One object that is one run of kBatches batches.
class RunReaderTest : public testing::Test {
 protected:
  void make(uint64_t seed = 1, size_t value_bytes = 1'000) {
    outcomes_.clear();
    ground_ = std::make_unique<Ground>(seed);
    std::vector<uint8_t> body;
    for (size_t i = 0; i < kBatches; ++i) {
      Slice batch = make_batch({.value_bytes = value_bytes, .fill = static_cast<char>('a' + i)});
      batch_bytes_ = batch.size();
      body.insert(body.end(), batch.view().begin(), batch.view().end());
    }
    run_.object.id = {Incarnation(1), ObjectNumber(1)};
    run_.object.name.number = ObjectNumber(1);
    run_.run = {.object = run_.object.id,
                .bytes = static_cast<uint32_t>(body.size()),
                .records = static_cast<uint32_t>(kBatches)};
    store().objects[metadata::wal_key("ns", run_.object.name)] = Slice::take(std::move(body));
  }
  ScriptedStore& store() { return ground_->store; }
  double cached_bytes() { return ground_->metrics.gauge("varve_cache_bytes", "").value(); }
  uint64_t corrupt_reads() { return ground_->metrics.counter("varve_corrupt_reads_total", "").value(); }

  // One who wants the run's first batches.
  Outcome& start(size_t batches = kBatches, Duration delay = 0s, uint64_t bytes = UINT64_MAX) {
    Outcome& outcome = outcomes_.emplace_back();
    runtime::Executor& executor = ground_->node.process().io(outcomes_.size() % 4);
    ground_->readers.spawn(executor, "reader", read(this, batches, delay, bytes, &outcome));
    return outcome;
  }
  void start_many() {
    for (size_t i = 0; i < kReaders; ++i) {
      start(kBatches, Duration(ground_->world.random().between(0, Duration(5ms).count())));
    }
  }
  void settle() {
    ASSERT_EQ(ground_->world.run_until([&] { return ground_->readers.size() == 0; }), sim::RunEnd::kDone);
  }
  Outcome& read_now(size_t batches = kBatches) {
    Outcome& outcome = start(batches);
    settle();
    return outcome;
  }
  void expect_right(const Outcome& outcome, size_t batches = kBatches) {
    EXPECT_TRUE(outcome.has_ended);
    EXPECT_EQ(outcome.end, batches == kBatches ? RunReadEnd::kDone : RunReadEnd::kStopped);
    EXPECT_EQ(outcome.bytes_taken, batches * batch_bytes_);
  }

  // Many share a GET whose bytes come spoilt.
  void expect_read_once_more(const std::function<Slice(Slice)>& spoil) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      make(seed);
      store().script = {{.spoil = spoil}};
      start_many();
      settle();
      for (const Outcome& outcome : outcomes_) expect_right(outcome);
      EXPECT_EQ(corrupt_reads(), kReaders);
      EXPECT_THAT(store().gets, SizeIs(2));
      expect_right(read_now());
      EXPECT_THAT(store().gets, SizeIs(2)) << "what came the second time is kept";
    }
  }

  static Task<> read(RunReaderTest* test, size_t batches, Duration delay, uint64_t bytes, Outcome* outcome) {
    co_await runtime::sleep_for(delay);
    runtime::Executor& executor = *(co_await runtime::this_context()).executor;
    PlannedPartition plan;
    plan.end = Offset(static_cast<int64_t>(batches));
    plan.bytes_max = kMiB;
    AssemblingReader visitor(plan);
    RunReader& reader = test->ground_->reader;
    StartedRead started = reader.start(executor, test->run_, bytes, ReadClass::kTail);
    outcome->end = co_await reader.finish(test->run_, std::move(started), visitor, ReadClass::kTail);
    outcome->bytes_taken = visitor.bytes_taken();
    outcome->has_ended = true;
  }

  std::unique_ptr<Ground> ground_;
  PlannedRun run_;
  size_t batch_bytes_ = 0;
  std::deque<Outcome> outcomes_;
};

TEST_F(RunReaderTest, many_who_read_a_run_share_its_get) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make(seed);
    start_many();
    settle();
    for (const Outcome& outcome : outcomes_) expect_right(outcome);
    EXPECT_THAT(store().gets, SizeIs(1));
    EXPECT_EQ(corrupt_reads(), 0u);
  }
}

TEST_F(RunReaderTest, bytes_that_came_corrupt_are_read_once_more_for_all_who_shared_them) {
  expect_read_once_more([this](Slice bytes) { return damaged(bytes, 3 * batch_bytes_ - 5); });
}

TEST_F(RunReaderTest, bytes_that_came_short_are_read_once_more_for_all_who_shared_them) {
  expect_read_once_more([this](Slice bytes) { return bytes.sub(0, 3 * batch_bytes_ - 5); });
}

TEST_F(RunReaderTest, bytes_that_are_corrupt_twice_are_an_error_and_are_not_kept) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    make(seed);
    ScriptedGet corrupt{.spoil = [](Slice bytes) { return damaged(bytes, 200); }};
    store().script = {corrupt, corrupt};
    start_many();
    settle();
    for (const Outcome& outcome : outcomes_) {
      EXPECT_EQ(outcome.end, RunReadEnd::kCorrupt);
      EXPECT_EQ(outcome.bytes_taken, 0u);
    }
    EXPECT_THAT(store().gets, SizeIs(2));
    EXPECT_EQ(cached_bytes(), 0);
    // Who comes then has two tries of his own.
    store().script = {corrupt};
    expect_right(read_now());
    EXPECT_THAT(store().gets, SizeIs(4));
  }
}

TEST_F(RunReaderTest, corrupt_bytes_are_found_by_whoever_first_looks_at_them) {
  make();
  store().script = {{.spoil = [this](Slice bytes) { return damaged(bytes, 3 * batch_bytes_ - 5); }}};
  expect_right(read_now(2), 2);
  EXPECT_EQ(corrupt_reads(), 0u);
  expect_right(read_now());
  EXPECT_EQ(corrupt_reads(), 1u);
  EXPECT_THAT(store().gets, SizeIs(2));
}

TEST_F(RunReaderTest, an_object_that_is_short_for_good_is_corrupt_wherever_its_end_lies) {
  for (size_t left : {kBlock / 2, kBlock, kBlock + 1}) {
    make(1, kBlock / 2);
    Slice& body = store().objects.begin()->second;
    body = body.sub(0, left);
    EXPECT_EQ(read_now().end, RunReadEnd::kCorrupt) << left;
    EXPECT_EQ(cached_bytes(), 0);
  }
}

TEST_F(RunReaderTest, an_object_that_is_not_there_is_missing_and_is_asked_for_once) {
  make();
  store().objects.clear();
  start_many();
  settle();
  for (const Outcome& outcome : outcomes_) EXPECT_EQ(outcome.end, RunReadEnd::kMissing);
  EXPECT_THAT(store().gets, SizeIs(1));
}

TEST_F(RunReaderTest, who_started_with_too_little_goes_on_for_more) {
  make(1, kBlock / 2);
  Outcome& outcome = start(kBatches, 0s, 10);
  settle();
  expect_right(outcome);
  uint64_t asked = 0;
  for (const ScriptedStore::Get& get : store().gets) asked += get.size;
  EXPECT_LE(asked, 3 * kBlock) << "and asks for nothing twice";
}

}  // namespace
}  // namespace varve::storage
