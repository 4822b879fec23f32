#include "base/crc32c.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace varve {
namespace {

TEST(Crc32c, PatchedEqualsComputedAnew) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<uint8_t> bytes(1 + random.below(3000));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    size_t at = random.below(bytes.size());
    size_t size = 1 + random.below(std::min<size_t>(bytes.size() - at, 40));
    uint32_t before = crc32c(bytes);
    std::vector<uint8_t> difference(size);
    for (size_t i = 0; i < size; ++i) {
      difference[i] = static_cast<uint8_t>(random.next());
      bytes[at + i] ^= difference[i];
    }
    EXPECT_EQ(crc32c_patch(before, difference, bytes.size() - at - size), crc32c(bytes));
  }
}

}  // namespace
}  // namespace varve
