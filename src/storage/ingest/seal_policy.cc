#include "storage/ingest/seal_policy.h"

#include <algorithm>

namespace varve::storage {

MonotonicTime SealPolicy::seal_at(const SealInput& input, UploadCounts uploads, MonotonicTime now) const {
  if (input.batches == 0) return MonotonicTime::never();
  if (is_full(input)) return now;
  // More joins while all slots are busy: fewer and larger objects.
  if (uploads.all >= config_.uploads_max) return MonotonicTime::never();
  size_t moving = uploads.all - uploads.stalled;
  MonotonicTime when = std::min(input.oldest + config_.interval, input.early_oldest + config_.early_interval);
  if (input.early_bytes >= config_.early_bytes_max) when = now;
  if (input.oldest != MonotonicTime::never()) {
    Duration one_credit_at = all_credits_at_.since_zero() - (kCreditsMax - 1) * config_.interval;
    MonotonicTime credit_at(std::max(one_credit_at, Duration(0)));
    bool enough_waits = input.bytes >= config_.bytes_max / 4 && moving <= config_.uploads_max / 4;
    if (moving == 0) {
      when = std::min(when, std::max(credit_at, input.oldest + config_.interval / kLingerDivisor));
    } else if (enough_waits) {
      when = std::min(when, std::max(credit_at, now));
    }
  }
  return std::max(when, now);
}

void SealPolicy::sealed(const SealInput& input, MonotonicTime now) {
  if (is_full(input)) return;
  all_credits_at_ = std::max(all_credits_at_, now) + config_.interval;
}

}  // namespace varve::storage
