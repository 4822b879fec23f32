#include "broker/handlers/throughput.h"

#include <gtest/gtest.h>

namespace varve::broker {
namespace {

TEST(MessageRate, IsTheMeanOverTheWindow) {
  MessageRate rate(10s);
  MonotonicTime now(1000s);
  rate.add(50, now);
  rate.add(50, now + 5s);
  EXPECT_DOUBLE_EQ(rate.per_second(now + 5s), 10);
  EXPECT_DOUBLE_EQ(rate.per_second(now + 9s), 10);
  EXPECT_DOUBLE_EQ(rate.per_second(now + 10s), 5);
  EXPECT_DOUBLE_EQ(rate.per_second(now + 500s), 0);
}

}  // namespace
}  // namespace varve::broker
