#include "broker/handlers/topic_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(TopicNames, KafkasRulesHold) {
  for (const char* good : {"t", "a.b_c-1", "A", "0", "__consumer_offsets", "_x", "..."}) {
    EXPECT_EQ(topic_name_problem(good), std::nullopt) << good;
  }
  EXPECT_EQ(topic_name_problem(std::string(249, 'a')), std::nullopt);
  EXPECT_NE(topic_name_problem(std::string(250, 'a')), std::nullopt);
  for (const char* bad :
       {"", ".", "..", "bad name!", "a/b", "a:b", "p%20q", "\xc3\xbcn\xc3\xaf", "a\nb", "a b"}) {
    EXPECT_NE(topic_name_problem(bad), std::nullopt) << bad;
  }
  EXPECT_NE(topic_name_problem(std::string_view("a\0b", 3)), std::nullopt);
}

TEST(TopicNames, NamesThatTheObjectStoreUsesAreRefused) {
  for (const char* reserved : {"_wal", "_data", "_log", "manifest.json"}) {
    EXPECT_THAT(topic_name_problem(reserved), Optional(HasSubstr("object store"))) << reserved;
  }
  EXPECT_EQ(topic_name_problem("_wal2"), std::nullopt);
}

TEST(ProduceRules, FollowTheTopicsConfigs) {
  Limits limits;
  limits.batch_bytes_max = 5000;
  metadata::TopicView topic;
  protocol::records::ProduceRules rules = produce_rules(topic, limits);
  EXPECT_EQ(rules.batch_bytes_max, 5000u);
  EXPECT_FALSE(rules.keys_required);
  topic.configs = {{"max.message.bytes", "1000"},
                   {"cleanup.policy", "delete, compact"},
                   {"message.timestamp.type", "LogAppendTime"},
                   {"message.timestamp.before.max.ms", "86400000"},
                   {"message.timestamp.after.max.ms", "60000"}};
  rules = produce_rules(topic, limits);
  EXPECT_EQ(rules.batch_bytes_max, 1000u);
  EXPECT_TRUE(rules.keys_required);
  EXPECT_EQ(rules.timestamp_type, protocol::records::TimestampType::kLogAppendTime);
  EXPECT_EQ(rules.timestamp_before_ms_max, 86'400'000);
  EXPECT_EQ(rules.timestamp_after_ms_max, 60'000);
}

}  // namespace
}  // namespace varve::broker
