// AlterConfigs and IncrementalAlterConfigs: what is changed, what is refused, and that changes are in force at once.
#include "protocol/messages/alter_configs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ranges>
#include <set>

#include "broker/handlers/config_alteration.h"
#include "broker/produce_testing.h"
#include "protocol/messages/describe_configs.h"
#include "protocol/messages/incremental_alter_configs.h"

namespace varve::broker {
namespace {

using protocol::AlterConfigsRequest;
using protocol::ErrorCode;
using protocol::IncrementalAlterConfigsRequest;
using runtime::Task;
using sim::make_batch;
using sim::RawClient;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int8_t kTopic = 2;
constexpr int8_t kBroker = 4;
constexpr int8_t kLogger = 8;
constexpr int8_t kClientMetrics = 16;
constexpr int8_t kGroup = 32;
constexpr int8_t kSet = 0;
constexpr int8_t kDelete = 1;
constexpr int8_t kAppend = 2;
constexpr int8_t kSubtract = 3;

struct Edit {
  int8_t operation;
  std::string name;
  std::optional<std::string> value;
};

class AlterConfigsTest : public ProduceTest {
 protected:
  template <class Request>
  static auto& add_resource(Request& request, int8_t type, std::string name) {
    auto& resource = request.resources.emplace_back();
    resource.resource_type = type;
    resource.resource_name = std::move(name);
    return resource;
  }
  static void add(IncrementalAlterConfigsRequest& request, int8_t type, std::string name,
                  std::vector<Edit> edits) {
    auto& resource = add_resource(request, type, std::move(name));
    for (Edit& edit : edits) {
      auto& config = resource.configs.emplace_back();
      config.name = std::move(edit.name);
      config.config_operation = edit.operation;
      config.value = std::move(edit.value);
    }
  }
  static void add(AlterConfigsRequest& request, int8_t type, std::string name, std::vector<Edit> edits) {
    auto& resource = add_resource(request, type, std::move(name));
    for (Edit& edit : edits) {
      auto& config = resource.configs.emplace_back();
      config.name = std::move(edit.name);
      config.value = std::move(edit.value);
    }
  }
  template <class Request>
  static Task<std::vector<ErrorCode>> codes_of(RawClient& client, Request request,
                                               int16_t version = Request::kMaxVersion) {
    auto reply = co_await client.ask(request, version);
    EXPECT_EQ(reply.responses.size(), request.resources.size());
    std::vector<ErrorCode> codes;
    for (size_t i = 0; i < reply.responses.size(); ++i) {
      const auto& row = reply.responses[i];
      EXPECT_EQ(row.resource_name, request.resources.at(i).resource_name);
      EXPECT_EQ(row.resource_type, request.resources.at(i).resource_type);
      bool is_explained =
          row.error_code != ErrorCode::kNone && row.error_code != ErrorCode::kUnknownServerError;
      EXPECT_EQ(row.error_message.has_value(), is_explained);
      codes.push_back(row.error_code);
    }
    co_return codes;
  }
  // One resource with IncrementalAlterConfigs.
  static Task<ErrorCode> alter(RawClient& client, int8_t type, std::string name, std::vector<Edit> edits) {
    IncrementalAlterConfigsRequest request;
    add(request, type, std::move(name), std::move(edits));
    co_return (co_await codes_of(client, std::move(request))).at(0);
  }
  static Task<ErrorCode> alter(RawClient& client, std::vector<Edit> edits) {
    return alter(client, kTopic, "t", std::move(edits));
  }
  // Of a request that was posted, with one resource.
  static Task<ErrorCode> code_of(RawClient& client, int32_t id) {
    auto reply = co_await client.expect<IncrementalAlterConfigsRequest>(id, 1);
    co_return reply ? reply->responses.at(0).error_code : ErrorCode::kNetworkException;
  }
  // What is set on the topic.
  static Task<TopicConfigs> set_on(RawClient& client, std::string topic) {
    protocol::DescribeConfigsRequest request;
    auto& resource = request.resources.emplace_back();
    resource.resource_type = kTopic;
    resource.resource_name = topic;
    auto reply = co_await client.ask(request, 4);
    TopicConfigs configs;
    for (const auto& config : reply.results.at(0).configs) {
      if (config.config_source == 1) configs[config.name] = *config.value;
    }
    co_return configs;
  }
};

TEST_F(AlterConfigsTest, IncrementalChangesLeaveTheRestAndFullOnesReplaceIt) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect(0);
    RawClient other = co_await connect(1);
    co_await create(client, "t", 1, {{"retention.ms", "5"}, {"flush.ms", "6"}});
    EXPECT_EQ(co_await alter(client, {{kSet, "retention.ms", "7"}, {kSet, "segment.ms", "8"}}),
              ErrorCode::kNone);
    TopicConfigs after = {{"retention.ms", "7"}, {"flush.ms", "6"}, {"segment.ms", "8"}};
    EXPECT_EQ(co_await set_on(other, "t"), after);
    EXPECT_EQ(co_await alter(client, {{kDelete, "flush.ms", std::nullopt}, {kDelete, "nope", std::nullopt}}),
              ErrorCode::kNone);
    after.erase("flush.ms");
    EXPECT_EQ(co_await set_on(other, "t"), after);
    for (int16_t version = AlterConfigsRequest::kMinVersion; version <= AlterConfigsRequest::kMaxVersion;
         ++version) {
      AlterConfigsRequest full;
      add(full, kTopic, "t", {{kSet, "retention.ms", std::to_string(version)}});
      EXPECT_THAT(co_await codes_of(client, full, version), ElementsAre(ErrorCode::kNone));
      EXPECT_EQ(co_await set_on(other, "t"), (TopicConfigs{{"retention.ms", std::to_string(version)}}));
    }
    AlterConfigsRequest none;
    add(none, kTopic, "t", {});
    EXPECT_THAT(co_await codes_of(client, none), ElementsAre(ErrorCode::kNone));
    EXPECT_THAT(co_await set_on(other, "t"), IsEmpty());
    IncrementalAlterConfigsRequest old;
    add(old, kTopic, "t", {{kSet, "retention.ms", "9"}});
    EXPECT_THAT(co_await codes_of(client, old, 0), ElementsAre(ErrorCode::kNone));
  });
}

