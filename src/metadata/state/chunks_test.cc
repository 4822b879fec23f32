// The state as chunks: what a snapshot holds, and the hash that brokers compare.
#include <gtest/gtest.h>

#include <set>

#include "base/crc32c.h"
#include "base/hash.h"
#include "metadata/state/random_history.h"

namespace varve::metadata {
namespace {

std::vector<std::vector<uint8_t>> bytes_of(const std::vector<Slice>& chunks) {
  std::vector<std::vector<uint8_t>> result;
  for (const Slice& chunk : chunks) result.emplace_back(chunk.view().begin(), chunk.view().end());
  return result;
}

std::vector<Slice> slices_of(const std::vector<std::vector<uint8_t>>& chunks) {
  std::vector<Slice> result;
  for (const auto& chunk : chunks) result.push_back(Slice::copy_of(chunk));
  return result;
}

uint64_t hash_from_scratch(const State& state) {
  uint64_t sum = 0;
  for (const Slice& chunk : state.to_chunks()) sum += hash64(chunk.view());
  return sum;
}

TEST(Chunks, OfAnEmptyStateRestoreAnEmptyState) {
  State empty;
  EXPECT_EQ(empty.to_chunks().size(), 2u);
  auto restored = State::from_chunks(empty.to_chunks());
  ASSERT_TRUE(restored.has_value());
  EXPECT_EQ(restored->hash(), empty.hash());
}

TEST(Chunks, ReplayFromASnapshotEqualsReplayFromZeroAtRandomCuts) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RandomHistory history(seed);
    Random random(seed);
    std::optional<State> follower;
    for (int i = 0; i < 400; ++i) {
      RandomHistory::Step step = history.next();
      if (follower) {
        ApplyOutcome outcome = follower->apply(step.position, step.bytes);
        ASSERT_EQ(outcome.verdict, step.outcome.verdict);
      }
      if (!random.chance(1, 20)) continue;
      if (follower) ASSERT_EQ(follower->hash(), history.state.hash()) << "seed " << seed << " step " << i;
      std::vector<Slice> chunks = history.state.to_chunks();
      auto restored = State::from_chunks(chunks);
      ASSERT_TRUE(restored.has_value()) << restored.error().message << " seed " << seed << " step " << i;
      ASSERT_EQ(bytes_of(restored->to_chunks()), bytes_of(chunks));
      follower = std::move(*restored);
    }
  }
}

TEST(Chunks, TheHashKeptUpToDateEqualsTheHashFromScratch) {
  for (uint64_t seed = 100; seed < 120; ++seed) {
    RandomHistory history(seed);
    for (int i = 0; i < 300; ++i) {
      history.next();
      ASSERT_EQ(history.state.hash(), hash_from_scratch(history.state)) << "seed " << seed << " step " << i;
    }
  }
}

TEST(Chunks, AskingForTheHashOrNotMakesNoDifference) {
  RandomHistory asked(7);
  RandomHistory not_asked(7);
  for (int i = 0; i < 500; ++i) {
    asked.next();
    asked.state.hash();
    not_asked.next();
  }
  EXPECT_EQ(asked.state.hash(), not_asked.state.hash());
  EXPECT_EQ(bytes_of(asked.state.to_chunks()), bytes_of(not_asked.state.to_chunks()));
}

TEST(Chunks, EveryEntryThatAppliesChangesTheHash) {
  RandomHistory history(8);
  std::set<uint64_t> seen;
  for (int i = 0; i < 500; ++i) {
    history.next();
    EXPECT_TRUE(seen.insert(history.state.hash()).second);
  }
}

// A cut that takes its time gives what the state was, whatever happens meanwhile.
TEST(Cuts, GiveTheStateAsItWasWhenTheyBeganWhileApplyGoesOn) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomHistory history(seed);
    RandomHistory twin(seed);
    Random random(seed);
    std::vector<std::vector<uint8_t>> expected;
    uint64_t expected_hash = 0;
    int completed = 0;
    for (int i = 0; i < 500; ++i) {
      history.next();
      twin.next();
      if (!history.state.has_cut() && random.chance(1, 10)) {
        expected = bytes_of(twin.state.to_chunks());
        expected_hash = twin.state.hash();
        history.state.begin_cut(random.chance(1, 2) ? CutKind::kChunks : CutKind::kHash);
      }
      if (!history.state.has_cut()) continue;
      if (random.chance(1, 40)) history.state.drop_cut();
      if (random.chance(1, 40)) ASSERT_EQ(history.state.hash(), twin.state.hash());
      if (!history.state.has_cut() || !random.chance(1, 6) || !history.state.step_cut(1)) continue;
      StateCut cut = history.state.end_cut();
      ++completed;
      ASSERT_EQ(cut.hash, expected_hash) << "seed " << seed << " step " << i;
      if (!cut.chunks.empty()) ASSERT_EQ(bytes_of(cut.chunks), expected) << "seed " << seed << " step " << i;
    }
    if (history.state.has_cut()) history.state.drop_cut();
    ASSERT_EQ(history.state.hash(), twin.state.hash()) << "seed " << seed;
    EXPECT_GT(completed, 2);
  }
}

