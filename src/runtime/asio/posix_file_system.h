// FileSystem over Linux system calls.
#pragma once

#include "runtime/file_system.h"

namespace varve::runtime {

// Stateless; any thread. Interrupted and partial calls are continued. Locks are flock(2): between opens, kept
// over network file systems, gone with the process.
class PosixFileSystem final : public FileSystem {
 public:
  FileResult<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  FileResult<void> link(const std::string& from, const std::string& to) override;
  FileResult<void> rename(const std::string& from, const std::string& to) override;
  FileResult<void> remove(const std::string& path) override;
  FileResult<void> remove_folder(const std::string& path) override;
  FileResult<void> make_folder(const std::string& path) override;
  FileResult<std::vector<FolderEntry>> list(const std::string& path) override;
  FileResult<FolderEntry> stat(const std::string& path) override;
  FileResult<void> sync_folder(const std::string& path) override;
  FileResult<FileSpace> space(const std::string& path) override;
};

}  // namespace varve::runtime
