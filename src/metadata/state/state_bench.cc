// What the state costs: entries a second, bytes a run, nanoseconds a plan, memory a partition.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <ctime>

#include "base/random.h"
#include "metadata/state/benchmark_mix.h"
#include "metadata/state/state.h"

namespace varve::metadata {
namespace {

size_t heap_bytes() { return mallinfo2().uordblks; }

// A log of one broker that commits objects of `runs_per_object` runs over 1,000 partitions.
class Log {
 public:
  explicit Log(uint32_t partitions = 1000) : mix_(partitions) {
    for (const std::vector<uint8_t>& bytes : mix_.beginning()) apply(bytes);
  }
  std::vector<uint8_t> next(size_t runs, BenchmarkMix::Kind kind) { return mix_.next_commit(runs, kind); }
  void apply(const std::vector<uint8_t>& bytes) {
    position_ = position_.plus(1);
    benchmark::DoNotOptimize(state.apply(position_, bytes));
  }
  State state;

 private:
  BenchmarkMix mix_;
  LogPosition position_;
};

void apply_commits(benchmark::State& bench, BenchmarkMix::Kind kind) {
  Log log;
  size_t runs = static_cast<size_t>(bench.range(0));
  size_t bytes = 0;
  std::vector<std::vector<uint8_t>> entries;
  size_t at = 0;
  for (auto _ : bench) {
    if (at == entries.size()) {
      bench.PauseTiming();
      entries.clear();
      for (int i = 0; i < 256; ++i) entries.push_back(log.next(runs, kind));
      at = 0;
      bench.ResumeTiming();
    }
    bytes += entries[at].size();
    log.apply(entries[at++]);
  }
  bench.SetItemsProcessed(bench.iterations());
  bench.counters["runs/s"] = benchmark::Counter(static_cast<double>(bench.iterations() * bench.range(0)),
                                                benchmark::Counter::kIsRate);
  bench.counters["bytes/run"] =
      static_cast<double>(bytes) / static_cast<double>(bench.iterations() * bench.range(0));
}
BENCHMARK_CAPTURE(apply_commits, plain, BenchmarkMix::Kind::kPlain)->Arg(1)->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(apply_commits, idempotent, BenchmarkMix::Kind::kIdempotent)->Arg(1)->Arg(100)->Arg(1000);

void plan_fetch(benchmark::State& bench) {
  Log log(1);
  for (int64_t i = 0; i < bench.range(0); ++i) log.apply(log.next(1, BenchmarkMix::Kind::kPlain));
  PartitionHandle partition(0);
  uint64_t end = static_cast<uint64_t>(log.state.partition(partition)->high_watermark.value());
  Random random(1);
  for (auto _ : bench) {
    Offset from(static_cast<int64_t>(random.below(end)));
    benchmark::DoNotOptimize(log.state.plan_fetch(partition, from, 64 * 1024, false));
  }
}
BENCHMARK(plan_fetch)->Arg(100)->Arg(100'000);

void plan_time_lookup(benchmark::State& bench) {
  Log log(1);
  for (int64_t i = 0; i < bench.range(0); ++i) log.apply(log.next(1, BenchmarkMix::Kind::kPlain));
  Random random(1);
  for (auto _ : bench) {
    int64_t timestamp = BenchmarkMix::kBeginMs +
                        static_cast<int64_t>(random.below(static_cast<uint64_t>(bench.range(0)) * 250));
    benchmark::DoNotOptimize(log.state.plan_time_lookup(PartitionHandle(0), timestamp, Offset(0), 2));
  }
}
BENCHMARK(plan_time_lookup)->Arg(100)->Arg(100'000);

// Once, with counters: bytes of heap.
void memory(benchmark::State& bench) {
  for (auto _ : bench) {
    size_t before = heap_bytes();
    constexpr uint32_t kPartitions = 200'000;
    Log log(kPartitions);
    size_t with_partitions = heap_bytes();
    for (int i = 0; i < 200; ++i) log.apply(log.next(5000, BenchmarkMix::Kind::kPlain));
    size_t with_runs = heap_bytes();
    for (int i = 0; i < 40; ++i) log.apply(log.next(5000, BenchmarkMix::Kind::kIdempotent));
    size_t with_producers = heap_bytes();
    bench.counters["B/partition"] = static_cast<double>(with_partitions - before) / kPartitions;
    bench.counters["B/run"] = static_cast<double>(with_runs - with_partitions) / 1'000'000;
    bench.counters["B/producer_run"] = static_cast<double>(with_producers - with_runs) / 200'000;
  }
}
BENCHMARK(memory)->Iterations(1)->Unit(benchmark::kMillisecond);

void hash_after_a_commit(benchmark::State& bench) {
  Log log;
  for (int i = 0; i < 200; ++i) log.apply(log.next(1000, BenchmarkMix::Kind::kIdempotent));
  for (auto _ : bench) {
    bench.PauseTiming();
    log.apply(log.next(100, BenchmarkMix::Kind::kPlain));
    bench.ResumeTiming();
    benchmark::DoNotOptimize(log.state.hash());
  }
}
BENCHMARK(hash_after_a_commit)->Unit(benchmark::kMicrosecond);

void snapshot(benchmark::State& bench) {
  Log log(100'000);
  for (int i = 0; i < 100; ++i) log.apply(log.next(5000, BenchmarkMix::Kind::kPlain));
  size_t bytes = 0;
  size_t chunks = 0;
  for (auto _ : bench) {
    std::vector<Slice> cut = log.state.to_chunks();
    chunks = cut.size();
    bytes = 0;
    for (const Slice& chunk : cut) bytes += chunk.size();
    bench.PauseTiming();
    cut.clear();
    bench.ResumeTiming();
  }
  bench.counters["chunks"] = static_cast<double>(chunks);
  bench.counters["MiB"] = static_cast<double>(bytes) / 1048576;
}
BENCHMARK(snapshot)->Unit(benchmark::kMillisecond);

// Of the processor, so that other work on the machine does not count.
double cpu_ms() { return static_cast<double>(std::clock()) * 1000 / CLOCKS_PER_SEC; }

// The longest that anything waits while a snapshot is cut bit by bit: one step, and one commit of 1,000 runs.
void cut(benchmark::State& bench) {
  auto partitions = static_cast<uint32_t>(bench.range(0));
  Log log(partitions);
  for (uint32_t i = 0; i < partitions / 1000; ++i) log.apply(log.next(5000, BenchmarkMix::Kind::kPlain));
  double begin_ms = 0;
  double step_ms = 0;
  double apply_ms = 0;
  double quiet_apply_ms = 0;
  for (int i = 0; i < 20; ++i) {
    std::vector<uint8_t> entry = log.next(1000, BenchmarkMix::Kind::kPlain);
    double before = cpu_ms();
    log.apply(entry);
    quiet_apply_ms = std::max(quiet_apply_ms, cpu_ms() - before);
  }
  for (auto _ : bench) {
    double before = cpu_ms();
    log.state.begin_cut(CutKind::kChunks);
    begin_ms = std::max(begin_ms, cpu_ms() - before);
    bool is_complete = false;
    for (int i = 0; !is_complete; ++i) {
      std::vector<uint8_t> entry =
          i % 10 == 0 ? log.next(1000, BenchmarkMix::Kind::kPlain) : std::vector<uint8_t>();
      before = cpu_ms();
      if (!entry.empty()) log.apply(entry);
      if (!entry.empty()) apply_ms = std::max(apply_ms, cpu_ms() - before);
      before = cpu_ms();
      is_complete = log.state.step_cut(256 << 10);
      step_ms = std::max(step_ms, cpu_ms() - before);
    }
    before = cpu_ms();
    benchmark::DoNotOptimize(log.state.end_cut());
    begin_ms = std::max(begin_ms, cpu_ms() - before);
  }
  bench.counters["begin_or_end_ms"] = begin_ms;
  bench.counters["step_ms"] = step_ms;
  bench.counters["apply_ms"] = apply_ms;
  bench.counters["quiet_apply_ms"] = quiet_apply_ms;
}
BENCHMARK(cut)->Arg(100'000)->Arg(1'000'000)->Iterations(3)->Unit(benchmark::kMillisecond);

// What the whole cut costs at once, as a broker would wait for it.
void cut_at_once(benchmark::State& bench) {
  auto partitions = static_cast<uint32_t>(bench.range(0));
  Log log(partitions);
  for (uint32_t i = 0; i < partitions / 1000; ++i) log.apply(log.next(5000, BenchmarkMix::Kind::kPlain));
  for (auto _ : bench) benchmark::DoNotOptimize(log.state.to_chunks());
}
BENCHMARK(cut_at_once)->Arg(100'000)->Arg(1'000'000)->Iterations(3)->Unit(benchmark::kMillisecond);

void restore(benchmark::State& bench) {
  Log log(100'000);
  for (int i = 0; i < 100; ++i) log.apply(log.next(5000, BenchmarkMix::Kind::kPlain));
  std::vector<Slice> chunks = log.state.to_chunks();
  for (auto _ : bench) benchmark::DoNotOptimize(State::from_chunks(chunks));
}
BENCHMARK(restore)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace varve::metadata
