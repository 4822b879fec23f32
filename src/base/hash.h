// Hashes that mean the same on every machine and in every release: state hashes, rendezvous hashing, cache
// keys.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace varve {

// XXH3, 64 bits, over the bytes. Not for secrets, and no defence against chosen collisions.
uint64_t hash64(ByteView bytes, uint64_t seed = 0);
inline uint64_t hash64(std::string_view text, uint64_t seed = 0) { return hash64(as_bytes(text), seed); }

// Rendezvous (highest random weight) hashing with integers only: the owner of `key` is the candidate with the
// highest weight; adding or removing a candidate moves only the keys that it wins or held.
uint64_t rendezvous_weight(uint64_t key, uint64_t candidate);

// The owner among `candidates` (ids with value(), in any order): an iterator, or end() of an empty range.
// Equal weights fall to the smaller id, so every broker gives the same answer.
template <class Range>
auto rendezvous_owner(uint64_t key, const Range& candidates) {
  auto best = candidates.end();
  uint64_t best_weight = 0;
  for (auto at = candidates.begin(); at != candidates.end(); ++at) {
    uint64_t weight = rendezvous_weight(key, static_cast<uint64_t>((*at).value()));
    if (best == candidates.end() || weight > best_weight || (weight == best_weight && *at < *best)) {
      best = at;
      best_weight = weight;
    }
  }
  return best;
}

}  // namespace varve
