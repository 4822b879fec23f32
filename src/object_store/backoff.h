// Backoff: how long to wait before trying again.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "base/time.h"
#include "runtime/runtime.h"

namespace varve::object_store {

struct BackoffLimits {
  Duration first_max = 50ms;
  Duration pause_max = 5s;
};

// Full jitter: each pause is drawn from zero to a bound that doubles, so that many who failed at once do not come
// back at once. Of one series of tries; the runtime outlives it.
class Backoff {
 public:
  explicit Backoff(runtime::Runtime& runtime, BackoffLimits limits = {})
      : runtime_(&runtime), limits_(limits), bound_(limits.first_max) {}

  Duration next() {
    Duration pause(Random(runtime_->random_seed()).between(0, bound_.count()));
    bound_ = std::min(2 * bound_, limits_.pause_max);
    return pause;
  }

 private:
  runtime::Runtime* runtime_;
  BackoffLimits limits_;
  Duration bound_;
};

}  // namespace varve::object_store
