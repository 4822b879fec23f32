#include "broker/settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "broker/settings/setting_table.h"

namespace varve::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LoadedSettings load(const Environment& environment, std::optional<std::string> file = std::nullopt) {
  auto loaded = load_settings(environment, file);
  EXPECT_TRUE(loaded) << loaded.error().to_string();
  return loaded.value_or(LoadedSettings{});
}

std::string error_of(const Environment& environment, std::optional<std::string> file = std::nullopt) {
  auto loaded = load_settings(environment, file);
  return loaded ? "no error" : loaded.error().to_string();
}

TEST(Settings, AddressesNotSetBindLoopback) {
  Settings settings = load({}).settings;
  EXPECT_EQ(settings.kafka_address, (runtime::Address{"127.0.0.1", 9092}));
  EXPECT_EQ(settings.http_address, (runtime::Address{"127.0.0.1", 9093}));
  EXPECT_EQ(settings.advertised.host, "127.0.0.1");
  EXPECT_EQ(settings.data_folder, "./varve-data");
  EXPECT_EQ(settings.key_namespace, "default");
}

TEST(Settings, AColonAndAPortMeanEveryInterface) {
  Settings settings = load({{"KAFSCALE_BROKER_ADDR", ":9092"}}).settings;
  EXPECT_EQ(settings.kafka_address, (runtime::Address{"", 9092}));
  EXPECT_EQ(settings.advertised.host, "localhost");
}

TEST(Settings, TheAdvertisedHostIsTheOneGivenThenTheListenersThenThePods) {
  Environment pod = {{"KAFSCALE_BROKER_ADDR", "0.0.0.0:9092"},
                     {"KAFSCALE_BROKER_SERVICE", "brokers"},
                     {"POD_NAME", "kafscale-7"},
                     {"POD_NAMESPACE", "prod"}};
  Settings settings = load(pod).settings;
  EXPECT_EQ(settings.advertised.host, "kafscale-7.brokers.prod.svc.cluster.local");
  EXPECT_EQ(settings.broker_id, BrokerId(7));
  pod["KAFSCALE_BROKER_ADDR"] = "10.1.2.3:9092";
  EXPECT_EQ(load(pod).settings.advertised.host, "10.1.2.3");
  pod["KAFSCALE_BROKER_HOST"] = "public.example";
  pod["KAFSCALE_BROKER_PORT"] = "19092";
  pod["KAFSCALE_BROKER_ID"] = "3";
  settings = load(pod).settings;
  EXPECT_EQ(settings.advertised, (runtime::Address{"public.example", 19092}));
  EXPECT_EQ(settings.broker_id, BrokerId(3));
}

TEST(Settings, ABadSettingNamesItselfItsValueAndWhatIsAllowed) {
  EXPECT_EQ(error_of({{"KAFSCALE_SEGMENT_BYTES", "many"}}),
            "setting KAFSCALE_SEGMENT_BYTES=many: not a whole number; allowed: 65536 to 1073741824");
  EXPECT_EQ(error_of({{"KAFSCALE_SEGMENT_BYTES", "12"}}),
            "setting KAFSCALE_SEGMENT_BYTES=12: too small; allowed: 65536 to 1073741824");
  EXPECT_EQ(error_of({{"KAFSCALE_AUTO_CREATE_TOPICS", "maybe"}}),
            "setting KAFSCALE_AUTO_CREATE_TOPICS=maybe: not a truth value; allowed: true/false");
  EXPECT_EQ(error_of({{"KAFSCALE_LOG_LEVEL", "loud"}}),
            "setting KAFSCALE_LOG_LEVEL=loud: no such level; allowed: debug, info, warn, error or off");
  EXPECT_THAT(error_of({{"KAFSCALE_BROKER_ADDR", "localhost:many"}}), HasSubstr("allowed: host:port"));
  EXPECT_THAT(error_of({{"KAFSCALE_S3_NAMESPACE", "a/b"}}), HasSubstr("KAFSCALE_S3_NAMESPACE=a/b"));
}

TEST(Settings, EveryNumberIsCheckedAgainstItsBounds) {
  for (const SettingRow& row : setting_table()) {
    if (row.type != "number" && row.type != "bytes" && row.type != "ms" && row.type != "s") continue;
    for (const char* wrong : {"-1", "99999999999999999999", "1.5", "0x10", "1 2", "99999999999999"}) {
      EXPECT_THAT(error_of({{std::string(row.env), wrong}}), HasSubstr(std::string(row.env))) << wrong;
    }
  }
}

