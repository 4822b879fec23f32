// FolderSync: makes folder entries durable, one sync for all who wait.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace varve::object_store {

// A sync that began before an entry was made need not cover it, so whoever comes while one is under way waits for
// the next, which then serves all of them. Thread-safe. Life: shared with its jobs, so it may be let go at any
// time; the runtime must live until they have run.
class FolderSync : public std::enable_shared_from_this<FolderSync> {
 public:
  FolderSync(runtime::Runtime& runtime, runtime::Lane lane) : runtime_(runtime), lane_(lane) {}
  FolderSync(const FolderSync&) = delete;
  FolderSync& operator=(const FolderSync&) = delete;

  using Outcome = runtime::Completion<runtime::FileResult<void>>;

  // Set when a sync of `folder` that began after this call has ended.
  Outcome begin(const std::string& folder);
  // The same at once, in the calling thread of a lane.
  runtime::FileResult<void> sync_now(const std::string& folder);

  // True once a sync of `folder` has failed: an entry made before that may be lost although it is seen and although
  // later syncs succeed. What is made after it, and synced, is safe.
  bool has_failed(const std::string& folder) const;

 private:
  void run(const std::string& folder);

  runtime::Runtime& runtime_;
  const runtime::Lane lane_;
  mutable std::mutex mutex_;
  // Folders with a sync under way, and who waits for the next one.
  std::map<std::string, std::vector<Outcome>> waiting_;
  std::set<std::string> failed_;
};

}  // namespace varve::object_store
