#include "base/limits.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(Limits, ExpansionIsBoundedByRatioAboveTheFreePartAndByTheWhole) {
  constexpr Limits limits;
  EXPECT_EQ(limits.decompressed_bytes_max(0), 16 * kMiB);
  EXPECT_EQ(limits.decompressed_bytes_max(1000), 16 * kMiB);
  EXPECT_EQ(limits.decompressed_bytes_max(kMiB), 200 * kMiB);
  EXPECT_EQ(limits.decompressed_bytes_max(100 * kMiB), 256 * kMiB);
  EXPECT_EQ(limits.decompressed_bytes_max(SIZE_MAX), 256 * kMiB);
}

TEST(Limits, TinyStaysBelowTheDefaults) {
  constexpr Limits tiny = Limits::tiny();
  constexpr Limits normal;
  EXPECT_LT(tiny.frame_bytes_max, normal.frame_bytes_max);
  EXPECT_LT(tiny.batch_bytes_max, tiny.ingest_buffer_bytes_max);
  EXPECT_LT(tiny.ingest_buffer_bytes_max, tiny.ingest_memory_bytes_max);
  EXPECT_LE(tiny.decompressed_bytes_max(SIZE_MAX), 64 * kKiB);
}

}  // namespace
}  // namespace varve
