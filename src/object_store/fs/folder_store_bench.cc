#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "object_store/fs/folder_store.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/task_scope.h"

namespace varve::object_store {
namespace {

using runtime::Task;

// Puts and notes how long each took.
Task<> put_some(runtime::Runtime* runtime, FolderStore* store, std::string name, Slice body, int count,
                std::vector<double>* micros) {
  for (int i = 0; i < count; ++i) {
    MonotonicTime start = runtime->now();
    std::string key = fmt::format("ns/_wal/{:02x}/{}-{}", (i * 37) % 256, name, i);
    auto put = co_await store->put_if_absent(key, {body});
    CHECK(put, "{}", put.error().message);
    micros->push_back(std::chrono::duration<double, std::micro>(runtime->now() - start).count());
  }
}

Task<> wait_for(runtime::TaskScope* scope) {
  while (scope->size() > 0) co_await runtime::sleep_for(1ms);
}

// Arguments: bytes of an object, puts in flight. The folder is below TMPDIR, or /tmp.
void put_objects(benchmark::State& state) {
  std::string pattern = (std::filesystem::temp_directory_path() / "varve-bench-XXXXXX").string();
  std::string root = mkdtemp(pattern.data());
  runtime::AsioRuntime runtime({.io_threads = 1});
  FolderStore store(runtime, {.root = root, .fan_out = "ns/_wal/"});
  CHECK(runtime::run_blocking(runtime.io(0), store.open()));
  Slice body = Slice::take(std::vector<uint8_t>(static_cast<size_t>(state.range(0)), 'x'));
  std::vector<double> micros;
  int round = 0;
  for (auto unused : state) {
    runtime::TaskScope scope;
    for (int i = 0; i < state.range(1); ++i) {
      scope.spawn(runtime.io(0), "put",
                  put_some(&runtime, &store, fmt::format("{}-{}", round, i), body, 20, &micros));
    }
    runtime::run_blocking(runtime.io(0), wait_for(&scope));
    ++round;
  }
  std::ranges::sort(micros);
  state.SetItemsProcessed(static_cast<int64_t>(micros.size()));
  state.SetBytesProcessed(static_cast<int64_t>(micros.size()) * state.range(0));
  state.counters["p50_us"] = micros[micros.size() / 2];
  state.counters["p99_us"] = micros[micros.size() * 99 / 100];
  std::filesystem::remove_all(root);
}
BENCHMARK(put_objects)
    ->Args({4096, 1})
    ->Args({4096, 8})
    ->Args({4 << 20, 1})
    ->Args({4 << 20, 4})
    ->UseRealTime();

}  // namespace
}  // namespace varve::object_store