TEST_F(AlterConfigsTest, ListsGrowAndShrinkItemByItem) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto policy = [&]() -> Task<std::string> {
      TopicConfigs configs = co_await set_on(client, "t");
      co_return configs.contains("cleanup.policy") ? configs.at("cleanup.policy") : "(default)";
    };
    EXPECT_EQ(co_await alter(client, {{kAppend, "cleanup.policy", "delete"}}), ErrorCode::kNone);
    EXPECT_EQ(co_await policy(), "delete");
    EXPECT_EQ(co_await alter(client, {{kAppend, "cleanup.policy", "compact"}}), ErrorCode::kNone);
    EXPECT_EQ(co_await policy(), "delete,compact");
    EXPECT_EQ(co_await alter(client, {{kSubtract, "cleanup.policy", "delete"}}), ErrorCode::kNone);
    EXPECT_EQ(co_await policy(), "compact");
    EXPECT_EQ(co_await alter(client, {{kSubtract, "cleanup.policy", "compact"}}), ErrorCode::kNone);
    EXPECT_EQ(co_await policy(), "");
    EXPECT_EQ(co_await alter(client, {{kAppend, "leader.replication.throttled.replicas", "0:1,1:1"}}),
              ErrorCode::kNone);
    EXPECT_EQ((co_await set_on(client, "t")).at("leader.replication.throttled.replicas"), "0:1,1:1");
    EXPECT_EQ(co_await alter(client, {{kAppend, "cleanup.policy", "shred"}}), ErrorCode::kInvalidConfig);
    for (int8_t operation : {kAppend, kSubtract}) {
      EXPECT_EQ(co_await alter(client, {{operation, "retention.ms", "1"}}), ErrorCode::kInvalidConfig);
      EXPECT_EQ(co_await alter(client, {{operation, "nope", "1"}}), ErrorCode::kInvalidConfig);
    }
    EXPECT_EQ(co_await policy(), "");
  });
}

