#include "metadata/state/object_key.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace varve::metadata {
namespace {

TEST(ObjectKey, WalKeysRoundTripAndOthersAreNotOurs) {
  Random random(7);
  WalObjectName name{random.uuid(), Nonce(random.next()), FenceEpoch(3), ObjectNumber(12)};
  std::string key = wal_key("default", name);
  EXPECT_TRUE(key.starts_with("default/_wal/"));
  ASSERT_TRUE(parse_wal_key("default", key).has_value());
  EXPECT_EQ(*parse_wal_key("default", key), name);
  EXPECT_FALSE(parse_wal_key("other", key).has_value());
  EXPECT_FALSE(parse_wal_key("default", key + "x").has_value());
  std::string wrong_spread = key;
  wrong_spread[13] = wrong_spread[13] == '0' ? '1' : '0';
  EXPECT_FALSE(parse_wal_key("default", wrong_spread).has_value());
  for (size_t i = 0; i < key.size(); ++i) {
    std::string damaged = key;
    damaged[i] = 'Z';
    EXPECT_FALSE(parse_wal_key("default", damaged).has_value()) << i;
  }
}

}  // namespace
}  // namespace varve::metadata
