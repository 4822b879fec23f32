// Configs of topics that steer what varve has not, or holds anyway: taken, kept, told and marked; and what a compacted
// topic does until there is compaction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "broker/produce_testing.h"
#include "broker/settings/settings.h"
#include "protocol/messages/describe_configs.h"
#include "protocol/messages/incremental_alter_configs.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using runtime::Task;
using sim::make_batch;
using sim::RawClient;
using ::testing::AnyOf;

constexpr int8_t kTopic = 2;

struct Kept {
  std::string name;
  std::string value;  // other than the default
  std::string bad;
};

// As issued for Apache Kafka: min.insync.replicas, flush.*, segment.*, index.*, unclean.leader.election.enable,
// preallocate, file.delete.delay.ms.
const std::vector<Kept> kKept = {
    {"min.insync.replicas", "2", "0"},
    {"flush.messages", "7", "0"},
    {"flush.ms", "8", "-1"},
    {"segment.bytes", "2097152", "13"},
    {"segment.ms", "9", "0"},
    {"segment.jitter.ms", "10", "-1"},
    {"segment.index.bytes", "12", "3"},
    {"index.interval.bytes", "13", "-1"},
    {"unclean.leader.election.enable", "true", "maybe"},
    {"preallocate", "true", "1"},
    {"file.delete.delay.ms", "14", "-1"},
};

class KeptConfigsTest : public ProduceTest {
 protected:
  static Task<ErrorCode> set(RawClient& client, std::string name, std::string value) {
    protocol::IncrementalAlterConfigsRequest request;
    auto& resource = request.resources.emplace_back();
    resource.resource_type = kTopic;
    resource.resource_name = "t";
    auto& config = resource.configs.emplace_back();
    config.name = std::move(name);
    config.value = std::move(value);
    co_return (co_await client.ask(request, 1)).responses.at(0).error_code;
  }
  // The value that is set on the topic.
  static Task<std::optional<std::string>> told(RawClient& client, std::string name) {
    protocol::DescribeConfigsRequest request;
    auto& resource = request.resources.emplace_back();
    resource.resource_type = kTopic;
    resource.resource_name = "t";
    resource.configuration_keys = {name};
    auto reply = co_await client.ask(request, 4);
    const auto& config = reply.results.at(0).configs.at(0);
    constexpr int8_t kSetOnTopic = 1;
    co_return config.config_source == kSetOnTopic ? config.value : std::nullopt;
  }
  // What the printed page says of its effect.
  static std::string mark_of(const std::string& name) {
    std::istringstream page(configuration_page());
    for (std::string line; std::getline(page, line);) {
      if (!line.starts_with("| `" + name + "` |")) continue;
      for (const char* mark : {"by design", "not yet"}) {
        if (line.contains("| " + std::string(mark) + " |")) return mark;
      }
      return "no mark";
    }
    return "not on the page";
  }
};

TEST_F(KeptConfigsTest, WhatHoldsByDesignOrHasNoMechanismIsCheckedKeptToldAndMarked) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    std::vector<std::pair<std::string, std::string>> first;
    for (const Kept& kept : kKept) first.emplace_back(kept.name, kept.value);
    co_await create(client, "t", 1, first);
    for (const Kept& kept : kKept) {
      EXPECT_EQ(co_await told(client, kept.name), kept.value) << kept.name;
      EXPECT_EQ(co_await set(client, kept.name, kept.bad), ErrorCode::kInvalidConfig) << kept.name;
      EXPECT_THAT(mark_of(kept.name), AnyOf("by design", "not yet")) << kept.name;
    }
    for (const Kept& kept : kKept) {
      bool is_flag = kept.value == "true";
      std::string other = is_flag ? "false" : kept.value + "0";
      EXPECT_EQ(co_await set(client, kept.name, other), ErrorCode::kNone) << kept.name;
      EXPECT_EQ(co_await told(client, kept.name), other) << kept.name;
    }
  });
}

TEST_F(KeptConfigsTest, ACompactedTopicIsTakenAsksForKeysAndKeepsEverything) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 1,
                    {{"cleanup.policy", "compact"},
                     {"min.cleanable.dirty.ratio", "0.0"},
                     {"max.compaction.lag.ms", "1"},
                     {"delete.retention.ms", "0"},
                     {"segment.ms", "1"}});
    // One key throughout, and at the end a tombstone.
    for (const char* value : {"first", "second", "third"}) {
      EXPECT_EQ((co_await produce(client, "t", make_batch(value))).error_code, ErrorCode::kNone);
    }
    sim::BatchSpec tombstone;
    tombstone.null_values = true;
    EXPECT_EQ((co_await produce(client, "t", make_batch(tombstone))).error_code, ErrorCode::kNone);
    sim::BatchSpec keyless;
    keyless.null_keys = {true};
    EXPECT_EQ((co_await produce(client, "t", make_batch(keyless))).error_code, ErrorCode::kInvalidRecord);
    Slice before = co_await stored(client, "t");
    EXPECT_EQ(records_of(before), 4u);
    co_await runtime::sleep_for(std::chrono::hours(1));
    RawClient later = co_await connect();
    Slice after = co_await stored(later, "t");
    EXPECT_TRUE(std::ranges::equal(before.view(), after.view()));
  });
}

}  // namespace
}  // namespace varve::broker