TEST_F(AlterConfigsTest, AResourceIsChangedWholeOrNotAtAll) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await create(client, "u");
    IncrementalAlterConfigsRequest request;
    add(request, kTopic, "t", {{kSet, "retention.ms", "9"}, {kSet, "nope", "1"}});
    add(request, kTopic, "u", {{kSet, "retention.ms", "9"}});
    EXPECT_THAT(co_await codes_of(client, request), ElementsAre(ErrorCode::kInvalidConfig, ErrorCode::kNone));
    EXPECT_THAT(co_await set_on(client, "t"), IsEmpty());
    EXPECT_EQ(co_await set_on(client, "u"), (TopicConfigs{{"retention.ms", "9"}}));
    // A value that contradicts one set before.
    EXPECT_EQ(co_await alter(client, {{kSet, "max.compaction.lag.ms", "5"}}), ErrorCode::kNone);
    EXPECT_EQ(co_await alter(client, {{kSet, "min.compaction.lag.ms", "6"}}), ErrorCode::kInvalidConfig);
    EXPECT_EQ(co_await alter(client,
                             {{kSet, "min.compaction.lag.ms", "6"}, {kDelete, "max.compaction.lag.ms", "x"}}),
              ErrorCode::kNone);
  });
}

TEST_F(AlterConfigsTest, ValidateOnlyChecksAsMuchAndChangesNothing) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    IncrementalAlterConfigsRequest request;
    request.validate_only = true;
    add(request, kTopic, "t", {{kSet, "retention.ms", "9"}});
    add(request, kTopic, "nope", {{kSet, "retention.ms", "9"}});
    add(request, kLogger, "0", {{kSet, "root", "DEBUG"}});
    EXPECT_THAT(co_await codes_of(client, request),
                ElementsAre(ErrorCode::kNone, ErrorCode::kUnknownTopicOrPartition, ErrorCode::kNone));
    AlterConfigsRequest full;
    full.validate_only = true;
    add(full, kTopic, "t", {{kSet, "retention.ms", "x"}});
    EXPECT_THAT(co_await codes_of(client, full), ElementsAre(ErrorCode::kInvalidConfig));
    EXPECT_THAT(co_await set_on(client, "t"), IsEmpty());
  });
}

TEST_F(AlterConfigsTest, WrongLinesGetTheCodesOfKafka) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    co_await create(client, "u");
    auto both = [&](int8_t type, std::string name, std::vector<Edit> edits) -> Task<ErrorCode> {
      AlterConfigsRequest full;
      add(full, type, name, edits);
      ErrorCode of_full = (co_await codes_of(client, full)).at(0);
      EXPECT_EQ(co_await alter(client, type, name, edits), of_full) << name;
      co_return of_full;
    };
    EXPECT_EQ(co_await both(kTopic, "nope", {{kSet, "retention.ms", "1"}}),
              ErrorCode::kUnknownTopicOrPartition);
    EXPECT_EQ(co_await both(kTopic, "nope", {{kSet, "retention.ms", "x"}}), ErrorCode::kInvalidConfig);
    EXPECT_EQ(co_await both(kTopic, "", {}), ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await both(kTopic, "a b", {}), ErrorCode::kInvalidTopicException);
    EXPECT_EQ(co_await both(kTopic, "t", {{kSet, "retention.ms", std::nullopt}}), ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await both(kTopic, "t", {{kSet, "retention.ms", "1"}, {kSet, "retention.ms", "1"}}),
              ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await both(kTopic, "t", {{kSet, "remote.storage.enable", "true"}}),
              ErrorCode::kInvalidConfig);
    std::string blanks(30'000, ' ');
    EXPECT_EQ(
        co_await both(kTopic, "t", {{kSet, "flush.ms", blanks + "1"}, {kSet, "segment.ms", blanks + "1"}}),
        ErrorCode::kNone);
    EXPECT_EQ(co_await both(kTopic, "t",
                            {{kSet, "flush.ms", blanks + "1"},
                             {kSet, "segment.ms", blanks + "1"},
                             {kSet, "retention.ms", blanks + "1"}}),
              ErrorCode::kInvalidConfig);
    for (int8_t type : {0, 3, 77, -1}) {
      EXPECT_EQ(co_await both(type, "t", {}), ErrorCode::kInvalidRequest) << int{type};
    }
    IncrementalAlterConfigsRequest twice;
    for (int i = 0; i < 2; ++i) add(twice, kTopic, "t", {{kSet, "retention.ms", std::to_string(i)}});
    add(twice, kTopic, "u", {{kSet, "retention.ms", "3"}});
    EXPECT_THAT(co_await codes_of(client, twice),
                ElementsAre(ErrorCode::kInvalidRequest, ErrorCode::kInvalidRequest, ErrorCode::kNone));
    // Kafka's controller cannot read such a request, whatever else is in it.
    IncrementalAlterConfigsRequest unknown;
    add(unknown, kTopic, "t", {{9, "retention.ms", "1"}});
    add(unknown, kTopic, "u", {{kSet, "retention.ms", "4"}});
    EXPECT_THAT(co_await codes_of(client, unknown),
                ElementsAre(ErrorCode::kUnknownServerError, ErrorCode::kUnknownServerError));
    EXPECT_EQ(co_await set_on(client, "u"), (TopicConfigs{{"retention.ms", "3"}}));
    EXPECT_THAT((co_await client.ask(IncrementalAlterConfigsRequest(), 1)).responses, IsEmpty());
  });
}

