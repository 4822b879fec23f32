#include "object_store/object_store.h"

namespace varve::object_store {

bool is_retriable(StoreErrc code) {
  switch (code) {
    case StoreErrc::kConflict:
    case StoreErrc::kThrottled:
    case StoreErrc::kTimeout:
    case StoreErrc::kUnavailable:
    case StoreErrc::kNoSpace:
    case StoreErrc::kDenied:  // expired credentials and skewed clocks heal (cases C119)
    case StoreErrc::kCorrupt:
      return true;
    case StoreErrc::kNotFound:
    case StoreErrc::kPreconditionFailed:
    case StoreErrc::kInvalidRange:
    case StoreErrc::kBadRequest:
      return false;
  }
  return false;
}

bool is_outcome_unknown(StoreErrc code) {
  // A damaged answer says nothing of the request.
  return code == StoreErrc::kTimeout || code == StoreErrc::kUnavailable || code == StoreErrc::kCorrupt;
}

std::optional<std::string> key_problem(std::string_view key) {
  if (key.empty()) return "the key is empty";
  if (key.size() > 1024) return "the key is longer than 1,024 bytes";
  size_t start = 0;
  while (start <= key.size()) {
    size_t end = std::min(key.find('/', start), key.size());
    std::string_view part = key.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") return "the key has an empty, '.' or '..' part";
    start = end + 1;
  }
  if (key.find('\0') != std::string_view::npos) return "the key has a zero byte";
  return std::nullopt;
}

}  // namespace varve::object_store
