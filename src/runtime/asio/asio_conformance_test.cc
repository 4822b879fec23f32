#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/runtime_conformance.h"

namespace varve::runtime {
namespace {

class AsioUnderTest final : public RuntimeUnderTest {
 public:
  Runtime& runtime() override { return runtime_; }
  void run(Executor& executor, Task<> task) override { run_blocking(executor, std::move(task)); }

 private:
  AsioRuntime runtime_{{.io_threads = 2}};
};

INSTANTIATE_TEST_SUITE_P(Asio, RuntimeConformance,
                         testing::Values(RuntimeCase{"asio",
                                                     [] { return std::make_unique<AsioUnderTest>(); }}),
                         case_name);

}  // namespace
}  // namespace varve::runtime
