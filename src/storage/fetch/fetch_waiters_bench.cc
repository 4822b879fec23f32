// What a commit to a partition costs with many fetches waiting for it that are far behind.
#include <benchmark/benchmark.h>

#include "metadata/state/state_testing.h"
#include "storage/fetch/fetch_waiters.h"

namespace varve::storage {
namespace {

void change_of_a_partition(benchmark::State& bench) {
  metadata::StateDriver driver;
  Incarnation broker = driver.register_broker(1);
  PartitionHandle partition = driver.create_topic(broker, "t").at(0);
  for (int64_t i = 0; i < bench.range(1); ++i) driver.commit(broker, {{.partition = partition}});
  FetchRequest request{.partitions = {{partition, Offset(0), INT32_MAX}}, .bytes_min = INT32_MAX};
  PlannedFetch plan = plan_fetch(driver.state, request, {});
  FetchWaiters waiters;
  for (int64_t i = 0; i < bench.range(0); ++i) waiters.add(request, plan);
  for (auto _ : bench) {
    bench.PauseTiming();
    driver.commit(broker, {{.partition = partition}});
    bench.ResumeTiming();
    waiters.partition_changed(driver.state, partition);
  }
}
BENCHMARK(change_of_a_partition)->ArgNames({"waiters", "runs"})->ArgsProduct({{1, 1'000}, {1, 100'000}});

}  // namespace
}  // namespace varve::storage
