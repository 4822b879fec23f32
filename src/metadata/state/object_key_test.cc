#include "metadata/state/object_key.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

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

TEST(ObjectKey, TheGoldenOnesAreReadAndWrittenAndThePageShowsOne) {
  std::ifstream page("docs/formats/keys.md");
  std::stringstream page_text;
  page_text << page.rdbuf();
  std::ifstream golden("src/metadata/state/golden/keys_v1.txt");
  std::string key;
  std::string prefix;
  std::string log_id;
  std::string nonce;
  uint64_t epoch = 0;
  uint64_t number = 0;
  size_t lines = 0;
  while (golden >> key >> prefix >> log_id >> nonce >> epoch >> number) {
    WalObjectName name;
    for (size_t i = 0; i < name.log_id.bytes.size(); ++i)
      name.log_id.bytes[i] = static_cast<uint8_t>(std::stoul(log_id.substr(2 * i, 2), nullptr, 16));
    name.nonce = Nonce(std::stoull(nonce, nullptr, 16));
    name.epoch = FenceEpoch(epoch);
    name.number = ObjectNumber(number);
    EXPECT_EQ(wal_key(prefix, name), key);
    EXPECT_EQ(parse_wal_key(prefix, key), name);
    if (lines++ == 0) EXPECT_NE(page_text.str().find("```\n" + key + "\n```"), std::string::npos);
  }
  EXPECT_EQ(lines, 3u);
}

}  // namespace
}  // namespace varve::metadata
