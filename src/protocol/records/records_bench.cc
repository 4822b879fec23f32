// What checking and reading a batch costs, by codec, for batches of 1 MiB of records of 100 bytes and of 10 KiB.
#include <benchmark/benchmark.h>

#include "base/random.h"
#include "protocol/records/builder.h"
#include "protocol/records/validate.h"

namespace varve::protocol::records {
namespace {

std::vector<uint8_t> make_batch(Codec codec, size_t value_bytes) {
  constexpr size_t kRecordsBytes = 1'000'000;
  Random random(1);
  BatchBuilder builder({.codec = codec});
  std::vector<uint8_t> value(value_bytes);
  for (size_t bytes = 0; bytes < kRecordsBytes; bytes += value_bytes) {
    // About as compressible as JSON: letters of a small alphabet.
    for (uint8_t& byte : value) byte = static_cast<uint8_t>('a' + random.below(6));
    builder.add({WallTime(1000), std::nullopt, ByteView(value)});
  }
  return builder.build();
}

void count_bytes(benchmark::State& state, const std::vector<uint8_t>& batch) {
  BatchView view = *BatchView::first_of(batch);
  state.SetItemsProcessed(state.iterations() * view.header().record_count);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(batch.size()));
}

void validate(benchmark::State& state) {
  std::vector<uint8_t> batch =
      make_batch(static_cast<Codec>(state.range(0)), static_cast<size_t>(state.range(1)));
  Limits limits;
  ProduceRules rules;
  rules.now = WallTime(1000);
  rules.batch_bytes_max = batch.size();
  DecodeScratch scratch;
  for (auto _ : state) {
    auto produced = validate_produced(batch, rules, limits, scratch);
    if (!produced) state.SkipWithError(produced.error().message.c_str());
  }
  count_bytes(state, batch);
}

void checksum_only(benchmark::State& state) {
  std::vector<uint8_t> batch = make_batch(Codec::kNone, static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(BatchView::first_of(batch)->checksum_matches());
  count_bytes(state, batch);
}

void iterate(benchmark::State& state) {
  std::vector<uint8_t> batch =
      make_batch(static_cast<Codec>(state.range(0)), static_cast<size_t>(state.range(1)));
  DecodeScratch scratch;
  for (auto _ : state) {
    RecordIterator iterator(*BatchView::first_of(batch), scratch, kGiB);
    size_t bytes = 0;
    while (auto record = *iterator.next()) bytes += record->value->size();
    benchmark::DoNotOptimize(bytes);
  }
  count_bytes(state, batch);
}

void stamp(benchmark::State& state) {
  std::vector<uint8_t> batch = make_batch(Codec::kNone, 100);
  for (auto _ : state) stamp_log_append_time(batch, WallTime(state.iterations()));
}

BENCHMARK(checksum_only)->Arg(100);
BENCHMARK(validate)->ArgsProduct({{0, 1, 2, 3, 4}, {100, 10'240}});
BENCHMARK(iterate)->ArgsProduct({{0, 4}, {100, 10'240}});
BENCHMARK(stamp);

}  // namespace
}  // namespace varve::protocol::records
