#include "broker/handlers/config_resources.h"

#include <fmt/format.h>

#include <charconv>

#include "broker/handlers/authorization.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;

// A config of which only Kafka's default is known here.
struct FixedConfig {
  std::string_view name;
  ConfigType type;
  std::string_view value;
  std::string_view broker_name;  // "": none
};

// Settings of the group protocols that came after the classic one, as Apache Kafka 4.4.0 answers for a group on which
// nothing is set.
constexpr FixedConfig kGroupConfigs[] = {
    {"consumer.assignment.interval.ms", ConfigType::kInt, "1000", "group.consumer.assignment.interval.ms"},
    {"consumer.heartbeat.interval.ms", ConfigType::kInt, "5000", "group.consumer.heartbeat.interval.ms"},
    {"consumer.session.timeout.ms", ConfigType::kInt, "45000", "group.consumer.session.timeout.ms"},
    {"errors.deadletterqueue.copy.record.enable", ConfigType::kBoolean, "false",
     "errors.deadletterqueue.copy.record.enable"},
    {"errors.deadletterqueue.topic.name", ConfigType::kString, "", "errors.deadletterqueue.topic.name"},
    {"share.assignment.interval.ms", ConfigType::kInt, "1000", "group.share.assignment.interval.ms"},
    {"share.auto.offset.reset", ConfigType::kString, "latest", "share.auto.offset.reset"},
    {"share.delivery.count.limit", ConfigType::kInt, "5", "group.share.delivery.count.limit"},
    {"share.heartbeat.interval.ms", ConfigType::kInt, "5000", "group.share.heartbeat.interval.ms"},
    {"share.isolation.level", ConfigType::kString, "read_uncommitted", "share.isolation.level"},
    {"share.partition.max.record.locks", ConfigType::kInt, "2000", "group.share.partition.max.record.locks"},
    {"share.record.lock.duration.ms", ConfigType::kInt, "30000", "group.share.record.lock.duration.ms"},
    {"share.renew.acknowledge.enable", ConfigType::kBoolean, "true", "share.renew.acknowledge.enable"},
    {"share.session.timeout.ms", ConfigType::kInt, "45000", "group.share.session.timeout.ms"},
    {"streams.assignment.interval.ms", ConfigType::kInt, "1000", "group.streams.assignment.interval.ms"},
    {"streams.assignor.name", ConfigType::kString, "sticky", "group.streams.assignors"},
    {"streams.heartbeat.interval.ms", ConfigType::kInt, "5000", "group.streams.heartbeat.interval.ms"},
    {"streams.initial.rebalance.delay.ms", ConfigType::kInt, "3000",
     "group.streams.initial.rebalance.delay.ms"},
    {"streams.num.standby.replicas", ConfigType::kInt, "0", "group.streams.num.standby.replicas"},
    {"streams.rack.aware.assignment.tags", ConfigType::kList, "", "group.streams.rack.aware.assignment.tags"},
    {"streams.session.timeout.ms", ConfigType::kInt, "45000", "group.streams.session.timeout.ms"},
};

constexpr FixedConfig kClientMetricsConfigs[] = {
    {"interval.ms", ConfigType::kInt, "300000", ""},
    {"match", ConfigType::kList, "", ""},
    {"metrics", ConfigType::kList, "", ""},
};

template <size_t count>
std::vector<DescribedConfig> described(const FixedConfig (&fixed)[count]) {
  std::vector<DescribedConfig> configs;
  for (const FixedConfig& config : fixed) {
    DescribedConfig& row = configs.emplace_back();
    row.name = config.name;
    row.value = config.value;
    row.type = config.type;
    if (config.broker_name.empty()) continue;
    row.values.push_back({std::string(config.broker_name), row.value, ConfigSource::kDefault});
  }
  return configs;
}

}  // namespace

std::optional<ConfigResource> config_resource_of(int8_t type) {
  for (ConfigResource known : {ConfigResource::kTopic, ConfigResource::kBroker, ConfigResource::kBrokerLogger,
                               ConfigResource::kClientMetrics, ConfigResource::kGroup}) {
    if (static_cast<int8_t>(known) == type) return known;
  }
  return std::nullopt;
}

ErrorCode denial_on(const Services& services, const RequestContext& context, Operation operation,
                    ConfigResource type, std::string_view name) {
  switch (type) {
    case ConfigResource::kTopic:
      if (is_allowed(services, context, operation, ResourceType::kTopic, name)) return ErrorCode::kNone;
      return ErrorCode::kTopicAuthorizationFailed;
    case ConfigResource::kGroup:
      if (is_allowed(services, context, operation, ResourceType::kGroup, name)) return ErrorCode::kNone;
      return ErrorCode::kGroupAuthorizationFailed;
    case ConfigResource::kBroker:
    case ConfigResource::kBrokerLogger:
    case ConfigResource::kClientMetrics:
      break;
  }
  return is_allowed_on_cluster(services, context, operation) ? ErrorCode::kNone
                                                             : ErrorCode::kClusterAuthorizationFailed;
}

std::optional<ConfigProblem> broker_name_problem(const Settings& settings, std::string_view name) {
  int32_t id = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() || end != name.data() + name.size()) {
    return ConfigProblem{ErrorCode::kInvalidRequest,
                         fmt::format("a broker is named by its id, and '{}' is no number", name)};
  }
  if (id == settings.broker_id.value()) return std::nullopt;
  return ConfigProblem{
      ErrorCode::kInvalidRequest,
      fmt::format("this is broker {}, which cannot answer for {}", settings.broker_id, name)};
}

std::vector<DescribedConfig> topic_configs_of(const TopicConfigs& set, const Limits& limits) {
  std::vector<DescribedConfig> configs;
  for (const TopicConfigRow& row : topic_config_table()) {
    DescribedConfig& config = configs.emplace_back();
    config.name = row.name;
    config.value = topic_config_value(set, row, limits);
    config.type = row.type;
    config.help = row.help;
    if (set.contains(config.name)) config.values.push_back({config.name, config.value, ConfigSource::kTopic});
    if (row.broker_name.empty()) continue;
    std::string of_broker = topic_config_value({}, row, limits);
    if (of_broker != row.default_text) {
      config.values.push_back(
          {std::string(row.broker_name), std::move(of_broker), ConfigSource::kStaticBroker});
    }
    config.values.push_back(
        {std::string(row.broker_name), std::string(row.default_text), ConfigSource::kDefault});
  }
  return configs;
}

std::vector<DescribedConfig> group_configs() { return described(kGroupConfigs); }

std::vector<DescribedConfig> client_metrics_configs() { return described(kClientMetricsConfigs); }

}  // namespace varve::broker