TEST(Settings, WhatIsNotBuiltYetStopsTheStartInsteadOfBeingIgnored) {
  EXPECT_EQ(error_of({{"KAFSCALE_CONTROL_ADDR", ":9094"}}),
            "setting KAFSCALE_CONTROL_ADDR=:9094: this version of varve cannot do it yet (the gRPC control "
            "port); unset "
            "it to start without");
  EXPECT_THAT(error_of({{"KAFSCALE_ETCD_ENDPOINTS", "http://etcd:2379"}}), HasSubstr("metadata log in etcd"));
  EXPECT_THAT(error_of({{"KAFSCALE_USE_MEMORY_S3", "true"}}), HasSubstr("cannot do it yet"));
  EXPECT_THAT(error_of({{"KAFSCALE_ACL_ENABLED", "true"}}), HasSubstr("access control"));
  EXPECT_EQ(error_of({{"KAFSCALE_USE_MEMORY_S3", "False"}, {"KAFSCALE_ACL_ENABLED", "0"}}), "no error");
}

TEST(Settings, ASecretIsNeverShown) {
  EXPECT_THAT(error_of({{"KAFSCALE_S3_SECRET_KEY", "hunter2"}}), ::testing::Not(HasSubstr("hunter2")));
}

TEST(Settings, WhoNamesAStoreNamesABucket) {
  for (const char* name : {"KAFSCALE_S3_ENDPOINT", "KAFSCALE_S3_ACCESS_KEY", "KAFSCALE_S3_SECRET_KEY",
                           "KAFSCALE_S3_SESSION_TOKEN", "KAFSCALE_S3_KMS_ARN"}) {
    EXPECT_EQ(error_of({{name, "hunter2"}}),
              fmt::format("setting {}: it is set, but KAFSCALE_S3_BUCKET is not", name));
  }
  EXPECT_EQ(error_of({{"AWS_ACCESS_KEY_ID", "AK"}, {"AWS_SECRET_ACCESS_KEY", "s"}}), "no error");
  EXPECT_THAT(error_of({{"KAFSCALE_S3_BUCKET", "a/b"}}), HasSubstr("KAFSCALE_S3_BUCKET=a/b"));
  EXPECT_THAT(error_of({{"KAFSCALE_S3_BUCKET", "ab"}}), HasSubstr("no name of a bucket"));
}

TEST(Settings, UnknownNamesAreWarnedAboutUnlessAnotherProgramOwnsThem) {
  LoadedSettings loaded = load({{"KAFSCALE_SEGMNT_BYTES", "1"},
                                {"KAFSCALE_CONSOLE_HTTP_ADDR", ":8080"},
                                {"KAFSCALE_PROXY_ADDR", ":9092"},
                                {"KAFSCALE_UI_USERNAME", "admin"},
                                {"HOME", "/root"}});
  EXPECT_THAT(loaded.warnings,
              ElementsAre("KAFSCALE_SEGMNT_BYTES is not a setting of the broker and has no effect; "
                          "KAFSCALE_SEGMENT_BYTES is one"));
  EXPECT_THAT(load({{"VARVE_WHATEVER", "1"}, {"DISKLESS_X", "1"}}).warnings,
              ElementsAre("DISKLESS_X is not a setting of the broker and has no effect",
                          "VARVE_WHATEVER is not a setting of the broker and has no effect"));
}

TEST(Settings, OfKafkasNamesOnlyMisspeltOnesAreWarnedAbout) {
  for (const char* wrong : {"KAFKA_MESSAGE_MAX_BYTE", "KAFKA_MESAGE_MAX_BYTES", "KAFKA_MESSAGES_MAXBYTES",
                            "KAFKA_MESSAEG_MAX_BYTES"}) {
    EXPECT_THAT(load({{wrong, "1000"}}).warnings, ElementsAre(HasSubstr("KAFKA_MESSAGE_MAX_BYTES is one")))
        << wrong;
  }
  // Of a Kafka installation, and of its containers.
  for (const char* other :
       {"KAFKA_HOME", "KAFKA_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_JMX_OPTS", "KAFKA_JMX_PORT", "KAFKA_GC_LOG_OPTS", "KAFKA_DEBUG", "KAFKA_NODE_ID",
        "KAFKA_BROKER_ID", "KAFKA_CONTROLLER_LISTENER_NAMES", "KAFKA_LOG_DIRS", "KAFKA_PROCESS_ROLES",
        "KAFKA_NUM_PARTITIONS", "KAFKA_NUM_IO_THREADS"}) {
    EXPECT_THAT(load({{other, "1"}}).warnings, IsEmpty()) << other;
  }
}

