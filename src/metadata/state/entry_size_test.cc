// How dense an entry is, on the mix that benchmark_mix.h describes.
#include <gtest/gtest.h>

#include <algorithm>

#include "metadata/state/benchmark_mix.h"

namespace varve::metadata {
namespace {

// What each run adds to the entry that holds those before it.
size_t median_run_bytes(uint32_t partitions, size_t runs, BenchmarkMix::Kind kind) {
  BenchmarkMix mix(partitions);
  std::vector<size_t> sizes;
  for (int commits = 0; commits < 20; ++commits) {
    Entry entry = mix.entry({mix.commit(runs, kind)});
    auto& commit = std::get<CommitObject>(entry.commands[0]);
    std::vector<Run> all = std::move(commit.runs);
    commit.runs.assign(all.begin(), all.begin() + 1);
    size_t before = encode_entry(entry).size();
    for (size_t i = 1; i < all.size(); ++i) {
      commit.runs.push_back(all[i]);
      size_t size = encode_entry(entry).size();
      sizes.push_back(size - before);
      before = size;
    }
  }
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2), sizes.end());
  return sizes[sizes.size() / 2];
}

TEST(EntrySize, APlainRunTakesAtMost12BytesInTheMedian) {
  EXPECT_LE(median_run_bytes(1'000, 100, BenchmarkMix::Kind::kPlain), 12u);
  EXPECT_LE(median_run_bytes(1'000, 1'000, BenchmarkMix::Kind::kPlain), 12u);
  EXPECT_LE(median_run_bytes(1'000'000, 200, BenchmarkMix::Kind::kPlain), 12u);
}

TEST(EntrySize, AnIdempotentBatchTakesAtMost30BytesInTheMedian) {
  EXPECT_LE(median_run_bytes(1'000, 100, BenchmarkMix::Kind::kIdempotent), 30u);
  EXPECT_LE(median_run_bytes(1'000'000, 200, BenchmarkMix::Kind::kIdempotent), 30u);
}

TEST(EntrySize, ABatchInARunOfManyTakesAtMost30Bytes) {
  metadata::Run run{
      .partition = PartitionHandle(70'000), .position = 1'000'000, .max_timestamp = BenchmarkMix::kBeginMs};
  size_t before = 0;
  Random random(1);
  for (int i = 0; i < 100; ++i) {
    ProducerBatch batch{.bytes = static_cast<uint32_t>(random.between(100, 1'000'000)),
                        .records = static_cast<uint32_t>(random.between(1, 1000))};
    batch.producer_id = ProducerId(random.between(0, 1'000'000));
    batch.epoch = ProducerEpoch(static_cast<int16_t>(random.below(100)));
    batch.first_sequence = Sequence(static_cast<int32_t>(random.below(INT32_MAX)));
    run.producers.push_back(batch);
    CommitObject commit;
    commit.runs.push_back(run);
    Entry entry{.commands = {commit}};
    size_t size = encode_entry(entry).size();
    if (i > 1) EXPECT_LE(size - before, 30u);
    before = size;
  }
}

}  // namespace
}  // namespace varve::metadata
