#include <stdlib.h>

#include <filesystem>

#include "runtime/asio/asio_runtime_testing.h"
#include "runtime/asio/posix_file_system.h"
#include "runtime/file_conformance.h"
#include "runtime/network_conformance.h"
#include "runtime/runtime_conformance.h"
#include "runtime/temporary_folder_testing.h"

namespace varve::runtime {
namespace {

class PosixFilesUnderTest final : public FileSystemUnderTest {
 public:
  FileSystem& files() override { return files_; }
  std::string root() const override { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  PosixFileSystem files_;
};

INSTANTIATE_TEST_SUITE_P(Asio, RuntimeConformance, testing::Values(asio_case()), case_name);
INSTANTIATE_TEST_SUITE_P(Asio, NetworkConformance, testing::Values(asio_case()), case_name);
INSTANTIATE_TEST_SUITE_P(Posix, FileConformance,
                         testing::Values(FileCase{"posix",
                                                  [] { return std::make_unique<PosixFilesUnderTest>(); }}),
                         file_case_name);

}  // namespace
}  // namespace varve::runtime
