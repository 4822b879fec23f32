// The calls of an ObjectStore, as its decorators count and name them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace varve::object_store {

// put() and put_if_absent() are both kPut.
enum StoreOperation : uint8_t { kPut, kGet, kHead, kList, kDelete, kStoreOperationCount };

inline constexpr std::array<std::string_view, kStoreOperationCount> kStoreOperationNames = {
    "put", "get", "head", "list", "delete"};

}  // namespace varve::object_store
