#include "base/hash.h"

#include <xxhash.h>

namespace varve {

uint64_t hash64(ByteView bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t rendezvous_weight(uint64_t key, uint64_t candidate) {
  uint8_t both[16];
  store_be(both, key);
  store_be(both + 8, candidate);
  return hash64(ByteView(both));
}

}  // namespace varve
