// Settings of the SQLite log.
#pragma once

#include <cstdint>
#include <string>

namespace varve::metadata {

struct SqliteLogOptions {
  // Holds log.db, its write-ahead log, the lock and the ballast; made if it is not there.
  std::string folder;
  // Below max(reserve_bytes, reserve_percent of the disk) of free space normal entries get kFull.
  uint64_t reserve_bytes = 64ull << 20;
  uint64_t reserve_percent = 1;
  // A file given up when even entries that free room find none; 0 for none.
  uint64_t ballast_bytes = 16ull << 20;
  // The write-ahead log is copied into the database when it has this many bytes.
  uint64_t checkpoint_bytes = 4ull << 20;
  // Free pages inside the database beyond this are given back to the disk after a trim.
  uint64_t free_page_bytes_max = 64ull << 20;
};

}  // namespace varve::metadata
