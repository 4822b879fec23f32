#include "broker/settings/listeners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Settings load(const Environment& environment) {
  auto loaded = load_settings(environment, std::nullopt);
  EXPECT_TRUE(loaded) << loaded.error().to_string();
  return loaded ? loaded->settings : Settings{};
}

std::string error_of(const Environment& environment) {
  auto loaded = load_settings(environment, std::nullopt);
  return loaded ? "no error" : loaded.error().to_string();
}

TEST(Listeners, OneNamedPlaintextIsThereWithoutASetting) {
  EXPECT_THAT(load({}).all_listeners(),
              ElementsAre(ListenerSettings{"PLAINTEXT", {"127.0.0.1", 9092}, {"127.0.0.1", 0}}));
}

TEST(Listeners, EachNameHasItsAddressAndWhatItsClientsAreTold) {
  Settings settings =
      load({{"KAFKA_LISTENERS", "internal://10.0.0.1:9092, EXTERNAL://:9094,V6://[::1]:9095"},
            {"KAFKA_ADVERTISED_LISTENERS", "External://broker.example:19094"},
            {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "INTERNAL:PLAINTEXT,external:plaintext"}});
  EXPECT_THAT(settings.all_listeners(),
              ElementsAre(ListenerSettings{"INTERNAL", {"10.0.0.1", 9092}, {"10.0.0.1", 0}},
                          ListenerSettings{"EXTERNAL", {"", 9094}, {"broker.example", 19094}},
                          ListenerSettings{"V6", {"::1", 9095}, {"::1", 0}}));
}

TEST(Listeners, OneOnEveryInterfaceIsAdvertisedByTheHostOfThePod) {
  Settings settings = load({{"KAFKA_LISTENERS", "A://0.0.0.0:9092"},
                            {"KAFSCALE_BROKER_SERVICE", "brokers"},
                            {"POD_NAME", "varve-0"},
                            {"POD_NAMESPACE", "prod"}});
  // As for KAFSCALE_BROKER_ADDR, whose default names loopback.
  EXPECT_EQ(settings.all_listeners().front().advertised.host, "varve-0.brokers.prod.svc.cluster.local");
}

TEST(Listeners, ACommaAtTheEndIsNoneTooMany) {
  Settings settings =
      load({{"KAFKA_LISTENERS", "A://h:9092,"}, {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "A:PLAINTEXT, "}});
  EXPECT_THAT(settings.all_listeners(), SizeIs(1));
}

TEST(Listeners, WhatIsNoListenerStopsTheStart) {
  for (const char* wrong :
       {"A", "A:9092", "://h:1", "A://h", "A b://h:1", "A://h:1,,B://h:2", "A://h:70000", ","}) {
    EXPECT_THAT(error_of({{"KAFKA_LISTENERS", wrong}}), HasSubstr("KAFKA_LISTENERS")) << wrong;
  }
  EXPECT_THAT(error_of({{"KAFKA_LISTENERS", "A://h:1,a://h:2"}}), HasSubstr("A is named twice"));
}

TEST(Listeners, ANameThatPromisesEncryptionIsRefused) {
  for (const char* name : {"SSL", "SASL_PLAINTEXT", "sasl_ssl"}) {
    EXPECT_THAT(error_of({{"KAFKA_LISTENERS", std::string(name) + "://h:1"}}), HasSubstr("not there yet"));
    EXPECT_THAT(error_of({{"KAFKA_LISTENERS", "A://h:1"},
                          {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", std::string("A:") + name}}),
                HasSubstr("not there yet"));
  }
  EXPECT_THAT(
      error_of({{"KAFKA_LISTENERS", "A://h:1"}, {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "A:NONSENSE"}}),
      HasSubstr("no security protocol"));
}

TEST(Listeners, WhatContradictsIsRefused) {
  EXPECT_THAT(error_of({{"KAFKA_ADVERTISED_LISTENERS", "A://h:1"}}), HasSubstr("KAFKA_LISTENERS is not set"));
  EXPECT_THAT(error_of({{"KAFKA_LISTENERS", "A://h:1"}, {"KAFKA_ADVERTISED_LISTENERS", "B://h:1"}}),
              HasSubstr("no listener of this name"));
  EXPECT_THAT(error_of({{"KAFKA_LISTENERS", "A://h:1"}, {"KAFKA_ADVERTISED_LISTENERS", "A://0.0.0.0:1"}}),
              HasSubstr("cannot connect to every interface"));
  EXPECT_THAT(error_of({{"KAFKA_LISTENERS", "A://h:1"}, {"KAFSCALE_BROKER_ADDR", "h:2"}}),
              HasSubstr("KAFKA_LISTENERS is set too"));
  EXPECT_THAT(error_of({{"KAFKA_LISTENERS", "A://127.0.0.1:9093"}}), HasSubstr("the same address as one of"));
}

}  // namespace
}  // namespace varve::broker