TEST(Settings, ProdWarnsAboutValuesForTryingOut) {
  EXPECT_EQ(load({{"KAFSCALE_ENV", "prod"}}).warnings.size(), 3u);
  EXPECT_THAT(load({{"KAFSCALE_ENV", "prod"},
                    {"KAFSCALE_BROKER_ADDR", ":9092"},
                    {"KAFSCALE_METRICS_ADDR", ":9093"},
                    {"KAFSCALE_DATA_DIR", "/data"}})
                  .warnings,
              IsEmpty());
}

TEST(Settings, AFileSetsByEitherNameAndTheEnvironmentWins) {
  std::string file =
      "# comment\n\n  diskless.append.commit.interval.ms = 40 "
      "\r\nKAFSCALE_DATA_DIR=/file\nnum.partitions=7\n";
  LoadedSettings loaded = load({{"KAFSCALE_DATA_DIR", "/environment"}}, file);
  EXPECT_EQ(loaded.settings.append_commit_interval, 40ms);
  EXPECT_EQ(loaded.settings.data_folder, "/environment");
  EXPECT_EQ(loaded.settings.auto_create_partitions, 7);
  EXPECT_EQ(loaded.given.at("diskless.append.commit.interval.ms"), "40");
}

TEST(Settings, AFileWithMistakesStopsTheStart) {
  EXPECT_THAT(error_of({}, "num.partitons=7\n"), HasSubstr("line 1 of the file: no such setting"));
  EXPECT_THAT(error_of({}, "\nnonsense\n"), HasSubstr("line 2 of the file has no '='"));
  EXPECT_THAT(error_of({}, "num.partitions=7\nKAFSCALE_AUTO_CREATE_PARTITIONS=8"),
              HasSubstr("a second time"));
  EXPECT_EQ(error_of({}, "num.partitions=x"),
            "setting num.partitions=x: not a whole number; allowed: 1 to 10000");
}

TEST(Settings, TheNewerNameOfTheCacheWins) {
  EXPECT_EQ(load({{"KAFSCALE_CACHE_SIZE", "2097152"}}).settings.limits.cache_bytes_max, 2097152u);
  EXPECT_EQ(load({{"KAFSCALE_CACHE_SIZE", "2097152"}, {"KAFSCALE_CACHE_BYTES", "4194304"}})
                .settings.limits.cache_bytes_max,
            4194304u);
}

TEST(Settings, ContradictionsStopTheStart) {
  EXPECT_THAT(error_of({{"KAFKA_QUEUED_MAX_REQUEST_BYTES", "2000000"}}), HasSubstr("wait for ever"));
  EXPECT_THAT(error_of({{"KAFSCALE_METRICS_ADDR", "127.0.0.1:9092"}}), HasSubstr("same address"));
}

TEST(Settings, AnEmptyValueCountsAsNotSet) {
  EXPECT_EQ(load({{"KAFSCALE_S3_BUCKET", ""}, {"KAFSCALE_SEGMENT_BYTES", " "}}).settings.segment_bytes,
            4194304u);
}

TEST(SettingTable, NamesAreUniqueAndEveryRowIsExplained) {
  std::set<std::string_view> names;
  for (const SettingRow& row : setting_table()) {
    EXPECT_TRUE(names.insert(row.env).second) << row.env;
    if (!row.key.empty()) EXPECT_TRUE(names.insert(row.key).second) << row.key;
    EXPECT_FALSE(row.help.empty()) << row.env;
  }
}

