#include "metadata/log/sqlite/sqlite_vfs.h"

#include <cstring>
#include <new>

namespace varve::metadata {

using runtime::FileErrc;
using runtime::OpenMode;

namespace {

constexpr int kPathBytesMax = 4096;
// What a device writes at once, and so may tear as a whole. SQLite assumes it of Linux disks by itself.
constexpr int kSectorBytes = 4096;
// Writing some bytes of a sector does not harm its others when the power fails (also SQLite's own default).
constexpr int kDeviceCharacteristics = SQLITE_IOCAP_POWERSAFE_OVERWRITE;

std::string folder_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

// What stands in the memory that SQLite gives for a file.
struct SqliteVfs::OpenFile {
  sqlite3_file base;
  SqliteVfs* vfs;
  runtime::File* file;
  std::string* folder_to_sync;  // until its first sync: the entry of a file that was made must be durable too
};

struct SqliteVfs::Calls {
  static SqliteVfs& self(sqlite3_vfs* vfs) { return *static_cast<SqliteVfs*>(vfs->pAppData); }
  static OpenFile& open_file(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* into, int flags, int* flags_out) {
    SqliteVfs& own = self(vfs);
    OpenFile* opened = new (into) OpenFile{};
    if (own.is_abandoned_ || path == nullptr) return SQLITE_CANTOPEN;
    bool may_make = (flags & SQLITE_OPEN_CREATE) != 0;
    OpenMode mode = may_make                              ? OpenMode::kCreate
                    : (flags & SQLITE_OPEN_READONLY) != 0 ? OpenMode::kRead
                                                          : OpenMode::kReadWrite;
    auto file = own.files_.open(path, mode);
    if (!file) return own.note(file.error(), SQLITE_CANTOPEN);
    opened->vfs = &own;
    opened->file = file->release();
    if (may_make) opened->folder_to_sync = new std::string(folder_of(path));
    opened->base.pMethods = methods();
    if (flags_out != nullptr) *flags_out = flags;
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* path, int sync_folder) {
    SqliteVfs& own = self(vfs);
    if (own.is_abandoned_) return SQLITE_IOERR_DELETE;
    auto removed = own.files_.remove(path);
    if (!removed && removed.error().code == FileErrc::kNotFound) return SQLITE_IOERR_DELETE_NOENT;
    if (!removed) return own.note(removed.error(), SQLITE_IOERR_DELETE);
    if (sync_folder == 0) return SQLITE_OK;
    auto synced = own.files_.sync_folder(folder_of(path));
    if (!synced) return own.note_sync_failure(synced.error(), SQLITE_IOERR_DIR_FSYNC);
    return SQLITE_OK;
  }

  static int access(sqlite3_vfs* vfs, const char* path, int, int* result) {
    SqliteVfs& own = self(vfs);
    *result = 0;
    if (own.is_abandoned_) return SQLITE_IOERR_ACCESS;
    auto found = own.files_.stat(path);
    // An empty file counts as absent, as in SQLite's own: a write-ahead log that was only just made.
    if (found) *result = found->is_folder || found->size > 0 ? 1 : 0;
    if (!found && found.error().code != FileErrc::kNotFound) {
      return own.note(found.error(), SQLITE_IOERR_ACCESS);
    }
    return SQLITE_OK;
  }

  static int full_path(sqlite3_vfs*, const char* path, int out_bytes, char* out) {
    size_t length = std::strlen(path);
    if (length >= static_cast<size_t>(out_bytes)) return SQLITE_CANTOPEN;
    std::memcpy(out, path, length + 1);
    return SQLITE_OK;
  }

  static int randomness(sqlite3_vfs* vfs, int bytes, char* out) {
    for (int i = 0; i < bytes; ++i) out[i] = static_cast<char>(self(vfs).random_.next());
    return bytes;
  }

  // Only a busy lock would make SQLite sleep, and there is none.
  static int sleep(sqlite3_vfs*, int micros) { return micros; }

  static int now_milliseconds(sqlite3_vfs* vfs, sqlite3_int64* out) {
    constexpr sqlite3_int64 kJulianMillisecondsOf1970 = 210'866'760'000'000;
    *out = kJulianMillisecondsOf1970 + self(vfs).runtime_.wall_now().value();
    return SQLITE_OK;
  }

  static int now_days(sqlite3_vfs* vfs, double* out) {
    sqlite3_int64 milliseconds = 0;
    now_milliseconds(vfs, &milliseconds);
    *out = static_cast<double>(milliseconds) / 86'400'000.0;
    return SQLITE_OK;
  }

  static int last_error(sqlite3_vfs*, int, char*) { return 0; }

  static int close(sqlite3_file* file) {
    OpenFile& own = open_file(file);
    delete own.file;
    delete own.folder_to_sync;
    return SQLITE_OK;
  }

