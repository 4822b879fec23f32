// The real runtime, for suites that run on any.
#pragma once

#include <memory>

#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/runtime_under_test.h"

namespace varve::runtime {

class AsioUnderTest final : public RuntimeUnderTest {
 public:
  Runtime& runtime() override { return runtime_; }
  void run(Executor& executor, Task<> task) override { run_blocking(executor, std::move(task)); }

 private:
  AsioRuntime runtime_{{.io_threads = 2}};
};

inline RuntimeCase asio_case() {
  return {"asio", [] { return std::make_unique<AsioUnderTest>(); }};
}

}  // namespace varve::runtime
