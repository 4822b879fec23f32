// Ballast: space taken while there is plenty, to be given up when there is none.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "runtime/runtime.h"

namespace varve::metadata {

// A file of `bytes` at `path`. Thread-safe; every function blocks.
class Ballast {
 public:
  Ballast(runtime::FileSystem& files, std::string path, uint64_t bytes)
      : files_(files), path_(std::move(path)), bytes_(bytes) {}
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;

  // Takes the space if it is not taken. Best effort: on failure nothing stays behind, and is_held() tells.
  void take();
  // Gives it up; false if there was nothing to give.
  bool release();
  // As far as is known without a look at the disk.
  bool is_held() const { return is_held_; }

 private:
  bool write_file(const std::string& path);

  runtime::FileSystem& files_;
  const std::string path_;
  const uint64_t bytes_;
  std::mutex mutex_;
  std::atomic<bool> is_held_ = false;
};

}  // namespace varve::metadata
