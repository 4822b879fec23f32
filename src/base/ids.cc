#include "base/ids.h"

namespace varve {

std::string Uuid::to_string() const {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  text.reserve(22);
  uint32_t bits = 0;
  int bit_count = 0;
  for (uint8_t byte : bytes) {
    bits = (bits << 8) | byte;
    bit_count += 8;
    while (bit_count >= 6) {
      bit_count -= 6;
      text.push_back(kAlphabet[(bits >> bit_count) & 63]);
    }
  }
  text.push_back(kAlphabet[(bits << (6 - bit_count)) & 63]);
  return text;
}

}  // namespace varve
