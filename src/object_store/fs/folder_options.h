// Settings of a FolderStore.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/runtime.h"

namespace varve::object_store {

struct FolderStoreOptions {
  std::string root;
  // Make the root if it is not there; its parent must be.
  bool make_root = false;
  // A key prefix that ends with '/', below which the folders 00 to ff are made and synced at start, so that no put
  // there pays for a folder; "" for none.
  std::string fan_out{};
  // Below max(reserve_bytes, reserve_percent of the disk) of free space puts are refused with kNoSpace, all but
  // those of keys that start with reserve_exempt ("" exempts none): what is needed to make room again.
  uint64_t reserve_bytes = 64ull << 20;
  uint64_t reserve_percent = 1;
  std::string reserve_exempt{};
  runtime::Lane lane = runtime::Lane::kDisk;
};

}  // namespace varve::object_store
