// DescribeConfigs of topics, brokers, loggers, groups and subscriptions to metrics. Cases of the area "admin".
#include "protocol/messages/describe_configs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/produce_testing.h"
#include "broker/settings/topic_configs.h"

namespace varve::broker {
namespace {

using protocol::DescribeConfigsRequest;
using protocol::DescribeConfigsResponse;
using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Row = DescribeConfigsResponse::DescribeConfigsResult;
using Config = DescribeConfigsResponse::DescribeConfigsResourceResult;
using Keys = std::optional<std::vector<std::string>>;

constexpr int8_t kTopic = 2;
constexpr int8_t kBroker = 4;
constexpr int8_t kLogger = 8;
constexpr int8_t kClientMetrics = 16;
constexpr int8_t kGroup = 32;

class DescribeConfigsTest : public ProduceTest {
 protected:
  static DescribeConfigsRequest request_of(std::vector<std::pair<int8_t, std::string>> resources,
                                           Keys keys = std::nullopt) {
    DescribeConfigsRequest request;
    request.include_synonyms = true;
    for (auto& [type, name] : resources) {
      auto& resource = request.resources.emplace_back();
      resource.resource_type = type;
      resource.resource_name = std::move(name);
      resource.configuration_keys = keys;
    }
    return request;
  }
  Task<Row> describe(RawClient& client, int8_t type, std::string name, Keys keys = std::nullopt) {
    auto reply = co_await client.ask(request_of({{type, std::move(name)}}, std::move(keys)), 4);
    co_return reply.results.at(0);
  }
  static const Config* find(const Row& row, std::string_view name) {
    auto found = std::ranges::find(row.configs, name, &Config::name);
    return found == row.configs.end() ? nullptr : &*found;
  }
  static std::string value_of(const Row& row, std::string_view name) {
    const Config* config = find(row, name);
    return config == nullptr ? "(absent)" : config->value.value_or("(null)");
  }
};

TEST_F(DescribeConfigsTest, C092TheConfigsOfACompactedTopicAreToldForNoKeysAndForEach) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "_schemas", 1, {{"cleanup.policy", "compact"}, {"retention.ms", " +12 "}});
    Row all = co_await describe(client, kTopic, "_schemas");
    EXPECT_EQ(all.error_code, ErrorCode::kNone);
    EXPECT_EQ(all.error_message, "");
    EXPECT_EQ(all.resource_name, "_schemas");
    EXPECT_EQ(all.configs.size(), topic_config_table().size());
    EXPECT_EQ(value_of(all, "cleanup.policy"), "compact");
    EXPECT_EQ(value_of(all, "retention.ms"), "12");
    Row empty = co_await describe(client, kTopic, "_schemas", std::vector<std::string>());
    EXPECT_EQ(empty, all);
    Row some =
        co_await describe(client, kTopic, "_schemas", std::vector<std::string>{"nope", "cleanup.policy"});
    EXPECT_EQ(some.configs.size(), 1u);
    EXPECT_EQ(value_of(some, "cleanup.policy"), "compact");
  });
}

