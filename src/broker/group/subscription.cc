#include "broker/group/subscription.h"

#include "base/bytes.h"

namespace varve::broker {
namespace {

// Takes an integer from the front; nullopt: the bytes end before.
template <class T>
std::optional<T> take(std::string_view& bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value = load_be<T>(as_bytes(bytes).data());
  bytes.remove_prefix(sizeof(T));
  return value;
}

}  // namespace

std::optional<std::vector<std::string>> read_subscribed_topics(std::string_view metadata) {
  std::optional<int16_t> version = take<int16_t>(metadata);
  std::optional<int32_t> count = take<int32_t>(metadata);
  if (!version || *version < 0 || !count || *count < 0) return std::nullopt;
  std::vector<std::string> topics;
  for (int32_t i = 0; i < *count; ++i) {
    std::optional<int16_t> length = take<int16_t>(metadata);
    if (!length || *length < 0 || metadata.size() < static_cast<size_t>(*length)) return std::nullopt;
    topics.emplace_back(metadata.substr(0, static_cast<size_t>(*length)));
    metadata.remove_prefix(static_cast<size_t>(*length));
  }
  return topics;
}

}  // namespace varve::broker