TEST_F(AlterConfigsTest, BrokersGroupsAndMetricsRefuseWhatTheyCannotKeep) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await alter(client, kBroker, "0", {{kSet, "num.partitions", "3"}}),
              ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await alter(client, kBroker, "", {{kSet, "log.retention.ms", "3"}}),
              ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await alter(client, kBroker, "0", {}), ErrorCode::kNone);
    for (const char* name : {"2", "q"}) {
      EXPECT_EQ(co_await alter(client, kBroker, name, {}), ErrorCode::kInvalidRequest) << name;
    }
    IncrementalAlterConfigsRequest request;
    add(request, kBroker, "0", {{kSet, "num.partitions", "3"}});
    auto reply = co_await client.ask(request, 1);
    EXPECT_THAT(reply.responses.at(0).error_message.value_or(""),
                HasSubstr("num.partitions cannot be changed"));
    EXPECT_EQ(co_await alter(client, kGroup, "g", {{kSet, "consumer.session.timeout.ms", "46000"}}),
              ErrorCode::kInvalidConfig);
    EXPECT_EQ(co_await alter(client, kGroup, "g", {{kSet, "nope", "1"}}), ErrorCode::kInvalidConfig);
    EXPECT_EQ(co_await alter(client, kGroup, "", {}), ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await alter(client, kClientMetrics, "m", {{kSet, "interval.ms", "100"}}),
              ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await alter(client, kClientMetrics, "", {}), ErrorCode::kInvalidRequest);
  });
}

TEST_F(AlterConfigsTest, TheLevelOfTheLogChangesWhileTheBrokerRuns) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    auto is_there = [this](std::string_view text) {
      return std::ranges::any_of(warnings_.texts,
                                 [&](const std::string& line) { return line.contains(text); });
    };
    co_await create(client, "before");
    EXPECT_FALSE(is_there("topic=before"));
    EXPECT_EQ(co_await alter(client, kLogger, "0", {{kSet, "root", "INFO"}}), ErrorCode::kNone);
    co_await create(client, "after");
    EXPECT_TRUE(is_there("topic=after"));
    EXPECT_EQ(co_await alter(client, kLogger, "0", {{kSet, "root", "LOUD"}}), ErrorCode::kInvalidConfig);
    EXPECT_EQ(co_await alter(client, kLogger, "0", {{kSet, "kafka.server", "INFO"}}),
              ErrorCode::kInvalidConfig);
    EXPECT_EQ(co_await alter(client, kLogger, "0", {{kDelete, "root", std::nullopt}}),
              ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await alter(client, kLogger, "0", {{kAppend, "root", "INFO"}}), ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await alter(client, kLogger, "0", {{9, "root", "INFO"}}), ErrorCode::kInvalidRequest);
    EXPECT_EQ(co_await alter(client, kLogger, "2", {{kSet, "root", "INFO"}}), ErrorCode::kInvalidRequest);
    // The older API knows no loggers.
    AlterConfigsRequest full;
    add(full, kLogger, "0", {{kSet, "root", "INFO"}});
    EXPECT_THAT(co_await codes_of(client, full), ElementsAre(ErrorCode::kInvalidRequest));
  });
}