TEST_F(DescribeConfigsTest, SourcesSynonymsTypesAndDocumentationAreToldWhereAskedFor) {
  Settings settings = settings_of(0);
  settings.limits.batch_bytes_max = 5'000;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 1, {{"flush.messages", "7"}});
    DescribeConfigsRequest request = request_of({{kTopic, "t"}});
    request.include_documentation = true;
    auto reply = co_await client.ask(request, 4);
    const Row& row = reply.results.at(0);
    const Config& set = *find(row, "flush.messages");
    EXPECT_EQ(set.config_source, 1);
    EXPECT_EQ(set.config_type, 5);
    EXPECT_FALSE(set.read_only);
    EXPECT_FALSE(set.is_sensitive);
    EXPECT_NE(set.documentation.value_or(""), "");
    EXPECT_EQ(set.synonyms.size(), 2u);
    EXPECT_EQ(set.synonyms.at(0).name, "flush.messages");
    EXPECT_EQ(set.synonyms.at(0).source, 1);
    EXPECT_EQ(set.synonyms.at(1).name, "log.flush.interval.messages");
    EXPECT_EQ(set.synonyms.at(1).value, "9223372036854775807");
    EXPECT_EQ(set.synonyms.at(1).source, 5);
    // The broker's own default, which is not Kafka's.
    const Config& of_broker = *find(row, "max.message.bytes");
    EXPECT_EQ(of_broker.value, "5000");
    EXPECT_EQ(of_broker.config_source, 4);
    EXPECT_EQ(of_broker.config_type, 3);
    EXPECT_EQ(find(row, "retention.ms")->config_source, 5);
    EXPECT_THAT(find(row, "retention.ms")->synonyms, IsEmpty());
    EXPECT_EQ(find(row, "preallocate")->config_type, 1);
    EXPECT_EQ(find(row, "cleanup.policy")->config_type, 7);
    EXPECT_EQ(find(row, "min.cleanable.dirty.ratio")->config_type, 6);
    EXPECT_EQ(find(row, "compression.type")->config_type, 2);

    request.include_synonyms = false;
    request.include_documentation = false;
    for (int16_t version = DescribeConfigsRequest::kMinVersion;
         version <= DescribeConfigsRequest::kMaxVersion; ++version) {
      auto plain = co_await client.ask(request, version);
      const Config& config = *find(plain.results.at(0), "flush.messages");
      EXPECT_EQ(config.value, "7") << version;
      EXPECT_EQ(config.config_source, 1) << version;
      EXPECT_THAT(config.synonyms, IsEmpty()) << version;
      if (version >= 3) EXPECT_EQ(config.documentation, std::nullopt) << version;
    }
  });
}

TEST_F(DescribeConfigsTest, UnknownAndImpossibleTopicsAreToldOneByOne) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    auto reply = co_await client.ask(
        request_of(
            {{kTopic, "nope"}, {kTopic, "a b"}, {kTopic, ""}, {kTopic, "t"}, {kTopic, "t"}, {kTopic, "t"}}),
        4);
    EXPECT_EQ(reply.results.size(), 6u);
    EXPECT_EQ(reply.results.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
    EXPECT_THAT(reply.results.at(0).configs, IsEmpty());
    EXPECT_EQ(reply.results.at(1).error_code, ErrorCode::kInvalidTopicException);
    EXPECT_EQ(reply.results.at(2).error_code, ErrorCode::kInvalidTopicException);
    EXPECT_EQ(reply.results.at(3).error_code, ErrorCode::kNone);
    EXPECT_EQ(reply.results.at(4), reply.results.at(3));
    EXPECT_EQ(reply.results.at(5).error_code, ErrorCode::kInvalidRequest) << "more than twice";
    EXPECT_THAT(reply.results.at(5).configs, IsEmpty());
  });
}

TEST_F(DescribeConfigsTest, C094ABrokerTellsAPlausibleSetAndNoOther) {
  Settings settings = settings_of(0);
  settings.given["KAFSCALE_CACHE_BYTES"] = "8388608";
  settings.given["KAFSCALE_AUTO_CREATE_TOPICS"] = "false";
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Row broker = co_await describe(client, kBroker, "0");
    EXPECT_EQ(broker.error_code, ErrorCode::kNone);
    for (const char* name :
         {"auto.create.topics.enable", "log.retention.ms", "message.max.bytes", "num.partitions",
          "offsets.topic.num.partitions", "log.cleanup.policy", "min.insync.replicas",
          "kafscale.segment.bytes", "kafscale.flush.interval.ms", "varve.shutdown.timeout.sec"}) {
      EXPECT_NE(value_of(broker, name), "(absent)") << name;
    }
    EXPECT_EQ(value_of(broker, "broker.id"), "0");
    EXPECT_EQ(value_of(broker, "advertised.listeners"), "PLAINTEXT://broker0:9092");
    EXPECT_EQ(value_of(broker, "auto.create.topics.enable"), "false");
    EXPECT_EQ(find(broker, "auto.create.topics.enable")->config_source, 4);
    EXPECT_EQ(value_of(broker, "kafscale.cache.bytes"), "8388608");
    EXPECT_EQ(value_of(broker, "offset.metadata.max.bytes"), "4096");
    EXPECT_EQ(value_of(broker, "offsets.retention.minutes"), "10080");
    EXPECT_EQ(find(broker, "offsets.retention.minutes")->config_source, 5);
    std::set<std::string> names;
    for (const Config& config : broker.configs) {
      EXPECT_TRUE(config.read_only) << config.name;
      EXPECT_TRUE(names.insert(config.name).second) << config.name;
      EXPECT_THAT(config.name, ::testing::Not(HasSubstr("secret")));
      EXPECT_THAT(config.name, ::testing::Not(HasSubstr("password")));
    }
    Row cluster = co_await describe(client, kBroker, "");
    EXPECT_EQ(cluster.error_code, ErrorCode::kNone);
    EXPECT_THAT(cluster.configs, IsEmpty());
    EXPECT_EQ((co_await describe(client, kBroker, "7")).error_code, ErrorCode::kInvalidRequest);
    EXPECT_EQ((co_await describe(client, kBroker, "x")).error_code, ErrorCode::kInvalidRequest);
    Row some = co_await describe(client, kBroker, "0", std::vector<std::string>{"num.partitions", "nope"});
    EXPECT_EQ(some.configs.size(), 1u);
  });
}