class LongPartition : public ::testing::Test, public StateDriver {
 protected:
  Incarnation broker = register_broker(1);
  PartitionHandle partition = create_topic(broker, "long", 2).at(0);
  PartitionHandle other = partition.plus(1);

  void commit_runs(int count) {
    for (int i = 0; i < count; ++i) {
      commit(broker,
             {{.partition = partition, .records = 2}, {.partition = other}, {.partition = partition}});
    }
  }
};

TEST_F(LongPartition, KeepsItsPagesForACutThroughNewOnesTrimAndDeletion) {
  commit_runs(1000);
  std::vector<std::vector<uint8_t>> expected = bytes_of(state.to_chunks());
  auto cut_after = [&](auto change) {
    State copy = State::from_chunks(slices_of(expected)).value();
    std::swap(copy, state);
    state.begin_cut(CutKind::kChunks);
    change();
    state.step_cut(SIZE_MAX);
    EXPECT_EQ(bytes_of(state.end_cut().chunks), expected);
    EXPECT_EQ(state.hash(), hash_from_scratch(state));
  };
  std::vector<RunSpec> specs;
  for (int i = 0; i < 600; ++i) {
    specs.push_back({.partition = partition});
    specs.push_back({.partition = other});
  }
  Entry grow = entry_of(broker, {object_of(broker, specs)});
  cut_after([&] { apply_bytes(encode_entry(grow)); });
  for (auto offset : {Offset(1), Offset(700), Offset(3000)}) {
    cut_after([&] { apply_bytes(encode_entry(entry_of(broker, {SetLogStart{partition, offset}}))); });
  }
  cut_after([&] { apply_bytes(encode_entry(entry_of(broker, {DeleteTopic{topic_id(1)}}))); });
}

TEST_F(LongPartition, IsCutIntoPagesThatRoundTrip) {
  commit_runs(1000);
  propose(broker, SetLogStart{partition, Offset(1000)});
  std::vector<Slice> chunks = state.to_chunks();
  auto restored = State::from_chunks(chunks);
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->hash(), state.hash());
  EXPECT_EQ(bytes_of(restored->to_chunks()), bytes_of(chunks));
  auto plan = restored->plan_fetch(partition, Offset(1000), UINT64_MAX, false);
  EXPECT_EQ(plan->runs.front().end_offset(), Offset(1001));
  EXPECT_EQ(plan->runs.back().end_offset(), Offset(3000));
}

TEST_F(LongPartition, HistoryKeepsItsBytesWhileThePartitionGrows) {
  commit_runs(50'000);
  std::set<std::vector<uint8_t>> before;
  for (auto& chunk : bytes_of(state.to_chunks())) before.insert(std::move(chunk));
  commit_runs(100);
  size_t kept = 0;
  for (const auto& chunk : bytes_of(state.to_chunks())) kept += before.count(chunk);
  ASSERT_EQ(before.size(), 7u);
  // The general chunk, the brokers', the newest objects', the partitions' and the newest history's are new.
  EXPECT_EQ(kept, 2u);
}

TEST_F(LongPartition, ARaisedLogStartIsSeenByTheHash) {
  commit_runs(1000);
  state.hash();
  for (int64_t log_start : {1, 500, 1500, 3000}) {
    propose(broker, SetLogStart{partition, Offset(log_start)});
    EXPECT_EQ(state.hash(), hash_from_scratch(state)) << log_start;
  }
}

TEST_F(LongPartition, ANameThatMovesToAnotherBlockIsSeenByTheHash) {
  create_topic(broker, "moves");
  propose(broker, DeleteTopic{state.find_topic("moves")->id});
  create_topic(broker, "fills", 2000);
  state.hash();
  create_topic(broker, "moves");
  EXPECT_EQ(state.hash(), hash_from_scratch(state));
  EXPECT_EQ(State::from_chunks(state.to_chunks())->find_topic("moves")->life, 2u);
}

// Two topics grow in turns through three blocks; the blocks are cut, restored and deleted as others are.
TEST_F(LongPartition, TopicsThatGrowInTurnsLieInManyBlocks) {
  Uuid first = state.partition(partition)->topic;
  Uuid second = state.partition(create_topic(broker, "second", 5).at(0))->topic;
  for (uint32_t total : {700u, 1400u}) {
    propose(broker, AddPartitions{first, total});
    propose(broker, AddPartitions{second, total});
  }
  state.hash();
  std::vector<std::vector<uint8_t>> expected = bytes_of(state.to_chunks());
  state.begin_cut(CutKind::kChunks);
  propose(broker, AddPartitions{first, 1600});
  propose(broker, AlterTopicConfigs{second, 0, {{"retention.ms", "1"}}});
  for (PartitionHandle handle : state.find_topic(first)->partitions) commit(broker, {{.partition = handle}});
  propose(broker, DeleteTopic{second});
  state.step_cut(SIZE_MAX);
  EXPECT_EQ(bytes_of(state.end_cut().chunks), expected);
  EXPECT_EQ(state.hash(), hash_from_scratch(state));
  auto restored = State::from_chunks(state.to_chunks());
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->hash(), state.hash());
  const std::vector<PartitionHandle>& partitions = restored->find_topic(first)->partitions;
  ASSERT_EQ(partitions, state.find_topic(first)->partitions);
  ASSERT_EQ(partitions.size(), 1600u);
  EXPECT_EQ(restored->partition(partitions[1599])->index, PartitionIndex(1599));
  EXPECT_EQ(restored->partition(partitions[1599])->high_watermark, Offset(1));
}

