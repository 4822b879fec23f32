#include "storage/ingest/seal_policy.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace varve::storage {
namespace {

constexpr MonotonicTime kStart{std::chrono::hours(1)};

SealInput input_of(size_t bytes, MonotonicTime oldest) {
  return {.batches = bytes > 0 ? 1u : 0u, .bytes = bytes, .oldest = oldest};
}

// A broker whose credits are used up at kStart.
SealPolicy busy_policy() {
  SealPolicy policy({});
  for (int i = 0; i < 4; ++i) policy.sealed(input_of(1, kStart), kStart);
  return policy;
}

TEST(SealPolicy, seals_nothing_when_nothing_waits) {
  EXPECT_EQ(SealPolicy({}).seal_at({}, {0}, kStart), MonotonicTime::never());
}

TEST(SealPolicy, seals_soon_on_an_idle_broker) {
  EXPECT_EQ(SealPolicy({}).seal_at(input_of(100, kStart), {0}, kStart), kStart + 5ms);
}

TEST(SealPolicy, seals_at_the_interval_when_an_upload_is_under_way) {
  EXPECT_EQ(SealPolicy({}).seal_at(input_of(100, kStart), {1}, kStart), kStart + 250ms);
}

TEST(SealPolicy, an_upload_that_stalls_does_not_make_the_broker_busy) {
  EXPECT_EQ(SealPolicy({}).seal_at(input_of(100, kStart), {.all = 1, .stalled = 1}, kStart), kStart + 5ms);
  EXPECT_EQ(SealPolicy({}).seal_at(input_of(100, kStart), {.all = 2, .stalled = 1}, kStart), kStart + 250ms);
  EXPECT_EQ(SealPolicy({}).seal_at(input_of(kMiB, kStart), {.all = 5, .stalled = 1}, kStart + 20ms),
            kStart + 20ms);
  EXPECT_EQ(SealPolicy({}).seal_at(input_of(100, kStart), {.all = 16, .stalled = 16}, kStart),
            MonotonicTime::never())
      << "it takes a slot even so";
}

TEST(SealPolicy, seals_a_full_buffer_at_once_even_if_every_slot_is_busy) {
  EXPECT_EQ(busy_policy().seal_at(input_of(4 * kMiB, kStart), {16}, kStart), kStart);
  SealInput many = input_of(1, kStart);
  many.batches = 65'536;
  EXPECT_EQ(busy_policy().seal_at(many, {16}, kStart), kStart);
}

TEST(SealPolicy, waits_for_a_slot_unless_full) {
  EXPECT_EQ(busy_policy().seal_at(input_of(3 * kMiB, kStart), {16}, kStart + 10s), MonotonicTime::never());
}

TEST(SealPolicy, seals_early_when_much_waits_and_few_uploads_are_under_way) {
  SealPolicy policy({});
  EXPECT_EQ(policy.seal_at(input_of(kMiB, kStart), {4}, kStart + 20ms), kStart + 20ms);
  EXPECT_EQ(policy.seal_at(input_of(kMiB - 1, kStart), {4}, kStart + 20ms), kStart + 250ms);
  EXPECT_EQ(policy.seal_at(input_of(kMiB, kStart), {5}, kStart + 20ms), kStart + 250ms);
}

TEST(SealPolicy, early_seals_wait_for_a_credit_but_never_longer_than_the_interval) {
  SealPolicy policy = busy_policy();
  EXPECT_EQ(policy.seal_at(input_of(100, kStart + 100ms), {0}, kStart + 100ms), kStart + 250ms);
}

TEST(SealPolicy, early_acknowledged_batches_have_their_own_interval_and_size) {
  SealPolicy policy({.early_bytes_max = 1000});
  SealInput input{.batches = 1, .bytes = 10, .early_bytes = 10, .early_oldest = kStart};
  EXPECT_EQ(policy.seal_at(input, {0}, kStart), kStart + 500ms);
  input.early_bytes = 1000;
  EXPECT_EQ(policy.seal_at(input, {0}, kStart + 1ms), kStart + 1ms);
}

// Any pattern of small writes, any upload time, whichever of them count as stalled: at most one seal an interval and
// the credits saved up; and nobody waits longer than the interval.
TEST(SealPolicy, seals_at_most_once_an_interval_on_average_and_nobody_waits_longer) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SealPolicy policy({});
    MonotonicTime now = kStart;
    MonotonicTime next_arrival = now;
    std::vector<MonotonicTime> uploads;  // when they end
    Duration upload_time = std::chrono::milliseconds(random.between(1, 600));
    SealInput input;
    size_t seals = 0;
    while (now < kStart + 60s) {
      UploadCounts counts{.all = uploads.size(), .stalled = random.below(uploads.size() + 1)};
      MonotonicTime seal = policy.seal_at(input, counts, now);
      auto end = std::min_element(uploads.begin(), uploads.end());
      MonotonicTime upload_end = end == uploads.end() ? MonotonicTime::never() : *end;
      now = std::min({seal, upload_end, next_arrival});
      if (now == upload_end) {
        uploads.erase(end);
      } else if (now == next_arrival) {
        if (input.batches == 0) input.oldest = now;
        ++input.batches;
        input.bytes += 100;
        next_arrival =
            now + std::chrono::microseconds(random.between(1, random.chance(1, 20) ? 500'000 : 5'000));
      } else {
        ASSERT_LE(now - input.oldest, 250ms);
        policy.sealed(input, now);
        input = {};
        ++seals;
        uploads.push_back(now + upload_time);
      }
    }
    EXPECT_LE(seals, 60'000u / 250 + 4) << "seed " << seed;
    EXPECT_GE(seals, 100u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace varve::storage
