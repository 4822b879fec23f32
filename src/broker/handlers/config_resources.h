// What the APIs of configs share: whose configs there are, and how one is told to a client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/handlers/request.h"
#include "broker/handlers/services.h"
#include "broker/security/authorizer.h"
#include "broker/settings/topic_configs.h"
#include "protocol/messages/describe_configs.h"
#include "protocol/messages/error_code.h"

namespace varve::broker {

// Kafka's ConfigResource.Type, as requests say it.
enum class ConfigResource : int8_t {
  kTopic = 2,
  kBroker = 4,
  kBrokerLogger = 8,
  kClientMetrics = 16,
  kGroup = 32,
};
// nullopt: no such type.
std::optional<ConfigResource> config_resource_of(int8_t type);

// Where a config's value comes from (Kafka's ConfigSource), as answers say it.
enum class ConfigSource : int8_t {
  kTopic = 1,
  kStaticBroker = 4,
  kDefault = 5,
  kBrokerLogger = 6,
};

// The code for a client that may not do this (describe or alter configs) to the resource; kNone if it may.
protocol::ErrorCode denial_on(const Services& services, const RequestContext& context, Operation operation,
                              ConfigResource type, std::string_view name);

struct ConfigProblem {
  protocol::ErrorCode code;
  std::string message;
};

// Why a resource of type broker or logger does not name this broker; nullopt if it does.
std::optional<ConfigProblem> broker_name_problem(const Settings& settings, std::string_view name);

// One value of a config under one name.
struct ConfigValue {
  std::string name;
  std::optional<std::string> value;
  ConfigSource source = ConfigSource::kDefault;
};

// A config with all its values, the one in force first (`values` is empty where Kafka tells no source).
struct DescribedConfig {
  std::string name;
  std::optional<std::string> value;
  ConfigType type = ConfigType::kString;
  std::vector<ConfigValue> values;
  bool is_read_only = false;
  std::string_view help;

  ConfigSource source() const { return values.empty() ? ConfigSource::kDefault : values.front().source; }
};

// All configs of a topic on which `set` is set; by name.
std::vector<DescribedConfig> topic_configs_of(const TopicConfigs& set, const Limits& limits);
// What Kafka's consumer, share and streams groups have, and subscriptions to clients' metrics: defaults only.
std::vector<DescribedConfig> group_configs();
std::vector<DescribedConfig> client_metrics_configs();

}  // namespace varve::broker
