// How the key of an object becomes a path below the store's folder, and back.
//
// A key's parts are folders and the last one is the file, so that the folder reads like the bucket it stands for.
// Bytes that a name had better not hold ('%', control characters) are written as %XX. No key gives a name that
// starts with '%' and is not an escape: those are the store's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace varve::object_store {

// A part longer than a file name may be, or nothing wrong (nullopt). Call key_problem() first.
std::optional<std::string> path_problem(std::string_view key);

// The path of a key that has no problem.
std::string path_of_key(std::string_view key);

// The part that a name stands for; nullopt if no key gives this name (somebody else's file).
std::optional<std::string> part_of_name(std::string_view name);

}  // namespace varve::object_store
