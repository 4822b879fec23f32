// What DescribeConfigs tells of a broker. All of it is fixed when the broker starts, but for the level of its log.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/handlers/config_resources.h"

namespace varve::broker {

// Kafka's names, and KafScale's (kafscale.cache.bytes for KAFSCALE_CACHE_BYTES) where Kafka has none; by name. What the
// settings say; what topics are made with; and Kafka's settings of what is fixed here, at the values that hold. No
// secret. `addresses`: "PLAINTEXT://host:port" of each listener, as clients are told.
std::vector<DescribedConfig> broker_configs(const Settings& settings, const std::string& addresses);

// The one log that there is, under the name of Log4j's root logger.
inline constexpr std::string_view kRootLogger = "root";
// As Kafka spells levels: "INFO".
std::string log_level_text(const Logger& logger);
// nullopt: no such level.
std::optional<LogLevel> log_level_of(std::string_view text);

}  // namespace varve::broker
