#include "metadata/log/sqlite/ballast.h"

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace varve::metadata {

void Ballast::take() {
  std::lock_guard lock(mutex_);
  if (bytes_ == 0 || is_held_) return;
  auto found = files_.stat(path_);
  if (found && !found->is_folder && found->size == bytes_) {
    is_held_ = true;
    return;
  }
  std::string unfinished = path_ + ".new";
  if (write_file(unfinished) && files_.rename(unfinished, path_)) {
    is_held_ = true;
  } else {
    (void)files_.remove(unfinished);
  }
}

bool Ballast::write_file(const std::string& path) {
  auto file = files_.open(path, runtime::OpenMode::kCreate);
  if (!file || !(*file)->truncate(0)) return false;
  // Bytes that no file system can make small.
  std::vector<uint8_t> chunk(std::min<uint64_t>(bytes_, 1 << 20));
  Random random(bytes_);
  std::ranges::generate(chunk, [&] { return static_cast<uint8_t>(random.next()); });
  for (uint64_t at = 0; at < bytes_;) {
    ByteView slices[] = {ByteView(chunk).first(std::min<uint64_t>(chunk.size(), bytes_ - at))};
    if (!(*file)->write_at(at, slices)) return false;
    at += slices[0].size();
  }
  return (*file)->sync().has_value();
}

bool Ballast::release() {
  std::lock_guard lock(mutex_);
  is_held_ = false;
  return bytes_ != 0 && files_.remove(path_).has_value();
}

}  // namespace varve::metadata
