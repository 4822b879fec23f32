// A small seeded generator (xoshiro256**, seeded through SplitMix64). Not for secrets; nonces and topic ids of a
// real broker are drawn from one seeded by the operating system.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace varve {

class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t next();
  // Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound);
  // Uniform in [low, high].
  int64_t between(int64_t low, int64_t high);
  // True with probability numerator / denominator.
  bool chance(uint64_t numerator, uint64_t denominator) { return below(denominator) < numerator; }
  Uuid uuid();
  // A generator whose stream is independent of what this one gives next.
  Random fork() { return Random(next()); }

  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return UINT64_MAX; }
  uint64_t operator()() { return next(); }

 private:
  uint64_t state_[4];
};

}  // namespace varve
