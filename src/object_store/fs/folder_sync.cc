#include "object_store/fs/folder_sync.h"

#include <utility>

namespace varve::object_store {

FolderSync::Outcome FolderSync::begin(const std::string& folder) {
  Outcome outcome;
  {
    std::lock_guard lock(mutex_);
    auto [place, is_first] = waiting_.try_emplace(folder);
    place->second.push_back(outcome);
    if (!is_first) return outcome;
  }
  runtime_.offload(lane_, [self = shared_from_this(), folder] { self->run(folder); });
  return outcome;
}

runtime::FileResult<void> FolderSync::sync_now(const std::string& folder) {
  auto result = runtime_.file_system().sync_folder(folder);
  if (!result) {
    std::lock_guard lock(mutex_);
    failed_.insert(folder);
  }
  return result;
}

bool FolderSync::has_failed(const std::string& folder) const {
  std::lock_guard lock(mutex_);
  return failed_.contains(folder);
}

void FolderSync::run(const std::string& folder) {
  std::vector<Outcome> served;
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      auto place = waiting_.find(folder);
      served = std::exchange(place->second, {});
      if (served.empty()) {
        waiting_.erase(place);
        return;
      }
    }
    auto result = sync_now(folder);
    for (const Outcome& outcome : served) outcome.set(result);
  }
}

}  // namespace varve::object_store
