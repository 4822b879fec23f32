// The one table of what may be configured on a topic.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"

namespace varve::broker {

enum class ConfigType : uint8_t { kBoolean, kInt, kLong, kDouble, kString, kList };

enum class ConfigEffect : uint8_t {
  kInForce,
  // What it asks for holds whatever its value is, or it is about files, replicas or leaders, which are not there.
  kByDesign,
  // Waits for what it steers (retention, compaction, compressing anew, segments); until then nothing follows from it.
  kNotYet,
};

struct TopicConfigRow {
  std::string_view name;
  ConfigType type;
  std::string_view default_text;
  ConfigEffect effect;
  // kInt and kLong.
  int64_t min = 0;
  int64_t max = 0;
  // kString and kList: what is allowed; empty: anything.
  std::vector<std::string_view> choices;
  // Not "": values other than the default are refused with this sentence, since they ask for another way of keeping
  // records. Values of a kNotYet row are taken all the same, so that topics can be made by clients that always send
  // them; the broker warns of them.
  std::string_view refused_unless_default;
};

// Every topic config of Apache Kafka 4.4, and diskless.enable of KIP-1150; by name. All are checked, kept and returned
// to clients; `effect` says what else. docs/configuration.md is printed from it.
const std::vector<TopicConfigRow>& topic_config_table();

// Why the value cannot be set, as a sentence that names both; nullopt if it can.
std::optional<std::string> topic_config_problem(std::string_view name, std::string_view value);

// The value in force: set on the topic, or the default. `limits` has the broker's own defaults.
std::string topic_config_value(const std::map<std::string, std::string>& configs, const TopicConfigRow& row,
                               const Limits& limits);

// "name=value" of those that ask for something other than the default and get it not yet.
std::vector<std::string> topic_configs_without_effect(const std::map<std::string, std::string>& configs);

// Values as Java reads them: a whole number, which may have a '+'; the items of a list.
std::optional<int64_t> topic_config_number(std::string_view text);
std::vector<std::string_view> topic_config_items(std::string_view text);

}  // namespace varve::broker
