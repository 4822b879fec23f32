// Folder: the blocking half of FolderStore. Every function runs in an offload lane.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "object_store/fs/folder_options.h"
#include "object_store/fs/folder_sync.h"
#include "object_store/object_store.h"
#include "runtime/file_system.h"

namespace varve::object_store {

StoreErrc store_code_of(runtime::FileErrc code);

// Thread-safe after open(). Life: shared by the store and its jobs.
class Folder {
 public:
  // `nonce` names this process's part of the temporary files.
  Folder(runtime::FileSystem& files, FolderStoreOptions options, std::shared_ptr<FolderSync> folder_sync,
         uint64_t nonce);
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  StoreResult<void> open();

  // Stores the bytes durably under the key's name, whose folder entry is left to the caller to sync.
  // put_new: kPreconditionFailed if the name is taken.
  StoreResult<void> put_new(const std::string& key, const std::vector<Slice>& body);
  StoreResult<void> put_over(const std::string& key, const std::vector<Slice>& body);
  // After a failed sync of the folder: takes the name of a new object back if it can, as its put has failed.
  void take_back(const std::string& key);

  StoreResult<Slice> get(const std::string& key, std::optional<ByteRange> range);
  StoreResult<ObjectInfo> head(const std::string& key);
  StoreResult<ListPage> list(const std::string& prefix, const std::string& start_after, size_t max_keys);

  struct Removed {
    bool is_gone = false;
    bool has_folder = false;  // there is a folder to sync
  };
  Removed remove(const std::string& key);

  StoreResult<runtime::FileSpace> space();

  // Path of the folder that holds the key's file.
  std::string folder_of(const std::string& key) const;

 private:
  struct Walk;

  std::string path_of(const std::string& key) const;
  StoreResult<void> open_temporary_folder();
  void remove_leftovers(const std::string& temporary_root);
  StoreResult<void> make_fan_out();
  bool is_durable(const std::string& folder);
  StoreResult<void> check_room(const std::string& key, uint64_t bytes);
  // Writes and syncs a file with the bytes, hands its path to `name_it` and removes it.
  template <class NameIt>
  StoreResult<void> with_temporary(const std::string& key, const std::vector<Slice>& body, NameIt name_it);
  runtime::FileResult<void> write_file(const std::string& path, const std::vector<Slice>& body);
  // Makes the folder and those above it, durably. A folder that is there may still be somebody's fresh one whose
  // entry is not durable, so its parent is synced the first time in any case.
  runtime::FileResult<void> ensure_folder(const std::string& path);
  bool walk(const std::string& path, const std::string& key_prefix, Walk& at);

  runtime::FileSystem& files_;
  const FolderStoreOptions options_;
  const std::shared_ptr<FolderSync> folder_sync_;
  const std::string own_name_;
  std::string temporary_folder_;
  std::unique_ptr<runtime::File> own_lock_;
  std::atomic<uint64_t> next_temporary_{0};

  std::mutex mutex_;
  std::set<std::string> durable_folders_;
};

}  // namespace varve::object_store