TEST_F(DescribeConfigsTest, ABrokerTellsTheRetentionOfOffsetsThatIsSet) {
  Settings settings = settings_of(0);
  settings.given["KAFKA_OFFSETS_RETENTION_MINUTES"] = "60";
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Row broker =
        co_await describe(client, kBroker, "0", std::vector<std::string>{"offsets.retention.minutes"});
    EXPECT_EQ(value_of(broker, "offsets.retention.minutes"), "60");
    EXPECT_EQ(broker.configs.at(0).config_source, 4);
    EXPECT_EQ(broker.configs.at(0).synonyms.size(), 2u);
  });
}

TEST_F(DescribeConfigsTest, C094LoggersGroupsAndMetricsAreToldAsKafkaDoes) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    Row logger = co_await describe(client, kLogger, "0");
    EXPECT_EQ(logger.error_code, ErrorCode::kNone);
    EXPECT_EQ(value_of(logger, "root"), "WARN");
    EXPECT_EQ(logger.configs.at(0).config_source, 6);
    for (const char* name : {"", "2", "x"}) {
      EXPECT_EQ((co_await describe(client, kLogger, name)).error_code, ErrorCode::kInvalidRequest) << name;
    }
    Row group = co_await describe(client, kGroup, "g");
    EXPECT_EQ(group.configs.size(), 21u);
    EXPECT_EQ(value_of(group, "consumer.session.timeout.ms"), "45000");
    Row metrics = co_await describe(client, kClientMetrics, "m");
    EXPECT_EQ(value_of(metrics, "interval.ms"), "300000");
    EXPECT_EQ((co_await describe(client, kGroup, "")).error_code, ErrorCode::kInvalidRequest);
    EXPECT_EQ((co_await describe(client, kClientMetrics, "")).error_code, ErrorCode::kInvalidRequest);
    // Kafka refuses the whole request for one type that it does not know.
    co_await create(client, "t");
    for (int8_t type : {0, 3, 99}) {
      auto reply = co_await client.ask(request_of({{kTopic, "t"}, {type, "t"}}), 4);
      EXPECT_EQ(reply.results.at(0).error_code, ErrorCode::kInvalidRequest) << int{type};
      EXPECT_EQ(reply.results.at(1).error_code, ErrorCode::kInvalidRequest) << int{type};
      EXPECT_EQ(reply.results.at(1).resource_type, type);
    }
    EXPECT_THAT((co_await client.ask(DescribeConfigsRequest(), 4)).results, IsEmpty());
  });
}

TEST_F(DescribeConfigsTest, ABrokerWithoutTheLogTellsNothingThatMayBeOld) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t");
    sim::LogFaults faults;
    faults.append.request_lost = 1000;
    faults.read.request_lost = 1000;
    faults.other.request_lost = 1000;
    log_.set_faults(faults);
    auto reply = co_await client.ask(request_of({{kTopic, "nope"}, {kTopic, "t"}, {kBroker, "0"}}), 4);
    EXPECT_EQ(reply.results.at(0).error_code, ErrorCode::kRequestTimedOut);
    EXPECT_EQ(reply.results.at(1).error_code, ErrorCode::kRequestTimedOut);
    EXPECT_EQ(reply.results.at(2).error_code, ErrorCode::kNone);
  });
}

}  // namespace
}  // namespace varve::broker
