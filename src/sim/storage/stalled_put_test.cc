// One PUT stalls: who waits for it, and who does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "metadata/state/object_key.h"
#include "sim/storage/stalling_store.h"
#include "sim/storage/storage_world.h"

namespace varve::sim {
namespace {

using runtime::Task;
using storage::AppendVerdict;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Duration kForEver = std::chrono::hours(1'000);

// A batch from its submission to its answer.
struct Sent {
  int64_t producer;
  MonotonicTime submitted;
  MonotonicTime answered = MonotonicTime::never();
  AppendVerdict verdict = AppendVerdict::kUnknownFate;

  Duration took() const { return answered - submitted; }
};

struct Load {
  size_t producers = 200;
  Duration gap = 5s;  // between two batches of a producer
  Duration span = 300s;
};

class StalledPutTest : public testing::Test {
 protected:
  void make(StorageBrokerOptions options = {}) {
    options.wrap_store = [this](object_store::ObjectStore& store) {
      return std::make_unique<StallingStore>(store, stalls_);
    };
    sim_.reset();
    // Without slow tails, so that what is slow is so because of the stall.
    StorageWorldTimes times;
    times.store.one_way.slow_per_mille = 0;
    times.log.one_way.slow_per_mille = 0;
    sim_ = std::make_unique<StorageWorld>(1, 1, std::move(options), times);
    sim_->start();
    partitions_ = sim_->create_topic("topic", 4);
    CHECK(sim_->run(broker(), broker().client().propose(metadata::AllocateProducerIds{1'000})));
  }
  StorageBroker& broker() { return sim_->broker(); }

  // Producers that send without waiting for answers, one partition each, all partitions shared.
  std::vector<Sent> run(const Load& load) {
    std::vector<Sent> sent;
    sent.reserve(load.producers * static_cast<size_t>(load.span / load.gap + 1));
    runtime::TaskScope scope;
    for (size_t i = 0; i < load.producers; ++i) {
      scope.spawn(broker().io(), "producer", produce(this, load, static_cast<int64_t>(i), &sent, &scope));
    }
    CHECK(sim_->world().run_until([&] { return scope.size() == 0; }) == RunEnd::kDone);
    return sent;
  }

  static Task<> produce(StalledPutTest* test, Load load, int64_t producer, std::vector<Sent>* sent,
                        runtime::TaskScope* scope) {
    World& world = test->sim_->world();
    MonotonicTime end = world.now() + load.span;
    co_await runtime::sleep_for(Duration(world.random().between(0, load.gap.count())));
    for (int32_t sequence = 0; world.now() < end; ++sequence) {
      Produced batch{.partition = test->partitions_[static_cast<size_t>(producer) % 4]};
      batch.batch.producer_id = ProducerId(producer);
      batch.batch.producer_epoch = ProducerEpoch(0);
      batch.batch.first_sequence = Sequence(sequence);
      sent->push_back({producer, world.now()});
      auto answer = test->broker().ingest().submit(append_request({batch}));
      scope->spawn(test->broker().io(), "answer", note_answer(&world, answer, &sent->back()));
      co_await runtime::sleep_for(load.gap);
    }
  }
  // Small and large batches on one connection, faster than they can be stored.
  static Task<> flood(StalledPutTest* test, uint64_t connection, std::vector<Sent>* sent,
                      runtime::TaskScope* scope) {
    for (int i = 0; i < 100; ++i) {
      Produced batch{.partition = test->partitions_[connection % 4], .connection = connection};
      batch.batch.value_bytes = connection % 2 == 0 ? 4'000 : 10'000;  // copied, and referenced
      sent->push_back({static_cast<int64_t>(connection), test->sim_->world().now()});
      auto answer = test->broker().ingest().submit(append_request({batch}));
      scope->spawn(test->broker().io(), "answer", note_answer(&test->sim_->world(), answer, &sent->back()));
      co_await runtime::sleep_for(20ms);
    }
  }
  static Task<> note_answer(World* world, runtime::Completion<storage::AppendResults> answer, Sent* sent) {
    storage::AppendResults results = co_await answer.wait();
    sent->answered = world->now();
    sent->verdict = results.at(0).verdict;
  }

  // Whether the batch lay in an object whose PUT stalled, or came later in a chain of it.
  bool has_part_in(const Stalls::Stalled& stalled, const Sent& sent) const {
    if (sent.answered < stalled.from || sent.submitted > stalled.to) return false;
    for (const storage::WalDirectoryRun& run : stalled.directory.runs) {
      for (const metadata::ProducerBatch& batch : run.run.producers) {
        if (batch.producer_id == ProducerId(sent.producer)) return true;
      }
    }
    return false;
  }
  // Whether a PUT was stalling while it waited.
  static bool overlaps(const Stalls::Stalled& stalled, const Sent& sent) {
    return sent.submitted < stalled.to && sent.answered > stalled.from;
  }

  static Duration percentile(std::vector<Duration> times, size_t percent) {
    EXPECT_GT(times.size(), 300u) << "too few to tell";
    size_t at = times.size() * percent / 100;
    std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(at), times.end());
    return times[at];
  }
  static std::vector<Duration> times_of(const std::vector<Sent>& sent) {
    std::vector<Duration> times;
    for (const Sent& one : sent) times.push_back(one.took());
    return times;
  }

  // The same load without stalls and with one PUT at a time stalled for 5 s.
  void expect_others_go_on(const Load& load, Limits limits) {
    StorageBrokerOptions options{.limits = limits};
    make(options);
    std::vector<Sent> calm = run(load);
    Duration calm_p99 = percentile(times_of(calm), 99);

    stalls_.puts = 0;
    MonotonicTime next;
    stalls_.choose = [this, &next](uint64_t) -> std::optional<Duration> {
      MonotonicTime now = sim_->world().now();
      if (now < next) return std::nullopt;
      next = now + 8s;
      return 5s;
    };
    make(options);
    std::vector<Sent> disturbed = run(load);
    ASSERT_GT(stalls_.stalled.size(), 20u);
    std::vector<Duration> others;
    size_t waiting = 0;
    for (const Sent& sent : disturbed) {
      EXPECT_EQ(sent.verdict, AppendVerdict::kAccepted);
      EXPECT_LE(sent.took(), limits.object_deadline_max);
      bool is_in_any = false;
      bool is_beside_one = false;
      for (const Stalls::Stalled& stalled : stalls_.stalled) {
        is_in_any |= has_part_in(stalled, sent);
        is_beside_one |= overlaps(stalled, sent);
      }
      if (is_in_any) ++waiting;
      if (!is_in_any && is_beside_one) others.push_back(sent.took());
    }
    EXPECT_GE(waiting, stalls_.stalled.size());
    Duration others_p99 = percentile(others, 99);
    EXPECT_LE(others_p99, calm_p99 + calm_p99 / 10)
        << "others: " << others.size() << ", waiting: " << waiting;
    RecordProperty("p99_us_calm", static_cast<int>(calm_p99 / 1us));
    RecordProperty("p99_us_beside_a_stall", static_cast<int>(others_p99 / 1us));
  }

  Stalls stalls_;
  std::unique_ptr<StorageWorld> sim_;
  std::vector<PartitionHandle> partitions_;
};

TEST_F(StalledPutTest, one_put_stalled_for_5_s_holds_up_its_own_batches_and_their_chains_only) {
  expect_others_go_on({}, {});
}

TEST_F(StalledPutTest, so_does_one_that_is_waited_for_to_its_end) {
  Limits limits;
  limits.object_attempt_max = limits.object_deadline_max;
  expect_others_go_on({}, limits);
}

// Where most objects hold one batch, sealed early because the broker is idle: a stall must not make it look busy.
TEST_F(StalledPutTest, a_stalled_put_does_not_slow_the_early_seals_of_a_quiet_broker) {
  Limits limits;
  limits.object_attempt_max = limits.object_deadline_max;
  expect_others_go_on({.producers = 10, .gap = 7s, .span = 3'000s}, limits);
}

TEST_F(StalledPutTest, batches_of_a_put_that_never_answers_are_stored_under_another_key) {
  stalls_.choose = [](uint64_t number) {
    return number == 1 ? std::optional<Duration>(kForEver) : std::nullopt;
  };
  make();
  auto results = sim_->produce({{.partition = partitions_[0]}, {.partition = partitions_[1]}});
  for (const auto& result : results) EXPECT_EQ(result.verdict, AppendVerdict::kAccepted);
  ASSERT_THAT(stalls_.stalled, SizeIs(1));
  EXPECT_TRUE(stalls_.stalled[0].was_given_up);
  EXPECT_LE(stalls_.stalled[0].to - stalls_.stalled[0].from, 2s + 10ms);
  ASSERT_THAT(stalls_.keys, SizeIs(2));
  EXPECT_NE(stalls_.keys[0], stalls_.keys[1]);
  EXPECT_EQ(broker().counter("varve_wal_uploads_renewed_total"), 1u);
  EXPECT_THAT(batches_of(sim_->fetch(partitions_[0], 0)), SizeIs(1));
}

TEST_F(StalledPutTest, batches_of_a_store_that_never_answers_fail_at_the_deadline_and_it_heals) {
  stalls_.choose = [](uint64_t) { return std::optional<Duration>(kForEver); };
  make();
  MonotonicTime begin = sim_->world().now();
  auto results = sim_->produce({{.partition = partitions_[0]}});
  EXPECT_EQ(results.at(0).verdict, AppendVerdict::kStoreFailed);
  EXPECT_TRUE(storage::is_retriable(results[0].verdict));
  EXPECT_GE(sim_->world().now() - begin, 28s);
  EXPECT_LE(sim_->world().now() - begin, 31s);
  EXPECT_EQ(broker().metrics().gauge("varve_ingest_memory_bytes", "").value(), 0);
  std::set<std::string> keys(stalls_.keys.begin(), stalls_.keys.end());
  EXPECT_EQ(keys.size(), stalls_.keys.size()) << "no key is written twice";
  EXPECT_GE(keys.size(), 4u);
  stalls_.choose = [](uint64_t) { return std::nullopt; };
  EXPECT_EQ(sim_->produce({{.partition = partitions_[0]}}).at(0).verdict, AppendVerdict::kAccepted);
  EXPECT_EQ(sim_->fetch(partitions_[0], 0).high_watermark, Offset(1));
}

// The fence passes the first try, its PUT lands long after that, and the sweep takes it away: none of it touches what
// was stored under the second name.
TEST_F(StalledPutTest, a_put_that_lands_after_it_was_given_up_is_an_orphan_and_goes) {
  stalls_.choose = [](uint64_t number) {
    return number == 1 ? std::optional<Duration>(kForEver) : std::nullopt;
  };
  stalls_.lands_after = 60s;
  StorageBrokerOptions options;
  options.collector = {.look_interval = 1s, .fence_interval = 5s, .sweep_interval = 20s};
  make(options);
  EXPECT_EQ(sim_->produce({{.partition = partitions_[0]}}).at(0).verdict, AppendVerdict::kAccepted);
  EXPECT_THAT(sim_->wal_keys(), SizeIs(1));
  sim_->pass(30s);
  // Something happens, or no fence would be raised.
  EXPECT_EQ(sim_->produce({{.partition = partitions_[1]}}).at(0).verdict, AppendVerdict::kAccepted);
  sim_->pass(31s);
  EXPECT_TRUE(sim_->store().objects().contains(stalls_.stalled.at(0).key)) << "it has landed";
  sim_->pass(60s);
  EXPECT_FALSE(sim_->store().objects().contains(stalls_.stalled.at(0).key));
  EXPECT_THAT(sim_->wal_keys(), SizeIs(2));
  EXPECT_THAT(batches_of(sim_->fetch(partitions_[0], 0)), SizeIs(1));
}

// Invariant 7: a try that begins after the fence was raised carries the new epoch, so its commit is not refused.
TEST_F(StalledPutTest, each_try_carries_the_fence_epoch_of_its_own_start) {
  stalls_.choose = [](uint64_t number) {
    return number <= 2 ? std::optional<Duration>(kForEver) : std::nullopt;
  };
  make();
  runtime::TaskScope scope;
  auto raise = [](StorageBroker* broker) -> Task<> {
    co_await runtime::sleep_for(1s);
    EXPECT_TRUE(co_await broker->client().propose(metadata::AdvanceGcFence{FenceEpoch(50)}));
  };
  scope.spawn(broker().io(), "fence", raise(&broker()));
  EXPECT_EQ(sim_->produce({{.partition = partitions_[0]}}).at(0).verdict, AppendVerdict::kAccepted);
  ASSERT_THAT(stalls_.keys, SizeIs(3));
  std::vector<uint64_t> epochs;
  for (const std::string& key : stalls_.keys) {
    epochs.push_back(metadata::parse_wal_key("ns", key)->epoch.value());
  }
  EXPECT_LT(epochs[0], 50u);
  EXPECT_EQ(epochs[1], 50u);
  EXPECT_EQ(epochs[2], 50u);
  EXPECT_EQ(broker().counter("varve_wal_objects_fenced_total"), 0u);
}

// More is produced than a slow store can take: requests wait, and what ingest holds stays within its budget.
TEST_F(StalledPutTest, at_full_load_over_a_slow_store_requests_wait_and_memory_is_bounded) {
  stalls_.choose = [](uint64_t) { return std::optional<Duration>(500ms); };
  StorageBrokerOptions options;
  options.limits.ingest_memory_bytes_max = kMiB;
  options.limits.ingest_buffer_bytes_max = 128 * kKiB;
  make(options);
  Gauge& memory = broker().metrics().gauge("varve_ingest_memory_bytes", "");
  Gauge& waiting = broker().metrics().gauge("varve_ingest_requests_waiting", "");
  std::vector<Sent> sent;
  sent.reserve(10'000);
  runtime::TaskScope scope;
  for (uint64_t i = 0; i < 50; ++i) {
    scope.spawn(broker().io(), "flood", flood(this, i, &sent, &scope));
  }
  double memory_max = 0;
  double waiting_max = 0;
  RunEnd end = sim_->world().run_until([&] {
    memory_max = std::max(memory_max, memory.value());
    waiting_max = std::max(waiting_max, waiting.value());
    return scope.size() == 0;
  });
  ASSERT_EQ(end, RunEnd::kDone);
  EXPECT_LE(memory_max, kMiB);
  EXPECT_GT(memory_max, kMiB / 2);
  EXPECT_LE(stalls_.bytes_under_way_max, kMiB);
  EXPECT_GT(waiting_max, 1'000);
  for (const Sent& one : sent) EXPECT_EQ(one.verdict, AppendVerdict::kAccepted);
  EXPECT_EQ(memory.value(), 0);
}

}  // namespace
}  // namespace varve::sim
