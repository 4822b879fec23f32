// Stillness: whether records still come in, though all who wait for an answer have it.
#pragma once

#include "base/time.h"
#include "metadata/state/state.h"

namespace varve::sim {

// What nobody waits for (acks=0, early acknowledgements, late requests) is stored when its turn comes: a connection may
// hold a long line of it.
class Stillness {
 public:
  explicit Stillness(Duration span) : span_(span) {}

  // Whether nothing has come into any partition for the span, by states that were looked at often enough.
  bool is_reached(const metadata::State& state, MonotonicTime now);

 private:
  const Duration span_;
  LogPosition position_;
  uint64_t records_ = UINT64_MAX;
  MonotonicTime since_;
};

}  // namespace varve::sim