TEST_F(AlterConfigsTest, WhatIsInForceIsSoAtEveryBrokerFromTheAnswerOn) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient client = co_await connect(0);
    RawClient producer = co_await connect(1);
    co_await create(client, "t");
    Slice large = make_batch(std::string(2'000, 'x'));
    EXPECT_EQ((co_await produce(producer, "t", large)).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await alter(client, {{kSet, "max.message.bytes", "1000"}}), ErrorCode::kNone);
    EXPECT_EQ((co_await produce(client, "t", large)).error_code, ErrorCode::kMessageTooLarge);
    EXPECT_EQ(co_await alter(client, {{kDelete, "max.message.bytes", std::nullopt}}), ErrorCode::kNone);
    EXPECT_EQ((co_await produce(client, "t", large)).error_code, ErrorCode::kNone);

    sim::BatchSpec packed;
    packed.value = std::string(5'000, 'x');
    packed.options.codec = Codec::kGzip;
    EXPECT_EQ((co_await produce(client, "t", make_batch(packed))).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await alter(client, {{kSet, "max.decompressed.message.bytes", "4000"}}), ErrorCode::kNone);
    EXPECT_EQ((co_await produce(client, "t", make_batch(packed))).error_code, ErrorCode::kMessageTooLarge);

    // Records of 1970.
    EXPECT_EQ((co_await produce(client, "t", make_batch("v"))).log_append_time_ms, -1);
    EXPECT_EQ(co_await alter(client, {{kSet, "message.timestamp.before.max.ms", "1000"}}), ErrorCode::kNone);
    co_await runtime::sleep_for(10s);
    EXPECT_EQ((co_await produce(client, "t", make_batch("v"))).error_code, ErrorCode::kInvalidTimestamp);
    EXPECT_EQ(co_await alter(client, {{kSet, "message.timestamp.type", "LogAppendTime"}}), ErrorCode::kNone);
    ProduceRow stamped = co_await produce(client, "t", make_batch("v"));
    EXPECT_EQ(stamped.error_code, ErrorCode::kNone);
    EXPECT_GT(stamped.log_append_time_ms, 0);
  });
}

TEST_F(AlterConfigsTest, C039ATopicThatBecomesCompactedTakesNoMoreRecordsWithoutAKey) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    sim::BatchSpec keyless;
    keyless.timestamps = {1, 2, 3};
    keyless.null_keys = {false, true, false};
    EXPECT_EQ((co_await produce(client, "t", make_batch(keyless))).error_code, ErrorCode::kNone);
    EXPECT_EQ(co_await alter(client, {{kAppend, "cleanup.policy", "compact"}}), ErrorCode::kNone);
    ProduceRow refused = co_await produce(client, "t", make_batch(keyless));
    EXPECT_EQ(refused.error_code, ErrorCode::kInvalidRecord);
    EXPECT_EQ(refused.record_errors.size(), 1u);
    EXPECT_EQ(refused.record_errors.at(0).batch_index, 1);
    EXPECT_EQ(records_of(co_await stored(client, "t")), 3u);
    EXPECT_EQ(co_await alter(client, {{kSubtract, "cleanup.policy", "compact"}}), ErrorCode::kNone);
    EXPECT_EQ((co_await produce(client, "t", make_batch(keyless))).error_code, ErrorCode::kNone);
  });
}

TEST_F(AlterConfigsTest, AChangeThatDoesNothingYetIsWarnedAboutAndOneOfNothingIsNotWritten) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto warnings = [this] {
      return std::ranges::count_if(
          warnings_.texts, [](const std::string& line) { return line.contains("without effect so far"); });
    };
    EXPECT_EQ(co_await alter(client, {{kSet, "retention.ms", "1000"}}), ErrorCode::kNone);
    EXPECT_EQ(warnings(), 1);
    EXPECT_EQ(co_await alter(client, {{kSet, "retention.ms", "1000"}}), ErrorCode::kNone);
    EXPECT_EQ(co_await alter(client, {{kDelete, "flush.ms", std::nullopt}}), ErrorCode::kNone);
    EXPECT_EQ(warnings(), 1);
  });
}

