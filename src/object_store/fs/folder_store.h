// FolderStore: an object store in a local folder.
#pragma once

#include <memory>

#include "object_store/fs/folder_options.h"
#include "object_store/object_store.h"
#include "runtime/runtime.h"

namespace varve::object_store {

class Folder;
class FolderSync;

// An object is a file that never changes: written under a temporary name, synced, and then linked (put_if_absent;
// of rivals the system lets one through) or renamed (put) to its name, whose folder is synced in one go for all who
// wait. What a key looks like as a path: key_path.h. Two keys of which one is a folder of the other ("a", "a/b")
// cannot both be stored: the second is refused with kBadRequest. Folders left empty by deletes are kept.
//
// Several processes may use one folder. Life: open() once, then any executor; the runtime outlives it.
class FolderStore final : public ObjectStore {
 public:
  FolderStore(runtime::Runtime& runtime, FolderStoreOptions options);
  ~FolderStore() override;

  // Checks that the folder is there and can be written, removes what dead processes left unfinished and makes the
  // fan-out. An error's message names the folder: it is for the person who starts the broker.
  runtime::Task<StoreResult<void>> open();

  runtime::Task<StoreResult<void>> put(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<void>> put_if_absent(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override;
  runtime::Task<StoreResult<ObjectInfo>> head(std::string key) override;
  runtime::Task<StoreResult<ListPage>> list(std::string prefix, std::string start_after,
                                            size_t max_keys) override;
  runtime::Task<StoreResult<std::vector<std::string>>> delete_many(std::vector<std::string> keys) override;

  // Of the disk that the folder is on.
  runtime::Task<StoreResult<runtime::FileSpace>> space();

 private:
  template <class Function>
  auto in_lane(Function function) -> runtime::Task<std::invoke_result_t<Function, Folder&>>;
  runtime::Task<runtime::FileResult<void>> synced(std::string folder);
  runtime::Task<StoreResult<void>> store(std::string key, std::vector<Slice> body, bool only_if_absent);

  runtime::Runtime& runtime_;
  const runtime::Lane lane_;
  std::shared_ptr<Folder> folder_;
  std::shared_ptr<FolderSync> folder_sync_;
};

}  // namespace varve::object_store
