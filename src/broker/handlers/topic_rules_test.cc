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

TEST(TopicConfigs, EveryDefaultIsAllowed) {
  for (const TopicConfigRow& row : topic_config_table()) {
    EXPECT_EQ(topic_config_problem(row.name, row.default_text), std::nullopt) << row.name;
  }
}

TEST(TopicConfigs, TheTableIsSortedAndHasAllOfKafkas) {
  const auto& table = topic_config_table();
  EXPECT_TRUE(std::ranges::is_sorted(table, {}, &TopicConfigRow::name));
  // 33 of Apache Kafka 4.4's, and diskless.enable.
  EXPECT_EQ(table.size(), 34u);
}

TEST(TopicConfigs, UnknownNamesAndBadValuesAreNamed) {
  EXPECT_THAT(topic_config_problem("foo.bar", "1"), Optional(HasSubstr("foo.bar")));
  EXPECT_THAT(topic_config_problem("retention.ms", "abc"), Optional(HasSubstr("retention.ms=abc")));
  struct Case {
    const char* name;
    const char* value;
  };
  for (Case bad :
       {Case{"retention.ms", "-2"}, Case{"retention.ms", ""}, Case{"retention.ms", "1.5"},
        Case{"retention.ms", "99999999999999999999"}, Case{"max.message.bytes", "-1"},
        Case{"max.message.bytes", "2147483648"}, Case{"segment.bytes", "13"}, Case{"cleanup.policy", "shred"},
        Case{"cleanup.policy", ""}, Case{"cleanup.policy", "compact,x"}, Case{"compression.type", "brotli"},
        Case{"message.timestamp.type", "logappendtime"}, Case{"min.cleanable.dirty.ratio", "1.1"},
        Case{"min.cleanable.dirty.ratio", "nan"}, Case{"preallocate", "yes"},
        Case{"min.insync.replicas", "0"}, Case{"leader.replication.throttled.replicas", "1-2"}}) {
    EXPECT_NE(topic_config_problem(bad.name, bad.value), std::nullopt) << bad.name << "=" << bad.value;
  }
  for (Case good :
       {Case{"retention.ms", "-1"}, Case{"retention.bytes", "-5"}, Case{"cleanup.policy", "compact"},
        Case{"cleanup.policy", "compact, delete"}, Case{"preallocate", "TRUE"},
        Case{"min.cleanable.dirty.ratio", "0.01"}, Case{"leader.replication.throttled.replicas", "*"},
        Case{"follower.replication.throttled.replicas", "0:1,1:2"}, Case{"min.insync.replicas", "2"}}) {
    EXPECT_EQ(topic_config_problem(good.name, good.value), std::nullopt) << good.name << "=" << good.value;
  }
}

TEST(TopicConfigs, WhatWouldPromiseSomethingNotKeptIsRefused) {
  EXPECT_THAT(topic_config_problem("remote.storage.enable", "true"), Optional(HasSubstr("cannot be kept")));
  EXPECT_THAT(topic_config_problem("diskless.enable", "false"), Optional(HasSubstr("cannot be kept")));
  EXPECT_EQ(topic_config_problem("remote.storage.enable", "False"), std::nullopt);
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
