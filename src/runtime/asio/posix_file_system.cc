#include "runtime/asio/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace varve::runtime {

namespace {

// Readable by the owner's group for backups, by nobody else: records are private.
constexpr mode_t kFileMode = 0640;
constexpr mode_t kFolderMode = 0750;

FileErrc code_of(int error) {
  switch (error) {
    case ENOENT:
      return FileErrc::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return FileErrc::kExists;
    case ENOSPC:
    case EDQUOT:
      return FileErrc::kNoSpace;
    case EACCES:
    case EPERM:
    case EROFS:
      return FileErrc::kDenied;
    case EWOULDBLOCK:
      return FileErrc::kLocked;
    case ENOTDIR:
    case EISDIR:
      return FileErrc::kNotAFolder;
    default:
      return FileErrc::kIo;
  }
}

// From errno; call it right after the system call.
std::unexpected<FileError> errno_error(std::string_view what, const std::string& path) {
  int error = errno;
  return fail(code_of(error), fmt::format("{} {}: {}", what, path, std::generic_category().message(error)));
}

// Repeats a system call that a signal interrupted.
template <class Call>
auto retry_interrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    // Not repeated on EINTR: on Linux the descriptor is gone in every case.
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

class PosixFile final : public File {
 public:
  PosixFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  FileResult<size_t> read_at(uint64_t offset, MutableByteView into) override {
    size_t total = 0;
    while (total < into.size()) {
      ssize_t got = retry_interrupted([&] {
        return ::pread(descriptor_.number(), into.data() + total, into.size() - total,
                       static_cast<off_t>(offset + total));
      });
      if (got < 0) return errno_error("read", path_);
      if (got == 0) break;
      total += static_cast<size_t>(got);
    }
    return total;
  }

  FileResult<void> write_at(uint64_t offset, std::span<const ByteView> slices) override {
    size_t first = 0;       // slice to go on with
    size_t first_done = 0;  // bytes of it that are written
    while (first < slices.size()) {
      std::array<iovec, 64> vectors;
      int count = 0;
      for (size_t i = first; i < slices.size() && count < static_cast<int>(vectors.size()); ++i) {
        ByteView rest = i == first ? slices[i].subspan(first_done) : slices[i];
        vectors[static_cast<size_t>(count++)] = {const_cast<uint8_t*>(rest.data()), rest.size()};
      }
      ssize_t written = retry_interrupted(
          [&] { return ::pwritev(descriptor_.number(), vectors.data(), count, static_cast<off_t>(offset)); });
      if (written < 0) return errno_error("write", path_);
      offset += static_cast<uint64_t>(written);
      first_done += static_cast<size_t>(written);
      while (first < slices.size() && first_done >= slices[first].size())
        first_done -= slices[first++].size();
    }
    return {};
  }

  FileResult<uint64_t> size() override {
    struct stat status;
    if (::fstat(descriptor_.number(), &status) != 0) return errno_error("size of", path_);
    return static_cast<uint64_t>(status.st_size);
  }

  FileResult<void> truncate(uint64_t size) override {
    int result =
        retry_interrupted([&] { return ::ftruncate(descriptor_.number(), static_cast<off_t>(size)); });
    if (result != 0) return errno_error("truncate", path_);
    return {};
  }

  FileResult<void> sync() override {
    if (retry_interrupted([&] { return ::fdatasync(descriptor_.number()); }) != 0) {
      return errno_error("sync", path_);
    }
    return {};
  }

  FileResult<void> lock() override {
    if (retry_interrupted([&] { return ::flock(descriptor_.number(), LOCK_EX | LOCK_NB); }) != 0) {
      return errno_error("lock", path_);
    }
    return {};
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

FileResult<void> done_or_errno(int result, std::string_view what, const std::string& path) {
  if (result != 0) return errno_error(what, path);
  return {};
}

}  // namespace

FileResult<std::unique_ptr<File>> PosixFileSystem::open(const std::string& path, OpenMode mode) {
  int flags = O_CLOEXEC;
  switch (mode) {
    case OpenMode::kRead:
      flags |= O_RDONLY;
      break;
    case OpenMode::kReadWrite:
      flags |= O_RDWR;
      break;
    case OpenMode::kCreate:
      flags |= O_RDWR | O_CREAT;
      break;
    case OpenMode::kCreateNew:
      flags |= O_RDWR | O_CREAT | O_EXCL;
      break;
  }
  Descriptor descriptor(retry_interrupted([&] { return ::open(path.c_str(), flags, kFileMode); }));
  if (descriptor.number() < 0) return errno_error("open", path);
  if (mode == OpenMode::kRead) {
    struct stat status;
    if (::fstat(descriptor.number(), &status) != 0) return errno_error("open", path);
    if (S_ISDIR(status.st_mode)) return fail(FileErrc::kNotAFolder, "open " + path + ": it is a folder");
  }
  return std::make_unique<PosixFile>(std::move(descriptor), path);
}

FileResult<void> PosixFileSystem::link(const std::string& from, const std::string& to) {
  return done_or_errno(::link(from.c_str(), to.c_str()), "link", to);
}

FileResult<void> PosixFileSystem::rename(const std::string& from, const std::string& to) {
  return done_or_errno(::rename(from.c_str(), to.c_str()), "rename to", to);
}

FileResult<void> PosixFileSystem::remove(const std::string& path) {
  return done_or_errno(::unlink(path.c_str()), "remove", path);
}

FileResult<void> PosixFileSystem::remove_folder(const std::string& path) {
  return done_or_errno(::rmdir(path.c_str()), "remove folder", path);
}

FileResult<void> PosixFileSystem::make_folder(const std::string& path) {
  return done_or_errno(::mkdir(path.c_str(), kFolderMode), "make folder", path);
}

FileResult<std::vector<FolderEntry>> PosixFileSystem::list(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (!folder) return errno_error("list", path);
  std::vector<FolderEntry> entries;
  for (;;) {
    errno = 0;
    dirent* found = ::readdir(folder.get());
    if (found == nullptr) {
      if (errno != 0) return errno_error("list", path);
      break;
    }
    std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    struct stat status;
    if (::fstatat(::dirfd(folder.get()), found->d_name, &status, 0) != 0) {
      if (errno == ENOENT) continue;  // removed in between, or a link to nowhere
      return errno_error("list", path);
    }
    bool is_folder = S_ISDIR(status.st_mode);
    entries.push_back({std::string(name), is_folder, is_folder ? 0 : static_cast<uint64_t>(status.st_size)});
  }
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

FileResult<FolderEntry> PosixFileSystem::stat(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return errno_error("look at", path);
  bool is_folder = S_ISDIR(status.st_mode);
  return FolderEntry{path.substr(path.find_last_of('/') + 1), is_folder,
                     is_folder ? 0 : static_cast<uint64_t>(status.st_size)};
}

FileResult<void> PosixFileSystem::sync_folder(const std::string& path) {
  Descriptor folder(
      retry_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (folder.number() < 0) return errno_error("sync folder", path);
  return done_or_errno(retry_interrupted([&] { return ::fsync(folder.number()); }), "sync folder", path);
}

FileResult<FileSpace> PosixFileSystem::space(const std::string& path) {
  struct statvfs status;
  if (retry_interrupted([&] { return ::statvfs(path.c_str(), &status); }) != 0) {
    return errno_error("free space of", path);
  }
  return FileSpace{static_cast<uint64_t>(status.f_bavail) * status.f_frsize,
                   static_cast<uint64_t>(status.f_blocks) * status.f_frsize};
}

}  // namespace varve::runtime
