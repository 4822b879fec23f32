#include "broker/handlers/broker_configs.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "broker/settings/setting_table.h"
#include "metadata/state/entry.h"

namespace varve::broker {
namespace {

// A setting of Kafka that nobody can set here (it is no row of setting_table()), and the value that holds.
struct FixedSetting {
  std::string_view name;
  ConfigType type;
  std::string_view value;
};

constexpr FixedSetting kFixedSettings[] = {
    {"authorizer.class.name", ConfigType::kString, ""},
    {"default.replication.factor", ConfigType::kInt, "1"},
    {"delete.topic.enable", ConfigType::kBoolean, "true"},
    {"log.cleaner.enable", ConfigType::kBoolean, "false"},
    {"log.retention.hours", ConfigType::kInt, "168"},
    {"log.retention.ms", ConfigType::kLong, "604800000"},
    {"log.roll.hours", ConfigType::kInt, "168"},
    {"log.roll.ms", ConfigType::kLong, "604800000"},
    {"max.request.partition.size.limit", ConfigType::kInt, "2000"},
    {"offsets.topic.num.partitions", ConfigType::kInt, "50"},
    {"offsets.topic.replication.factor", ConfigType::kInt, "1"},
    {"process.roles", ConfigType::kList, "broker,controller"},
    {"producer.id.expiration.ms", ConfigType::kInt, "86400000"},
    {"security.inter.broker.protocol", ConfigType::kString, "PLAINTEXT"},
};

struct LevelName {
  LogLevel level;
  std::string_view name;
};
// The first of a level is how it is told; Kafka has two levels that are not here.
constexpr LevelName kLevels[] = {
    {LogLevel::kDebug, "DEBUG"}, {LogLevel::kInfo, "INFO"},   {LogLevel::kWarn, "WARN"},
    {LogLevel::kError, "ERROR"}, {LogLevel::kDebug, "TRACE"}, {LogLevel::kError, "FATAL"},
};

// KafScale's console shows names of the environment in this form.
std::string dotted(std::string_view env) {
  std::string name(env);
  for (char& c : name) {
    if (c == '_') c = '.';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

ConfigType type_of(const SettingRow& row) {
  if (row.type == "true/false") return ConfigType::kBoolean;
  if (row.type == "list") return ConfigType::kList;
  bool is_text = row.type == "text" || row.type == "word" || row.type == "path" || row.type == "address";
  return is_text ? ConfigType::kString : ConfigType::kLong;
}

// "": there is none.
std::string default_of(const SettingRow& row) {
  // The cluster's, until a broker that names one has been started.
  if (row.key == "offsets.retention.minutes") {
    std::chrono::milliseconds retention(metadata::SetGroupLimits{}.offsets_retention_ms);
    return std::to_string(std::chrono::duration_cast<std::chrono::minutes>(retention).count());
  }
  return std::string(row.default_text);
}

DescribedConfig setting_config(const SettingRow& row, const Settings& settings) {
  DescribedConfig config;
  config.name = row.key.empty() ? dotted(row.env) : std::string(row.key);
  config.type = type_of(row);
  config.help = row.help;
  auto given = settings.given.find(row.env);
  if (given != settings.given.end()) {
    config.values.push_back({config.name, given->second, ConfigSource::kStaticBroker});
  }
  if (std::string text = default_of(row); !text.empty()) {
    config.values.push_back({config.name, std::move(text), ConfigSource::kDefault});
  }
  if (!config.values.empty()) config.value = config.values.front().value;
  return config;
}

DescribedConfig fixed_config(std::string_view name, ConfigType type, std::string value, ConfigSource source) {
  DescribedConfig config;
  config.name = name;
  config.type = type;
  config.value = value;
  config.values.push_back({config.name, std::move(value), source});
  return config;
}

}  // namespace

std::vector<DescribedConfig> broker_configs(const Settings& settings, const std::string& addresses) {
  // By name; what comes first stays.
  std::map<std::string, DescribedConfig> configs;
  auto add = [&configs](DescribedConfig config) {
    config.is_read_only = true;
    configs.try_emplace(config.name, std::move(config));
  };
  std::string id = std::to_string(settings.broker_id.value());
  for (const char* name : {"broker.id", "node.id"}) {
    add(fixed_config(name, ConfigType::kInt, id, ConfigSource::kStaticBroker));
  }
  for (const char* name : {"advertised.listeners", "listeners"}) {
    add(fixed_config(name, ConfigType::kList, addresses, ConfigSource::kStaticBroker));
  }
  for (const SettingRow& row : setting_table()) {
    if (row.group != SettingGroup::kLater && !row.is_secret) add(setting_config(row, settings));
  }
  for (const FixedSetting& fixed : kFixedSettings) {
    add(fixed_config(fixed.name, fixed.type, std::string(fixed.value), ConfigSource::kDefault));
  }
  // What a topic has on which nothing is set.
  for (const TopicConfigRow& row : topic_config_table()) {
    if (row.broker_name.empty()) continue;
    DescribedConfig config = fixed_config(
        row.broker_name, row.type, topic_config_value({}, row, settings.limits), ConfigSource::kDefault);
    config.help = row.help;
    add(std::move(config));
  }
  std::vector<DescribedConfig> sorted;
  for (auto& [name, config] : configs) sorted.push_back(std::move(config));
  return sorted;
}

std::string log_level_text(const Logger& logger) {
  for (const LevelName& level : kLevels) {
    if (logger.enabled(level.level)) return std::string(level.name);
  }
  return "OFF";
}

std::optional<LogLevel> log_level_of(std::string_view text) {
  auto found = std::ranges::find(kLevels, text, &LevelName::name);
  if (found == std::end(kLevels)) return std::nullopt;
  return found->level;
}

}  // namespace varve::broker
