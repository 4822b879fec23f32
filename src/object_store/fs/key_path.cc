#include "object_store/fs/key_path.h"

#include <fmt/format.h>

#include <cstdint>

namespace varve::object_store {

namespace {

constexpr size_t kNameBytesMax = 255;  // of Linux file systems

bool must_escape(char c) { return c == '%' || static_cast<uint8_t>(c) < 0x20 || c == 0x7f; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string path_of_key(std::string_view key) {
  std::string path;
  path.reserve(key.size());
  for (char c : key) {
    if (must_escape(c)) {
      path += fmt::format("%{:02X}", static_cast<uint8_t>(c));
    } else {
      path += c;
    }
  }
  return path;
}

std::optional<std::string> path_problem(std::string_view key) {
  std::string path = path_of_key(key);
  for (size_t start = 0; start <= path.size();) {
    size_t end = std::min(path.find('/', start), path.size());
    if (end - start > kNameBytesMax) {
      return fmt::format("a part of the key is longer than a file name may be ({} bytes)", kNameBytesMax);
    }
    start = end + 1;
  }
  return std::nullopt;
}

std::optional<std::string> part_of_name(std::string_view name) {
  std::string part;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      if (must_escape(name[i])) return std::nullopt;
      part += name[i];
      continue;
    }
    if (i + 2 >= name.size()) return std::nullopt;
    int high = hex_digit(name[i + 1]);
    int low = hex_digit(name[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    char c = static_cast<char>(high * 16 + low);
    if (!must_escape(c)) return std::nullopt;  // path_of_key() would not have escaped it
    part += c;
    i += 2;
  }
  if (part.empty()) return std::nullopt;
  return part;
}

}  // namespace varve::object_store
