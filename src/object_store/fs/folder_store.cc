#include "object_store/fs/folder_store.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "object_store/fs/folder.h"
#include "object_store/fs/folder_sync.h"
#include "object_store/fs/key_path.h"

namespace varve::object_store {

using runtime::FileResult;
using runtime::Task;

namespace {

constexpr size_t kPageKeysMax = 1000;
constexpr size_t kDeleteKeysMax = 1000;

std::optional<std::string> problem_of(const std::string& key) {
  if (auto problem = key_problem(key)) return problem;
  return path_problem(key);
}

std::unexpected<StoreError> stopped() { return fail(StoreErrc::kTimeout, "asked to stop"); }

// The body of a put on its way into the lane. Whoever comes second finds nothing: a caller who gives up takes it
// back, so that what waits behind a disk that hangs holds no memory.
class HandedBody {
 public:
  explicit HandedBody(std::vector<Slice> body) : body_(std::move(body)) {}

  std::optional<std::vector<Slice>> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(body_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<std::vector<Slice>> body_;
};

}  // namespace

FolderStore::FolderStore(runtime::Runtime& runtime, FolderStoreOptions options)
    : runtime_(runtime), lane_(options.lane), folder_sync_(std::make_shared<FolderSync>(runtime, lane_)) {
  while (options.root.size() > 1 && options.root.ends_with('/')) options.root.pop_back();
  folder_ = std::make_shared<Folder>(runtime.file_system(), std::move(options), folder_sync_,
                                     runtime.random_seed());
}

FolderStore::~FolderStore() = default;

// Runs function(folder) in the lane. A stop ends the waiting, not the work, which therefore owns what it needs; the
// end of the store does, so that no job keeps files open.
template <class Function>
auto FolderStore::in_lane(Function function) -> Task<std::invoke_result_t<Function, Folder&>> {
  using R = std::invoke_result_t<Function, Folder&>;
  runtime::TaskContext& context = co_await runtime::this_context();
  if (context.stop.stop_requested()) co_return stopped();
  runtime::Completion<R> done;
  runtime_.offload(lane_, [done, weak = std::weak_ptr(folder_), function = std::move(function)]() mutable {
    if (auto folder = weak.lock()) done.set(function(*folder));
  });
  co_return co_await runtime::wait_until(done, MonotonicTime::never(), R(stopped()));
}

Task<FileResult<void>> FolderStore::synced(std::string folder) {
  FileResult<void> early = fail(runtime::FileErrc::kIo, "asked to stop");
  co_return co_await runtime::wait_until(folder_sync_->begin(folder), MonotonicTime::never(),
                                         std::move(early));
}

Task<StoreResult<void>> FolderStore::open() {
  co_return co_await in_lane([](Folder& folder) { return folder.open(); });
}

Task<StoreResult<void>> FolderStore::store(std::string key, std::vector<Slice> body, bool only_if_absent) {
  if (auto problem = problem_of(key)) co_return fail(StoreErrc::kBadRequest, *problem);
  auto handed = std::make_shared<HandedBody>(std::move(body));
  auto stored = co_await in_lane([key, handed, only_if_absent](Folder& folder) -> StoreResult<void> {
    auto bytes = handed->take();
    if (!bytes) return stopped();
    return only_if_absent ? folder.put_new(key, *bytes) : folder.put_over(key, *bytes);
  });
  handed->take();
  bool is_there = !stored && stored.error().code == StoreErrc::kPreconditionFailed;
  if (!stored && !is_there) co_return stored;

  // Also when it was there: whoever put it may not have come to its sync, and a caller may take "already there,
  // with my bytes" for success.
  std::string path = folder_->folder_of(key);
  runtime::TaskContext& context = co_await runtime::this_context();
  auto durable = co_await synced(path);
  if (!durable) {
    if (context.stop.stop_requested()) co_return stopped();
    if (stored && only_if_absent) {
      co_await in_lane([key](Folder& folder) -> StoreResult<void> {
        folder.take_back(key);
        return {};
      });
    }
    co_return fail(StoreErrc::kUnavailable, durable.error().message);
  }
  if (is_there && folder_sync_->has_failed(path)) {
    co_return fail(StoreErrc::kUnavailable, path + ": a sync failed, so what is there may be lost");
  }
  co_return stored;
}

Task<StoreResult<void>> FolderStore::put(std::string key, std::vector<Slice> body) {
  return store(std::move(key), std::move(body), false);
}

Task<StoreResult<void>> FolderStore::put_if_absent(std::string key, std::vector<Slice> body) {
  return store(std::move(key), std::move(body), true);
}

Task<StoreResult<Slice>> FolderStore::get(std::string key, std::optional<ByteRange> range) {
  if (auto problem = problem_of(key)) co_return fail(StoreErrc::kBadRequest, *problem);
  co_return co_await in_lane([key, range](Folder& folder) { return folder.get(key, range); });
}

Task<StoreResult<ObjectInfo>> FolderStore::head(std::string key) {
  if (auto problem = problem_of(key)) co_return fail(StoreErrc::kBadRequest, *problem);
  co_return co_await in_lane([key](Folder& folder) { return folder.head(key); });
}

Task<StoreResult<ListPage>> FolderStore::list(std::string prefix, std::string start_after, size_t max_keys) {
  if (max_keys < 1 || max_keys > kPageKeysMax) {
    co_return fail(StoreErrc::kBadRequest, "max_keys must be 1 to 1,000");
  }
  co_return co_await in_lane(
      [prefix, start_after, max_keys](Folder& folder) { return folder.list(prefix, start_after, max_keys); });
}

Task<StoreResult<std::vector<std::string>>> FolderStore::delete_many(std::vector<std::string> keys) {
  if (keys.size() > kDeleteKeysMax) co_return fail(StoreErrc::kBadRequest, "more than 1,000 keys");
  struct Outcome {
    std::vector<std::string> kept;
    std::map<std::string, std::vector<std::string>> removed;  // by folder to sync
  };
  auto removed = co_await in_lane([keys = std::move(keys)](Folder& folder) -> StoreResult<Outcome> {
    Outcome outcome;
    for (const std::string& key : keys) {
      Folder::Removed result = problem_of(key) ? Folder::Removed{} : folder.remove(key);
      if (!result.is_gone) {
        outcome.kept.push_back(key);
      } else if (result.has_folder) {
        outcome.removed[folder.folder_of(key)].push_back(key);
      }
    }
    return outcome;
  });
  if (!removed) co_return pass_error(removed);
  // Durable before it is reported: nobody would delete a file that came back after a power cut.
  std::vector<FolderSync::Outcome> syncs;
  for (const auto& [folder, unused] : removed->removed) syncs.push_back(folder_sync_->begin(folder));
  size_t next = 0;
  runtime::TaskContext& context = co_await runtime::this_context();
  for (auto& [folder, gone] : removed->removed) {
    FileResult<void> early = fail(runtime::FileErrc::kIo, "asked to stop");
    auto durable = co_await runtime::wait_until(syncs[next++], MonotonicTime::never(), std::move(early));
    if (context.stop.stop_requested()) co_return stopped();
    if (!durable) removed->kept.insert(removed->kept.end(), gone.begin(), gone.end());
  }
  co_return std::move(removed->kept);
}

Task<StoreResult<runtime::FileSpace>> FolderStore::space() {
  co_return co_await in_lane([](Folder& folder) { return folder.space(); });
}

}  // namespace varve::object_store
