#include "broker/group/subscription.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using namespace std::string_literals;

TEST(Subscription, TopicsOfAnyVersionAreRead) {
  EXPECT_THAT(read_subscribed_topics("\0\0\0\0\0\2\0\1t\0\2uv\xFF\xFF\xFF\xFF"s),
              Optional(ElementsAre("t", "uv")));
  EXPECT_THAT(read_subscribed_topics("\0\3\0\0\0\1\0\0 and more"s), Optional(ElementsAre("")));
  EXPECT_THAT(read_subscribed_topics("\0\1\0\0\0\0"s), Optional(ElementsAre()));
}

TEST(Subscription, GarbageIsNone) {
  for (const std::string& bytes :
       {""s, "\0"s, "\0\0"s, "\0\0\0\0\0"s, "\0\0\0\0\0\1"s, "\0\0\0\0\0\1\0\5t"s, "\xFF\xFF\0\0\0\0"s,
        "\0\0\xFF\xFF\xFF\xFF"s, "\0\0\0\0\0\1\xFF\xFFt"s, "\0\0\x7F\xFF\xFF\xFF"s}) {
    EXPECT_EQ(read_subscribed_topics(bytes), std::nullopt);
  }
}

}  // namespace
}  // namespace varve::broker
