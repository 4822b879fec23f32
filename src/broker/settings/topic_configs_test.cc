#include "broker/settings/topic_configs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "" if the value can be set.
std::string problem_of(std::string_view name, std::string_view value) {
  auto read = read_topic_config(name, value);
  return read ? "" : read.error();
}

TEST(TopicConfigs, EveryDefaultIsAllowed) {
  for (const TopicConfigRow& row : topic_config_table()) {
    EXPECT_EQ(read_topic_config(row.name, row.default_text), row.default_text) << row.name;
    EXPECT_NE(row.help, "") << row.name;
  }
}

TEST(TopicConfigs, TheTableIsSortedAndHasAllOfKafkas) {
  const auto& table = topic_config_table();
  EXPECT_TRUE(std::ranges::is_sorted(table, {}, &TopicConfigRow::name));
  // 37 of Apache Kafka 4.4's, and diskless.enable.
  EXPECT_EQ(table.size(), 38u);
}

TEST(TopicConfigs, UnknownNamesAndBadValuesAreNamed) {
  EXPECT_THAT(problem_of("foo.bar", "1"), HasSubstr("foo.bar"));
  EXPECT_THAT(problem_of("retention.ms", "abc"), HasSubstr("retention.ms=abc"));
  struct Case {
    const char* name;
    const char* value;
  };
  for (Case bad : {Case{"retention.ms", "-2"},
                   Case{"retention.ms", ""},
                   Case{"retention.ms", "1.5"},
                   Case{"retention.ms", "99999999999999999999"},
                   Case{"max.message.bytes", "-1"},
                   Case{"max.message.bytes", "2147483648"},
                   Case{"segment.bytes", "13"},
                   Case{"cleanup.policy", "shred"},
                   Case{"cleanup.policy", "compact,"},
                   Case{"cleanup.policy", "compact,x"},
                   Case{"compression.type", "brotli"},
                   Case{"message.timestamp.type", "logappendtime"},
                   Case{"min.cleanable.dirty.ratio", "1.1"},
                   Case{"min.cleanable.dirty.ratio", "nan"},
                   Case{"preallocate", "yes"},
                   Case{"min.insync.replicas", "0"},
                   Case{"leader.replication.throttled.replicas", "1-2"},
                   Case{"leader.replication.throttled.replicas", "*,1:2"},
                   Case{"leader.replication.throttled.replicas", "none"},
                   Case{"compression.gzip.level", "0"},
                   Case{"max.decompressed.message.bytes", "2147483640"}}) {
    EXPECT_NE(problem_of(bad.name, bad.value), "") << bad.name << "=" << bad.value;
  }
  for (Case good :
       {Case{"retention.ms", "-1"}, Case{"retention.bytes", "-5"}, Case{"cleanup.policy", "compact"},
        Case{"cleanup.policy", "compact, delete"}, Case{"preallocate", "TRUE"}, Case{"cleanup.policy", ""},
        Case{"cleanup.policy", "compact,compact"}, Case{"compression.gzip.level", "-1"},
        Case{"remote.log.copy.disable", "true"}, Case{"min.cleanable.dirty.ratio", "0.01"},
        Case{"leader.replication.throttled.replicas", "*"},
        Case{"follower.replication.throttled.replicas", "0:1,1:2"}, Case{"min.insync.replicas", "2"}}) {
    EXPECT_EQ(problem_of(good.name, good.value), "") << good.name << "=" << good.value;
  }
}

TEST(TopicConfigs, ValuesAreKeptAsKafkaPrintsWhatItHasParsed) {
  EXPECT_EQ(read_topic_config("retention.ms", " +12 "), "12");
  EXPECT_EQ(read_topic_config("preallocate", " TRUE"), "true");
  EXPECT_EQ(read_topic_config("min.cleanable.dirty.ratio", "0.50f"), "0.5");
  EXPECT_EQ(read_topic_config("min.cleanable.dirty.ratio", "1"), "1.0");
  EXPECT_EQ(read_topic_config("cleanup.policy", "compact , delete"), "compact,delete");
  EXPECT_EQ(read_topic_config("message.timestamp.type", " LogAppendTime "), "LogAppendTime");
}

TEST(TopicConfigs, SettingsThatContradictEachOtherAreRefused) {
  auto both = read_topic_configs({{"min.compaction.lag.ms", "10"}, {"max.compaction.lag.ms", "5"}});
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error(), HasSubstr("min.compaction.lag.ms=10 is above max.compaction.lag.ms=5"));
  EXPECT_TRUE(read_topic_configs({{"min.compaction.lag.ms", "5"}, {"max.compaction.lag.ms", "5"}}));
  EXPECT_FALSE(read_topic_configs({{"retention.ms", "1"}, {"flush.ms", "x"}}));
}

TEST(TopicConfigs, WhatWouldPromiseSomethingNotKeptIsRefused) {
  EXPECT_THAT(problem_of("remote.storage.enable", "true"), HasSubstr("cannot be kept"));
  EXPECT_THAT(problem_of("diskless.enable", "false"), HasSubstr("cannot be kept"));
  EXPECT_EQ(problem_of("remote.storage.enable", "False"), "");
}

TEST(TopicConfigs, WhatAsksForMoreThanIsDoneYetIsTold) {
  EXPECT_THAT(topic_configs_without_effect({{"retention.ms", "1000"},
                                            {"cleanup.policy", "compact"},
                                            {"max.message.bytes", "1000"},
                                            {"flush.ms", "1"},
                                            {"retention.bytes", "-1"}}),
              ElementsAre("cleanup.policy=compact", "retention.ms=1000"));
  EXPECT_THAT(topic_configs_without_effect(
                  {{"retention.ms", "-1"}, {"retention.bytes", "-7"}, {"cleanup.policy", ""}}),
              IsEmpty());
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
