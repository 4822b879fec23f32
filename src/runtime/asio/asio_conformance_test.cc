#include <stdlib.h>

#include <filesystem>

#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/posix_file_system.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/file_conformance.h"
#include "runtime/network_conformance.h"
#include "runtime/runtime_conformance.h"
#include "runtime/temporary_folder_testing.h"

namespace varve::runtime {
namespace {

class AsioUnderTest final : public RuntimeUnderTest {
 public:
  Runtime& runtime() override { return runtime_; }
  void run(Executor& executor, Task<> task) override { run_blocking(executor, std::move(task)); }

 private:
  AsioRuntime runtime_{{.io_threads = 2}};
};

class PosixFilesUnderTest final : public FileSystemUnderTest {
 public:
  FileSystem& files() override { return files_; }
  std::string root() const override { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  PosixFileSystem files_;
};

std::unique_ptr<RuntimeUnderTest> make_asio() { return std::make_unique<AsioUnderTest>(); }

INSTANTIATE_TEST_SUITE_P(Asio, RuntimeConformance, testing::Values(RuntimeCase{"asio", make_asio}),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Asio, NetworkConformance, testing::Values(RuntimeCase{"asio", make_asio}),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Posix, FileConformance,
                         testing::Values(FileCase{"posix",
                                                  [] { return std::make_unique<PosixFilesUnderTest>(); }}),
                         file_case_name);

}  // namespace
}  // namespace varve::runtime
