// When the ingest buffer becomes an object. Sealing early costs a credit, of which one comes an
// interval, so that small writes cost at most one PUT an interval on average, however they come.
#pragma once

#include <cstddef>

#include "base/limits.h"
#include "base/time.h"

namespace varve::storage {

struct SealPolicyConfig {
  Duration interval = 250ms;        // what waits is sealed at this age
  size_t bytes_max = 4 * kMiB;      // and at this size
  size_t batches_max = 65'536;      // or this number
  size_t uploads_max = 16;          // then it waits for a slot, unless full
  Duration early_interval = 500ms;  // the same for early-acknowledged batches
  size_t early_bytes_max = 4 * kMiB;
};

// What lies in the buffer.
struct SealInput {
  size_t batches = 0;
  size_t bytes = 0;
  size_t early_bytes = 0;                               // early-acknowledged ones
  MonotonicTime oldest = MonotonicTime::never();        // arrival of the oldest batch that a client waits for
  MonotonicTime early_oldest = MonotonicTime::never();  // and of one that none waits for
};

// Under way, or waiting for a slot.
struct UploadCounts {
  size_t all = 0;
  // Of them, those that take unusually long: they hold up nobody but their own batches.
  size_t stalled = 0;
};

// A value; belongs to the buffer, lives on the core.
class SealPolicy {
 public:
  explicit SealPolicy(SealPolicyConfig config) : config_(config) {}

  bool is_full(const SealInput& input) const {
    return input.bytes >= config_.bytes_max || input.batches >= config_.batches_max;
  }
  // When to seal if nothing else arrives; never() if that needs an arrival or the end of an upload.
  MonotonicTime seal_at(const SealInput& input, UploadCounts uploads, MonotonicTime now) const;
  // To be told of each seal, before the buffer is emptied.
  void sealed(const SealInput& input, MonotonicTime now);

 private:
  // Credits that an idle time can save up.
  static constexpr int kCreditsMax = 4;
  // An idle broker waits this part of the interval for company before it seals.
  static constexpr int kLingerDivisor = 50;

  SealPolicyConfig config_;
  // When all credits will have been saved up again; one is missing for each interval until then.
  MonotonicTime all_credits_at_;
};

}  // namespace varve::storage