// https://kafscale.io/configuration/ as of version 1.6.0, where its code has other defaults for some.
TEST(SettingTable, WhereKafScalesPageAndItsCodeDifferThePageHolds) {
  const std::map<std::string, std::string> page = {
      {"KAFSCALE_BROKER_ID", ""},
      {"KAFSCALE_BROKER_HOST", ""},
      {"KAFSCALE_STARTUP_TIMEOUT_SEC", "30"},
      {"KAFSCALE_LOG_LEVEL", "info"},  // code: warn
      {"KAFSCALE_SEGMENT_BYTES", "4194304"},
      {"KAFSCALE_FLUSH_INTERVAL_MS", "500"},
      {"KAFSCALE_CACHE_BYTES", "1073741824"},       // code: 33554432
      {"KAFSCALE_INDEX_CACHE_BYTES", "104857600"},  // code: unknown
      {"KAFSCALE_READAHEAD_SEGMENTS", "2"},
      {"KAFSCALE_AUTO_CREATE_TOPICS", "true"},
      {"KAFSCALE_AUTO_CREATE_PARTITIONS", "1"},
      {"KAFSCALE_ALLOW_ADMIN_APIS", "true"},
      {"KAFSCALE_PRODUCE_SYNC_FLUSH", "true"},
      {"KAFSCALE_THROUGHPUT_WINDOW_SEC", "60"},
      {"KAFSCALE_USE_MEMORY_S3", "false"},
      {"KAFSCALE_TRACE_KAFKA", "false"},
      {"KAFSCALE_S3_BUCKET", ""},
      {"KAFSCALE_S3_REGION", "us-east-1"},
      {"KAFSCALE_S3_ENDPOINT", ""},
      {"KAFSCALE_S3_PATH_STYLE", ""},  // page: false; code, and here: true with an endpoint
      {"KAFSCALE_S3_READ_BUCKET", ""},
      {"KAFSCALE_S3_READ_REGION", ""},
      {"KAFSCALE_S3_READ_ENDPOINT", ""},
      {"KAFSCALE_S3_KMS_ARN", ""},
      {"KAFSCALE_S3_ACCESS_KEY", ""},
      {"KAFSCALE_S3_SECRET_KEY", ""},
      {"KAFSCALE_S3_SESSION_TOKEN", ""},
      {"KAFSCALE_S3_HEALTH_WINDOW_SEC", "60"},
      {"KAFSCALE_S3_LATENCY_WARN_MS", "500"},
      {"KAFSCALE_S3_LATENCY_CRIT_MS", "2000"},  // code: 3000
      {"KAFSCALE_S3_ERROR_RATE_WARN", "0.01"},  // code: 0.2
      {"KAFSCALE_S3_ERROR_RATE_CRIT", "0.05"},  // code: 0.6
      {"KAFSCALE_ETCD_ENDPOINTS", ""},
      {"KAFSCALE_ETCD_USERNAME", ""},
      {"KAFSCALE_ETCD_PASSWORD", ""},
      {"KAFSCALE_ETCD_CERT_FILE", ""},  // code: unknown, like the next two and those of TLS
      {"KAFSCALE_ETCD_KEY_FILE", ""},
      {"KAFSCALE_ETCD_CA_FILE", ""},
      {"KAFSCALE_TLS_ENABLED", "false"},
      {"KAFSCALE_TLS_CERT_FILE", ""},
      {"KAFSCALE_TLS_KEY_FILE", ""},
      {"KAFSCALE_TLS_CA_FILE", ""},
      {"KAFSCALE_TLS_CLIENT_AUTH", "false"},
  };
  for (const auto& [name, value] : page) {
    auto row = std::ranges::find(setting_table(), name, &SettingRow::env);
    ASSERT_NE(row, setting_table().end()) << name;
    if (row->group != SettingGroup::kLater) {
      EXPECT_EQ(row->default_text, value) << name;
    } else {
      // What is not built yet takes the page's default, and nothing else.
      EXPECT_EQ(error_of({{name, value}}), "no error") << name;
      EXPECT_THAT(error_of({{name, value + "7"}}), HasSubstr("cannot do it yet")) << name;
    }
  }
  EXPECT_EQ(load({}).settings.log_level, LogLevel::kInfo);
  EXPECT_EQ(load({}).settings.limits.cache_bytes_max, 1073741824u);
  // Advertised is the port listened on: 9092 by default, as the page says.
  EXPECT_EQ(load({}).settings.kafka_address.port, 9092);
}

TEST(ParseAddress, TakesHostsPortsAndNumbersOfVersion6) {
  EXPECT_EQ(parse_address("[::1]:7", 1), (runtime::Address{"::1", 7}));
  EXPECT_EQ(parse_address("[::1]", 1), (runtime::Address{"::1", 1}));
  EXPECT_EQ(parse_address("host", 1), (runtime::Address{"host", 1}));
  EXPECT_EQ(parse_address("host:0", 1), (runtime::Address{"host", 0}));
  for (const char* wrong :
       {"", "::1:7", "host:", "host:70000", "host:-1", "[]:1", "[::1", "http://h:1", "[::1]x"}) {
    EXPECT_EQ(parse_address(wrong, 1), std::nullopt) << wrong;
  }
}

TEST(ConfigurationPage, TheCheckedInPageIsWhatTheTablePrints) {
  std::ifstream file(VARVE_SOURCE_DIR "/docs/configuration.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), configuration_page())
      << "run: build/dev/varve broker --print-configuration-docs > docs/configuration.md";
}

}  // namespace
}  // namespace varve::broker
