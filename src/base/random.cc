#include "base/random.h"

#include <bit>

#include "base/bytes.h"
#include "base/check.h"

namespace varve {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15ull;
    uint64_t mixed = seed;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    word = mixed ^ (mixed >> 31);
  }
}

uint64_t Random::next() {
  uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::below(uint64_t bound) {
  CHECK(bound > 0);
  // Rejection keeps it uniform; at most one draw in two is thrown away.
  uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t value = next();
  while (value >= limit) value = next();
  return value % bound;
}

int64_t Random::between(int64_t low, int64_t high) {
  CHECK(low <= high);
  uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  uint64_t step = span == 0 ? next() : below(span);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + step);
}

Uuid Random::uuid() {
  Uuid id;
  store_be(id.bytes.data(), next());
  store_be(id.bytes.data() + 8, next());
  // Version 4, variant 1 (RFC 4122), as Kafka's random topic ids.
  id.bytes[6] = static_cast<uint8_t>((id.bytes[6] & 0x0f) | 0x40);
  id.bytes[8] = static_cast<uint8_t>((id.bytes[8] & 0x3f) | 0x80);
  return id;
}

}  // namespace varve