  static int read(sqlite3_file* file, void* into, int bytes, sqlite3_int64 offset) {
    OpenFile& own = open_file(file);
    if (own.vfs->is_abandoned_) return SQLITE_IOERR_READ;
    MutableByteView view(static_cast<uint8_t*>(into), static_cast<size_t>(bytes));
    auto got = own.file->read_at(static_cast<uint64_t>(offset), view);
    if (!got) return own.vfs->note(got.error(), SQLITE_IOERR_READ);
    if (*got == view.size()) return SQLITE_OK;
    std::memset(view.data() + *got, 0, view.size() - *got);
    return SQLITE_IOERR_SHORT_READ;
  }

  static int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
    OpenFile& own = open_file(file);
    if (own.vfs->is_abandoned_) return SQLITE_IOERR_WRITE;
    ByteView slices[] = {ByteView(static_cast<const uint8_t*>(from), static_cast<size_t>(bytes))};
    auto written = own.file->write_at(static_cast<uint64_t>(offset), slices);
    if (!written) return own.vfs->note(written.error(), SQLITE_IOERR_WRITE);
    return SQLITE_OK;
  }

  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    OpenFile& own = open_file(file);
    if (own.vfs->is_abandoned_) return SQLITE_IOERR_TRUNCATE;
    auto done = own.file->truncate(static_cast<uint64_t>(size));
    if (!done) return own.vfs->note(done.error(), SQLITE_IOERR_TRUNCATE);
    return SQLITE_OK;
  }

  static int sync(sqlite3_file* file, int) {
    OpenFile& own = open_file(file);
    if (own.vfs->is_abandoned_) return SQLITE_IOERR_FSYNC;
    auto synced = own.file->sync();
    if (!synced) return own.vfs->note_sync_failure(synced.error(), SQLITE_IOERR_FSYNC);
    if (own.folder_to_sync == nullptr) return SQLITE_OK;
    synced = own.vfs->files_.sync_folder(*own.folder_to_sync);
    if (!synced) return own.vfs->note_sync_failure(synced.error(), SQLITE_IOERR_DIR_FSYNC);
    delete std::exchange(own.folder_to_sync, nullptr);
    return SQLITE_OK;
  }

  static int file_size(sqlite3_file* file, sqlite3_int64* out) {
    OpenFile& own = open_file(file);
    if (own.vfs->is_abandoned_) return SQLITE_IOERR_FSTAT;
    auto size = own.file->size();
    if (!size) return own.vfs->note(size.error(), SQLITE_IOERR_FSTAT);
    *out = static_cast<sqlite3_int64>(*size);
    return SQLITE_OK;
  }

  static int lock(sqlite3_file*, int) { return SQLITE_OK; }
  static int unlock(sqlite3_file*, int) { return SQLITE_OK; }
  static int check_lock(sqlite3_file*, int* out) {
    *out = 0;
    return SQLITE_OK;
  }
  static int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int sector_bytes(sqlite3_file*) { return kSectorBytes; }
  static int characteristics(sqlite3_file*) { return kDeviceCharacteristics; }

  static const sqlite3_io_methods* methods() {
    static constexpr sqlite3_io_methods kMethods = [] {
      sqlite3_io_methods table{};
      table.iVersion = 1;  // no shared memory: SQLite then insists on exclusive locking for a write-ahead log
      table.xClose = &close;
      table.xRead = &read;
      table.xWrite = &write;
      table.xTruncate = &truncate;
      table.xSync = &sync;
      table.xFileSize = &file_size;
      table.xLock = &lock;
      table.xUnlock = &unlock;
      table.xCheckReservedLock = &check_lock;
      table.xFileControl = &control;
      table.xSectorSize = &sector_bytes;
      table.xDeviceCharacteristics = &characteristics;
      return table;
    }();
    return &kMethods;
  }
};

SqliteVfs::SqliteVfs(runtime::Runtime& runtime)
    : runtime_(runtime),
      files_(runtime.file_system()),
      random_(runtime.random_seed()),
      name_(fmt::format("varve-{}", static_cast<const void*>(this))) {
  vfs_.iVersion = 2;
  vfs_.szOsFile = sizeof(OpenFile);
  vfs_.mxPathname = kPathBytesMax;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = &Calls::open;
  vfs_.xDelete = &Calls::remove;
  vfs_.xAccess = &Calls::access;
  vfs_.xFullPathname = &Calls::full_path;
  vfs_.xRandomness = &Calls::randomness;
  vfs_.xSleep = &Calls::sleep;
  vfs_.xCurrentTime = &Calls::now_days;
  vfs_.xGetLastError = &Calls::last_error;
  vfs_.xCurrentTimeInt64 = &Calls::now_milliseconds;
  int result = sqlite3_vfs_register(&vfs_, 0);
  CHECK(result == SQLITE_OK, "registering {}: {}", name_, sqlite3_errstr(result));
}

SqliteVfs::~SqliteVfs() { sqlite3_vfs_unregister(&vfs_); }

int SqliteVfs::note(const runtime::FileError& error, int otherwise) {
  last_error_ = error.message;
  return error.code == FileErrc::kNoSpace ? SQLITE_FULL : otherwise;
}

int SqliteVfs::note_sync_failure(const runtime::FileError& error, int code) {
  last_error_ = error.message;
  if (!sync_failure_) sync_failure_ = error.message;
  return code;
}

}  // namespace varve::metadata
