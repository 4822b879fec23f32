// The local files varve keeps: the folder object store and the SQLite log. Every call blocks; call it in an
// offload lane only. Paths are absolute or relative to the process; '/' parts them.
//
// What survives a power cut: bytes written before a successful File::sync(), and folder entries (made, linked,
// renamed, removed) before a successful sync_folder(). The simulated file system drops, tears and reorders
// everything else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace varve::runtime {

enum class FileErrc : uint8_t {
  kNotFound,
  kExists,
  kNoSpace,     // ENOSPC, EDQUOT
  kDenied,      // EACCES, EPERM, EROFS
  kLocked,      // another process holds the lock
  kNotAFolder,  // a file stands where a folder is needed, or the reverse
  kIo,          // everything else; the message has the errno text
};
using FileError = ErrorOf<FileErrc>;
template <class T>
using FileResult = Result<T, FileError>;

enum class OpenMode : uint8_t {
  kRead,       // must exist
  kReadWrite,  // must exist
  kCreate,     // read and write; made if absent
  kCreateNew,  // read and write; kExists if there
};

// An open file. Any thread, one call at a time. Destroying it closes it (and drops its lock).
class File {
 public:
  virtual ~File() = default;

  // Bytes read; fewer than asked only at the end of the file.
  virtual FileResult<size_t> read_at(uint64_t offset, MutableByteView into) = 0;
  // All bytes of all slices, one after another from `offset`.
  virtual FileResult<void> write_at(uint64_t offset, std::span<const ByteView> slices) = 0;
  virtual FileResult<uint64_t> size() = 0;
  virtual FileResult<void> truncate(uint64_t size) = 0;
  // Bytes and size are durable when it succeeds (fdatasync). After a failure nothing may be assumed of any
  // unsynced byte of this file, not even by syncing again (invariant 10).
  virtual FileResult<void> sync() = 0;
  // An exclusive lock between processes (and between two opens); kLocked at once if held elsewhere.
  virtual FileResult<void> lock() = 0;
};

struct FolderEntry {
  std::string name;
  bool is_folder = false;
  uint64_t size = 0;  // files only
};

struct FileSpace {
  uint64_t free_bytes = 0;  // for this user
  uint64_t total_bytes = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual FileResult<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  // A second name for the same file; kExists if `to` is there (atomic: one of two racing links wins).
  virtual FileResult<void> link(const std::string& from, const std::string& to) = 0;
  // Replaces `to`.
  virtual FileResult<void> rename(const std::string& from, const std::string& to) = 0;
  // A file.
  virtual FileResult<void> remove(const std::string& path) = 0;
  // An empty folder.
  virtual FileResult<void> remove_folder(const std::string& path) = 0;
  // kExists if anything is there; the parent must exist.
  virtual FileResult<void> make_folder(const std::string& path) = 0;
  // In order of name.
  virtual FileResult<std::vector<FolderEntry>> list(const std::string& path) = 0;
  virtual FileResult<FolderEntry> stat(const std::string& path) = 0;
  // Entries of this folder are durable when it succeeds.
  virtual FileResult<void> sync_folder(const std::string& path) = 0;
  virtual FileResult<FileSpace> space(const std::string& path) = 0;
};

// Makes `path` and its missing parents, each synced into its parent.
FileResult<void> make_folders(FileSystem& files, const std::string& path);

}  // namespace varve::runtime
