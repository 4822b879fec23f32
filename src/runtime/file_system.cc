#include "runtime/file_system.h"

namespace varve::runtime {

FileResult<void> make_folders(FileSystem& files, const std::string& path) {
  size_t slash = path.find_last_of('/');
  std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  auto found = files.stat(path);
  if (found && found->is_folder) {
    // Whoever made it may have ended before it was synced. Where that is not allowed it was not one of us.
    auto synced = files.sync_folder(parent);
    if (!synced && synced.error().code != FileErrc::kDenied) return synced;
    return {};
  }
  if (found) return fail(FileErrc::kNotAFolder, path + " is a file; a folder is needed there");
  if (found.error().code != FileErrc::kNotFound) return pass_error(found);
  if (parent != path) {
    auto made = make_folders(files, parent);
    if (!made) return made;
  }
  auto made = files.make_folder(path);
  if (!made && made.error().code != FileErrc::kExists) return made;
  return files.sync_folder(parent);
}

}  // namespace varve::runtime
