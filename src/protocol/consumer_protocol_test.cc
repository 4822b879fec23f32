#include "protocol/consumer_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using namespace std::string_literals;

std::optional<std::vector<std::string>> topics_of(const std::string& subscription) {
  auto head = read_subscription_head(as_bytes(subscription));
  if (!head) return std::nullopt;
  return head->topics;
}

TEST(Subscription, TopicsOfAnyVersionAreRead) {
  EXPECT_THAT(topics_of("\0\0\0\0\0\2\0\1t\0\2uv\xFF\xFF\xFF\xFF"s), Optional(ElementsAre("t", "uv")));
  EXPECT_THAT(topics_of("\0\3\0\0\0\1\0\0 and more"s), Optional(ElementsAre("")));
  EXPECT_THAT(topics_of("\0\1\0\0\0\0"s), Optional(ElementsAre()));
}

TEST(Subscription, TheHeadEndsWhereTheRestOfItsVersionBegins) {
  auto head = read_subscription_head(as_bytes("\0\3\0\0\0\1\0\2uv\xFF\xFF\xFF\xFF"s));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->version, 3);
  EXPECT_EQ(head->bytes, 10u);
}

TEST(Subscription, GarbageIsNone) {
  for (const std::string& bytes :
       {""s, "\0"s, "\0\0"s, "\0\0\0\0\0"s, "\0\0\0\0\0\1"s, "\0\0\0\0\0\1\0\5t"s, "\xFF\xFF\0\0\0\0"s,
        "\0\0\xFF\xFF\xFF\xFF"s, "\0\0\0\0\0\1\xFF\xFFt"s, "\0\0\x7F\xFF\xFF\xFF"s}) {
    EXPECT_EQ(topics_of(bytes), std::nullopt);
  }
}

}  // namespace
}  // namespace varve::protocol
