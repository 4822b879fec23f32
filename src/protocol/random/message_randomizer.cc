#include "protocol/random/message_randomizer.h"

#include <utility>
#include <vector>

namespace varve::protocol {

size_t MessageRandomizer::items() {
  size_t count = total_items_ > 40 ? 0 : static_cast<size_t>(random_.below(4));
  // Enough to need two bytes of varint, once in a while.
  if (total_items_ == 0 && random_.chance(1, 50)) count = 130;
  total_items_ += count;
  return count;
}

int64_t MessageRandomizer::number() {
  switch (random_.below(4)) {
    case 0:
      return random_.between(-1, 1);
    case 1:
      return random_.between(-1000, 1000);
    case 2:
      return random_.chance(1, 2) ? INT64_MAX : INT64_MIN;
    default:
      return static_cast<int64_t>(random_.next());
  }
}

size_t MessageRandomizer::size() {
  switch (random_.below(8)) {
    case 0:
      return 0;
    case 1:
      return static_cast<size_t>(random_.between(120, 135));
    case 2:
      return static_cast<size_t>(random_.below(1200));
    default:
      return static_cast<size_t>(random_.below(20));
  }
}

// Always UTF-8, because the Java client, which these are compared with, replaces what is not.
void MessageRandomizer::value(std::string& out) {
  const bool printable = !random_.chance(1, 4);
  const size_t characters = size();
  out.clear();
  for (size_t i = 0; i < characters; ++i) {
    const auto code =
        static_cast<uint32_t>(printable ? random_.between('!', '~') : random_.between(0, 0x7ff));
    if (code >= 0x80) {
      out += static_cast<char>(0xc0 | (code >> 6));
      out += static_cast<char>(0x80 | (code & 0x3f));
    } else {
      out += static_cast<char>(code);
    }
  }
}

Slice MessageRandomizer::slice() {
  std::vector<uint8_t> bytes(size());
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_.next());
  return Slice::take(std::move(bytes));
}

void MessageRandomizer::value(SliceChain& out) {
  for (uint64_t pieces = random_.below(4); pieces > 0; --pieces) out.append(slice());
}

}  // namespace varve::protocol
