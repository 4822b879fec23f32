#include "object_store/fs/folder.h"

#include <algorithm>

#include "object_store/fs/key_path.h"

namespace varve::object_store {

using runtime::FileErrc;
using runtime::FileError;
using runtime::FileResult;
using runtime::OpenMode;

namespace {

constexpr std::string_view kTemporaryFolder = "/%tmp";
constexpr size_t kDurableFoldersMax =
    100'000;  // beyond it they are forgotten, and synced once more when used

std::unexpected<StoreError> store_error(const FileError& error) {
  return fail(store_code_of(error.code), error.message);
}

std::string parent_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

}  // namespace

StoreErrc store_code_of(FileErrc code) {
  switch (code) {
    case FileErrc::kNotFound:
      return StoreErrc::kNotFound;
    case FileErrc::kNoSpace:
      return StoreErrc::kNoSpace;
    case FileErrc::kDenied:
      return StoreErrc::kDenied;
    case FileErrc::kNotAFolder:
      return StoreErrc::kBadRequest;
    case FileErrc::kExists:
    case FileErrc::kLocked:
    case FileErrc::kIo:
      break;
  }
  return StoreErrc::kUnavailable;
}

Folder::Folder(runtime::FileSystem& files, FolderStoreOptions options,
               std::shared_ptr<FolderSync> folder_sync, uint64_t nonce)
    : files_(files),
      options_(std::move(options)),
      folder_sync_(std::move(folder_sync)),
      own_name_(fmt::format("{:016x}", nonce)) {}

std::string Folder::path_of(const std::string& key) const { return options_.root + "/" + path_of_key(key); }
std::string Folder::folder_of(const std::string& key) const { return parent_of(path_of(key)); }

StoreResult<void> Folder::open() {
  const std::string& root = options_.root;
  auto found = files_.stat(root);
  bool is_missing = !found && found.error().code == FileErrc::kNotFound;
  if (is_missing && !options_.make_root) {
    return fail(StoreErrc::kNotFound, fmt::format("the object store's folder {} does not exist", root));
  }
  if (options_.make_root && (is_missing || (found && found->is_folder))) {
    // One that is there may not have been synced by the start that made it.
    auto made = runtime::make_folders(files_, root);
    if (!made) {
      return fail(store_code_of(made.error().code),
                  fmt::format("the object store's folder {} cannot be made: {}", root, made.error().message));
    }
  } else if (!found) {
    return fail(store_code_of(found.error().code),
                fmt::format("the object store's folder {} cannot be used: {}", root, found.error().message));
  } else if (!found->is_folder) {
    return fail(StoreErrc::kBadRequest, fmt::format("the object store's folder {} is a file", root));
  }
  durable_folders_.insert(root);
  if (auto opened = open_temporary_folder(); !opened) {
    return fail(opened.error().code, fmt::format("the object store's folder {} cannot be written: {}", root,
                                                 opened.error().message));
  }
  auto made = make_fan_out();
  if (!made) {
    return fail(made.error().code, fmt::format("the object store's folder {} cannot be prepared: {}", root,
                                               made.error().message));
  }
  return {};
}

// Each process has a folder of its own for temporary files, and a lock in it that ends with the process. Whoever
// starts removes those whose lock is free. One that was just made and is not locked yet may fall to that: hence
// the tries.
StoreResult<void> Folder::open_temporary_folder() {
  std::string temporary_root = options_.root + std::string(kTemporaryFolder);
  auto made = files_.make_folder(temporary_root);
  if (!made && made.error().code != FileErrc::kExists) return store_error(made.error());
  remove_leftovers(temporary_root);
  FileError last{FileErrc::kLocked, "no temporary folder could be had"};
  for (int attempt = 0; attempt < 10 && !own_lock_; ++attempt) {
    std::string own = fmt::format("{}/{}-{}", temporary_root, own_name_, attempt);
    made = files_.make_folder(own);
    if (!made && made.error().code != FileErrc::kExists) return store_error(made.error());
    auto lock = files_.open(own + "/lock", OpenMode::kCreate);
    if (!lock) {
      last = lock.error();
      continue;
    }
    if (auto locked = (*lock)->lock(); !locked) {
      last = locked.error();
      continue;
    }
    temporary_folder_ = own;
    own_lock_ = std::move(*lock);
  }
  if (!own_lock_) return store_error(last);
  return {};
}

// Best effort: what cannot be removed takes room, no more.
void Folder::remove_leftovers(const std::string& temporary_root) {
  auto processes = files_.list(temporary_root);
  if (!processes) return;
  for (const auto& process : *processes) {
    std::string path = temporary_root + "/" + process.name;
    auto lock = files_.open(path + "/lock", OpenMode::kReadWrite);
    if (lock && !(*lock)->lock()) continue;  // alive
    if (!lock && lock.error().code != FileErrc::kNotFound) continue;
    auto files = files_.list(path);
    if (!files) continue;
    for (const auto& file : *files) (void)files_.remove(path + "/" + file.name);
    (void)files_.remove_folder(path);
  }
}

StoreResult<void> Folder::make_fan_out() {
  if (options_.fan_out.empty()) return {};
  CHECK(options_.fan_out.ends_with('/') && !key_problem(options_.fan_out + "00"), "fan-out {}",
        options_.fan_out);
  std::string above = folder_of(options_.fan_out + "00");
  if (auto made = ensure_folder(above); !made) return store_error(made.error());
  std::vector<std::string> folders;
  for (int i = 0; i < 256; ++i) {
    folders.push_back(fmt::format("{}/{:02x}", above, i));
    auto made = files_.make_folder(folders.back());
    if (!made && made.error().code != FileErrc::kExists) return store_error(made.error());
  }
  if (auto synced = folder_sync_->sync_now(above); !synced) return store_error(synced.error());
  std::lock_guard lock(mutex_);
  durable_folders_.insert(folders.begin(), folders.end());
  return {};
}

bool Folder::is_durable(const std::string& folder) {
  std::lock_guard lock(mutex_);
  return durable_folders_.contains(folder);
}

FileResult<void> Folder::ensure_folder(const std::string& path) {
  if (is_durable(path)) return {};
  if (path == options_.root) return fail(FileErrc::kNotFound, path + " is gone");
  std::string parent = parent_of(path);
  if (auto ensured = ensure_folder(parent); !ensured) return ensured;
  auto made = files_.make_folder(path);
  if (!made && made.error().code != FileErrc::kExists) return made;
  auto synced = folder_sync_->sync_now(parent);
  if (!synced) {
    // As with a file: what could not be synced must be made anew to count.
    (void)files_.remove_folder(path);
    return synced;
  }
  if (!made && folder_sync_->has_failed(parent)) {
    return fail(FileErrc::kIo, parent + ": a sync failed, its entries may be lost; restart the broker");
  }
  std::lock_guard lock(mutex_);
  if (durable_folders_.size() >= kDurableFoldersMax) durable_folders_ = {options_.root};
  durable_folders_.insert(path);
  return {};
}

StoreResult<runtime::FileSpace> Folder::space() {
  auto space = files_.space(options_.root);
  if (!space) return store_error(space.error());
  return *space;
}

StoreResult<void> Folder::check_room(const std::string& key, uint64_t bytes) {
  if (!options_.reserve_exempt.empty() && key.starts_with(options_.reserve_exempt)) return {};
  auto found = space();
  if (!found) return pass_error(found);
  uint64_t reserve = std::max(options_.reserve_bytes, found->total_bytes / 100 * options_.reserve_percent);
  if (found->free_bytes >= reserve && found->free_bytes - reserve >= bytes) return {};
  return fail(StoreErrc::kNoSpace, fmt::format("the disk of {} is full: {} MiB are free and {} MiB are kept "
                                               "for deleting",
                                               options_.root, found->free_bytes >> 20, reserve >> 20));
}

FileResult<void> Folder::write_file(const std::string& path, const std::vector<Slice>& body) {
  auto file = files_.open(path, OpenMode::kCreateNew);
  if (!file) return pass_error(file);
  std::vector<ByteView> slices;
  slices.reserve(body.size());
  for (const Slice& slice : body) slices.push_back(slice.view());
  if (auto written = (*file)->write_at(0, slices); !written) return written;
  return (*file)->sync();
}

template <class NameIt>
StoreResult<void> Folder::with_temporary(const std::string& key, const std::vector<Slice>& body,
                                         NameIt name_it) {
  if (auto room = check_room(key, total_size(body)); !room) return room;
  std::string temporary = fmt::format("{}/{}", temporary_folder_, next_temporary_.fetch_add(1));
  FileResult<void> done = write_file(temporary, body);
  if (done) {
    std::string folder = folder_of(key);
    done = ensure_folder(folder);
    if (done) done = name_it(temporary);
    if (!done && done.error().code == FileErrc::kNotFound) {
      // Somebody removed the folder.
      {
        std::lock_guard lock(mutex_);
        durable_folders_ = {options_.root};
      }
      done = ensure_folder(folder);
      if (done) done = name_it(temporary);
    }
  }
  (void)files_.remove(temporary);
  if (done) return {};
  const FileError& error = done.error();
  if (error.code == FileErrc::kNotFound) return fail(StoreErrc::kUnavailable, error.message);
  if (error.code == FileErrc::kNotAFolder) {
    return fail(StoreErrc::kBadRequest,
                fmt::format("{}: another object stands where this one needs a folder, or the reverse", key));
  }
  if (error.code == FileErrc::kExists) return fail(StoreErrc::kPreconditionFailed, key + " is there");
  return store_error(error);
}

StoreResult<void> Folder::put_new(const std::string& key, const std::vector<Slice>& body) {
  std::string path = path_of(key);
  auto done =
      with_temporary(key, body, [&](const std::string& temporary) { return files_.link(temporary, path); });
  if (!done && done.error().code == StoreErrc::kPreconditionFailed) {
    auto found = files_.stat(path);
    if (found && found->is_folder) return fail(StoreErrc::kBadRequest, key + " is a folder of other objects");
  }
  return done;
}

StoreResult<void> Folder::put_over(const std::string& key, const std::vector<Slice>& body) {
  std::string path = path_of(key);
  return with_temporary(key, body,
                        [&](const std::string& temporary) { return files_.rename(temporary, path); });
}

void Folder::take_back(const std::string& key) { (void)files_.remove(path_of(key)); }

StoreResult<Slice> Folder::get(const std::string& key, std::optional<ByteRange> range) {
  auto file = files_.open(path_of(key), OpenMode::kRead);
  if (!file) {
    FileErrc code = file.error().code;
    if (code == FileErrc::kNotFound || code == FileErrc::kNotAFolder) return fail(StoreErrc::kNotFound, key);
    return store_error(file.error());
  }
  auto size = (*file)->size();
  if (!size) return store_error(size.error());
  uint64_t offset = range ? range->offset : 0;
  if (range && offset >= *size) return fail(StoreErrc::kInvalidRange, key);
  uint64_t left = *size - offset;
  uint64_t wanted = range && range->size != 0 ? std::min(range->size, left) : left;
  auto bytes = std::make_shared_for_overwrite<uint8_t[]>(wanted);
  auto got = (*file)->read_at(offset, MutableByteView(bytes.get(), wanted));
  if (!got) return store_error(got.error());
  if (*got != wanted) return fail(StoreErrc::kCorrupt, key + " is shorter than it was");
  ByteView view(bytes.get(), wanted);
  return Slice(std::move(bytes), view);
}

StoreResult<ObjectInfo> Folder::head(const std::string& key) {
  auto found = files_.stat(path_of(key));
  if (found && !found->is_folder) return ObjectInfo{key, found->size};
  if (found || found.error().code == FileErrc::kNotFound || found.error().code == FileErrc::kNotAFolder) {
    return fail(StoreErrc::kNotFound, key);
  }
  return store_error(found.error());
}

struct Folder::Walk {
  const std::string& prefix;
  const std::string& start_after;
  size_t max_keys;
  ListPage page;
  std::optional<FileError> error;
};

StoreResult<ListPage> Folder::list(const std::string& prefix, const std::string& start_after,
                                   size_t max_keys) {
  Walk at{prefix, start_after, max_keys, {}, std::nullopt};
  // Down to the deepest folder that the prefix names, without looking at those beside it.
  std::string path = options_.root;
  std::string key_prefix;
  if (size_t slash = prefix.find_last_of('/'); slash != std::string::npos) {
    std::string folder = prefix.substr(0, slash);
    if (key_problem(folder)) return ListPage{};
    path = path_of(folder);
    key_prefix = folder + "/";
  }
  walk(path, key_prefix, at);
  if (at.error) return store_error(*at.error);
  return std::move(at.page);
}

// False to end the whole walk.
bool Folder::walk(const std::string& path, const std::string& key_prefix, Walk& at) {
  auto entries = files_.list(path);
  if (!entries) {
    FileErrc code = entries.error().code;
    if (code == FileErrc::kNotFound || code == FileErrc::kNotAFolder) return true;
    at.error = entries.error();
    return false;
  }
  // With its '/' a folder sorts where the keys in it belong among the files beside it.
  std::vector<std::pair<std::string, const runtime::FolderEntry*>> keys;
  for (const auto& entry : *entries) {
    auto part = part_of_name(entry.name);
    if (part) keys.emplace_back(key_prefix + *part + (entry.is_folder ? "/" : ""), &entry);
  }
  std::ranges::sort(keys);
  for (const auto& [key, entry] : keys) {
    if (entry->is_folder) {
      bool may_match = key.starts_with(at.prefix) || at.prefix.starts_with(key);
      bool is_passed = key <= at.start_after && !at.start_after.starts_with(key);
      if (!may_match || is_passed) continue;
      if (!walk(path + "/" + entry->name, key, at)) return false;
    } else {
      if (!key.starts_with(at.prefix) || key <= at.start_after) continue;
      if (at.page.objects.size() == at.max_keys) {
        at.page.is_truncated = true;
        return false;
      }
      at.page.objects.push_back({key, entry->size});
    }
  }
  return true;
}

Folder::Removed Folder::remove(const std::string& key) {
  std::string path = path_of(key);
  auto removed = files_.remove(path);
  if (removed) return {true, true};
  switch (removed.error().code) {
    case FileErrc::kNotFound: {
      // Its removal by an earlier, interrupted call may still need the sync.
      auto folder = files_.stat(parent_of(path));
      return {true, folder && folder->is_folder};
    }
    case FileErrc::kNotAFolder:
      return {true, false};
    default: {
      auto found = files_.stat(path);
      return {found && found->is_folder, false};  // a folder is no object
    }
  }
}

}  // namespace varve::object_store
