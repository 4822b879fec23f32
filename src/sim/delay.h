// How long something takes in the simulated world.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/time.h"

namespace varve::sim {

// Uniform in [low, high], but `slow_per_mille` of the draws are in [high, slow_high]: the tail that real disks
// and networks have.
struct Delay {
  Duration low = 20us;
  Duration high = 1ms;
  uint32_t slow_per_mille = 5;
  Duration slow_high = 200ms;

  Duration draw(Random& random) const {
    bool is_slow = slow_per_mille > 0 && random.chance(slow_per_mille, 1000);
    Duration from = is_slow ? high : low;
    Duration to = is_slow ? slow_high : high;
    return Duration(random.between(from.count(), to.count()));
  }
};

}  // namespace varve::sim