TEST_F(LongPartition, ExpiredProducersAreSeenByTheHash) {
  commit_batches(broker, partition, {batch(1, 0, 0)});
  propose(broker, SetLimits{.producer_expiry_ms = 0});
  state.hash();
  time = time.plus(10);
  propose(broker, Beat{});
  EXPECT_EQ(propose(broker, ExpireProducers{state.log_time()}).verdict, CommandVerdict::kDone);
  EXPECT_EQ(state.next_sequence(partition, ProducerId(1), ProducerEpoch(0)), std::nullopt);
  EXPECT_EQ(state.hash(), hash_from_scratch(state));
}

TEST_F(LongPartition, ADeletedTopicLeavesNoHistory) {
  commit_runs(2000);
  size_t chunks = state.to_chunks().size();
  propose(broker, DeleteTopic{state.find_topic("long")->id});
  EXPECT_EQ(state.hash(), hash_from_scratch(state));
  EXPECT_LT(state.to_chunks().size(), chunks);
  auto restored = State::from_chunks(state.to_chunks());
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->hash(), state.hash());
  // The name remembers its life.
  Incarnation next = register_broker(1);
  create_topic(next, "long");
  EXPECT_EQ(state.find_topic("long")->life, 2u);
}

class DamagedChunks : public ::testing::Test {
 protected:
  DamagedChunks() {
    for (int i = 0; i < 300; ++i) history.next();
    chunks = bytes_of(history.state.to_chunks());
  }
  static void reseal(std::vector<uint8_t>& chunk) {
    size_t covered = chunk.size() - 4;
    store_be(chunk.data() + covered, crc32c(ByteView(chunk).first(covered)));
  }
  EntryErrc error() const { return State::from_chunks(slices_of(chunks)).error().code; }

  RandomHistory history{5};
  std::vector<std::vector<uint8_t>> chunks;
};

TEST_F(DamagedChunks, OneMissingOneTwiceOrOutOfOrderIsNoticed) {
  ASSERT_GE(chunks.size(), 4u);
  auto good = chunks;
  for (size_t i = 0; i < good.size(); ++i) {
    chunks = good;
    chunks.erase(chunks.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_EQ(error(), EntryErrc::kMalformed) << i;
    chunks = good;
    chunks.insert(chunks.begin() + static_cast<ptrdiff_t>(i), good[i]);
    EXPECT_EQ(error(), EntryErrc::kMalformed) << i;
  }
  chunks = good;
  std::swap(chunks[2], chunks[3]);
  EXPECT_EQ(error(), EntryErrc::kMalformed);
  chunks.clear();
  EXPECT_EQ(error(), EntryErrc::kMalformed);
}

TEST_F(DamagedChunks, AFlippedBitIsNoticed) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    auto& chunk = chunks[random.below(chunks.size())];
    size_t at = random.below(chunk.size());
    chunk[at] ^= 4;
    EXPECT_FALSE(State::from_chunks(slices_of(chunks)).has_value());
    chunk[at] ^= 4;
  }
  EXPECT_TRUE(State::from_chunks(slices_of(chunks)).has_value());
}

TEST_F(DamagedChunks, AFutureVersionIsNamedAsSuch) {
  chunks[1][0] = 2;
  EXPECT_EQ(error(), EntryErrc::kUnknownVersion);
}

TEST_F(DamagedChunks, UnderRightChecksumsNeverCrashAndWhatDecodesCanBeAppliedTo) {
  Random random(2);
  auto good = chunks;
  int decoded = 0;
  for (int i = 0; i < 4000; ++i) {
    chunks = good;
    auto& chunk = chunks[random.below(chunks.size())];
    for (uint64_t n = random.below(3) + 1; n > 0; --n) {
      chunk[random.below(chunk.size() - 4)] = static_cast<uint8_t>(random.next());
    }
    reseal(chunk);
    auto restored = State::from_chunks(slices_of(chunks));
    if (!restored) continue;
    ++decoded;
    for (int step = 0; step < 3; ++step) {
      restored->apply(restored->position().plus(1), encode_entry(random_entry(random)));
    }
    restored->hash();
  }
  EXPECT_GT(decoded, 100);
}

}  // namespace
}  // namespace varve::metadata
