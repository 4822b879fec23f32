#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "protocol/random/message_ops.h"

namespace varve::protocol {
namespace {

constexpr int kMessagesPerVersion = 100;

TEST(Messages, RandomOnesOfEveryApiAndVersionRoundTrip) {
  size_t messages = 0;
  size_t versions = 0;
  for (const MessageOps* ops : all_messages()) {
    for (int16_t version = ops->min_version; version <= ops->max_version; ++version) {
      Random random(static_cast<uint64_t>(ops->key) * 1000 + static_cast<uint64_t>(version) * 2 +
                    ops->is_request);
      ++versions;
      for (int i = 0; i < kMessagesPerVersion; ++i, ++messages) {
        auto bytes = ops->random_bytes(random, version);
        ASSERT_TRUE(bytes) << ops->name << " version " << version << ": " << bytes.error().message;
        auto again = ops->reencode(*bytes, version, {});
        ASSERT_TRUE(again && *again == *bytes) << ops->name << " version " << version << " is not stable";
      }
    }
  }
  fmt::print("{} messages of {} message versions round tripped\n", messages, versions);
  EXPECT_GE(versions, 2u * 30u);
}

TEST(Messages, NoPrefixOfOneDecodesAsTheWholeMessage) {
  Random random(7);
  for (const MessageOps* ops : all_messages()) {
    for (int16_t version = ops->min_version; version <= ops->max_version; ++version) {
      Slice bytes = *ops->random_bytes(random, version);
      for (size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(ops->reencode(bytes.sub(0, size), version, {}))
            << ops->name << " version " << version << ": " << size << " of " << bytes.size()
            << " bytes decode";
      }
    }
  }
}

TEST(Messages, BytesBehindOneAreIgnoredAsKafkaDoes) {
  Random random(8);
  for (const MessageOps* ops : all_messages()) {
    Slice bytes = *ops->random_bytes(random, ops->max_version);
    std::vector<uint8_t> longer(bytes.view().begin(), bytes.view().end());
    longer.insert(longer.end(), {1, 2, 3});
    EXPECT_TRUE(ops->equal(bytes, Slice::take(longer), ops->max_version)) << ops->name;
  }
}

TEST(Messages, VersionsOutsideTheRangeAreRefused) {
  Random random(9);
  for (const MessageOps* ops : all_messages()) {
    for (int version : {ops->min_version - 1, ops->max_version + 1, INT16_MAX, INT16_MIN}) {
      auto result = ops->reencode(Slice(), static_cast<int16_t>(version), {});
      ASSERT_FALSE(result) << ops->name;
      EXPECT_EQ(result.error().code, CodecErrc::kUnsupportedVersion) << ops->name;
    }
  }
}

TEST(Messages, AnyChangedByteGivesAnErrorOrAMessageThatIsStable) {
  Random random(10);
  size_t decoded = 0;
  size_t refused = 0;
  for (const MessageOps* ops : all_messages()) {
    for (int16_t version = ops->min_version; version <= ops->max_version; ++version) {
      Slice bytes = *ops->random_bytes(random, version);
      for (int i = 0; i < 50 && !bytes.empty(); ++i) {
        std::vector<uint8_t> changed(bytes.view().begin(), bytes.view().end());
        changed[random.below(changed.size())] ^= static_cast<uint8_t>(1 + random.below(255));
        auto once = ops->reencode(Slice::take(changed), version, {});
        if (!once) {
          ++refused;
          continue;
        }
        ++decoded;
        auto twice = ops->reencode(*once, version, {});
        EXPECT_TRUE(twice && *twice == *once) << ops->name << " version " << version;
      }
    }
  }
  EXPECT_GT(decoded, 100u);
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace varve::protocol
