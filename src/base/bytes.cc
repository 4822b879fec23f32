#include "base/bytes.h"

namespace varve {

std::string to_hex(ByteView bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

Slice Slice::copy_of(ByteView bytes) { return take(std::vector<uint8_t>(bytes.begin(), bytes.end())); }

Slice Slice::take(std::vector<uint8_t> bytes) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  ByteView view(*owner);
  return Slice(std::move(owner), view);
}

}  // namespace varve