TEST_F(AlterConfigsTest, ChangesThatMeetAreTakenOneAfterTheOther) {
  start_brokers(2);
  run([&]() -> Task<> {
    std::vector<RawClient> clients;
    for (size_t broker : {0, 1, 0, 1, 0, 1}) clients.push_back(co_await connect(broker));
    co_await create(clients[0], "t");
    std::vector<int32_t> ids;
    for (size_t i = 0; i < clients.size(); ++i) {
      IncrementalAlterConfigsRequest request;
      add(request, kTopic, "t",
          {{kAppend, "leader.replication.throttled.replicas", std::to_string(i % 4) + ":1"}});
      ids.push_back(co_await clients[i].post(request, 1));
    }
    for (size_t i = 0; i < clients.size(); ++i) {
      EXPECT_EQ((co_await code_of(clients[i], ids[i])), ErrorCode::kNone);
    }
    std::string items = (co_await set_on(clients[0], "t")).at("leader.replication.throttled.replicas");
    for (const char* item : {"0:1", "1:1", "2:1", "3:1"}) EXPECT_THAT(items, HasSubstr(item));
  });
}

TEST_F(AlterConfigsTest, OfTwoChangesThatMeetAndContradictOneIsRefused) {
  start_brokers(2);
  run([&]() -> Task<> {
    RawClient one = co_await connect(0);
    RawClient other = co_await connect(1);
    co_await create(one, "t");
    IncrementalAlterConfigsRequest least;
    add(least, kTopic, "t", {{kSet, "min.compaction.lag.ms", "10"}});
    IncrementalAlterConfigsRequest most;
    add(most, kTopic, "t", {{kSet, "max.compaction.lag.ms", "5"}});
    int32_t first = co_await one.post(least, 1);
    int32_t second = co_await other.post(most, 1);
    std::vector<ErrorCode> codes;
    codes.push_back(co_await code_of(one, first));
    codes.push_back(co_await code_of(other, second));
    EXPECT_THAT(codes, UnorderedElementsAre(ErrorCode::kNone, ErrorCode::kInvalidConfig));
    EXPECT_EQ((co_await set_on(one, "t")).size(), 1u);
  });
}

TEST_F(AlterConfigsTest, WhoIsAlwaysOvertakenIsToldToAskAgainAndHasChangedNothing) {
  start_brokers(1);
  run([&]() -> Task<> {
    constexpr size_t kClients = 40;
    std::vector<RawClient> clients;
    for (size_t i = 0; i < kClients; ++i) clients.push_back(co_await connect());
    co_await create(clients[0], "t");
    std::vector<int32_t> ids;
    for (size_t i = 0; i < kClients; ++i) {
      IncrementalAlterConfigsRequest request;
      add(request, kTopic, "t",
          {{kAppend, "leader.replication.throttled.replicas", std::to_string(i) + ":1"}});
      ids.push_back(co_await clients[i].post(request, 1));
    }
    std::set<std::string> done;
    for (size_t i = 0; i < kClients; ++i) {
      ErrorCode code = co_await code_of(clients[i], ids[i]);
      if (code == ErrorCode::kNone) {
        done.insert(std::to_string(i) + ":1");
      } else {
        EXPECT_EQ(code, ErrorCode::kNotController);
      }
    }
    EXPECT_LT(done.size(), kClients);
    std::string items = (co_await set_on(clients[0], "t")).at("leader.replication.throttled.replicas");
    std::set<std::string> kept;
    for (auto item : std::views::split(items, ',')) kept.insert(std::string(item.begin(), item.end()));
    EXPECT_EQ(kept, done);
  });
}

TEST_F(AlterConfigsTest, WithoutTheLogNothingIsCalledAbsentOrDone) {
  start_brokers(1);
  start_closed_broker();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    RawClient refused = co_await connect(1);
    EXPECT_EQ(co_await alter(refused, {{kSet, "retention.ms", "1"}}), ErrorCode::kClusterAuthorizationFailed);
    sim::LogFaults faults;
    faults.append.request_lost = 1000;
    log_.set_faults(faults);
    EXPECT_EQ(co_await alter(client, {{kSet, "retention.ms", "1"}}), ErrorCode::kRequestTimedOut);
    faults.read.request_lost = 1000;
    faults.other.request_lost = 1000;
    log_.set_faults(faults);
    EXPECT_EQ(co_await alter(client, kTopic, "nope", {{kSet, "retention.ms", "1"}}),
              ErrorCode::kRequestTimedOut);
    EXPECT_EQ(co_await alter(client, kTopic, "nope", {{kSet, "retention.ms", "x"}}),
              ErrorCode::kInvalidConfig);
  });
}

}  // namespace
}  // namespace varve::broker
