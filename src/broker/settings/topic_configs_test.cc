#include "broker/settings/topic_configs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

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

TEST(TopicConfigs, WhatAsksForMoreThanIsDoneYetIsTold) {
  EXPECT_THAT(topic_configs_without_effect({{"retention.ms", "1000"},
                                            {"cleanup.policy", "compact"},
                                            {"max.message.bytes", "1000"},
                                            {"flush.ms", "1"},
                                            {"retention.bytes", "-1"}}),
              ElementsAre("cleanup.policy=compact", "retention.ms=1000"));
  EXPECT_THAT(topic_configs_without_effect({{"retention.ms", "-1"}, {"retention.bytes", "-7"}}), IsEmpty());
  for (const TopicConfigRow& row : topic_config_table()) {
    EXPECT_THAT(topic_configs_without_effect({{std::string(row.name), std::string(row.default_text)}}),
                IsEmpty())
        << row.name;
  }
}

TEST(TopicConfigs, NothingThatWaitsForItsMechanismIsRefused) {
  for (const TopicConfigRow& row : topic_config_table()) {
    if (!row.refused_unless_default.empty()) EXPECT_EQ(row.effect, ConfigEffect::kByDesign) << row.name;
  }
}

}  // namespace
}  // namespace varve::broker
