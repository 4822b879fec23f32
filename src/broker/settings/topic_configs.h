// The one table of what may be configured on a topic.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"

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
  ConfigType type{};
  std::string_view default_text;
  ConfigEffect effect{};
  // kInt and kLong: the range, and one value that is allowed beside it.
  int64_t min = 0;
  int64_t max = 0;
  std::optional<int64_t> also{};
  // kString and kList: what is allowed. A list without choices is one of replicas.
  std::vector<std::string_view> choices{};
  // Not "": values other than the default are refused with this sentence, since they ask for another way of keeping
  // records. Values of a kNotYet row are taken all the same, so that topics can be made by clients that always send
  // them; the broker warns of them.
  std::string_view refused_unless_default{};
  // Kafka's name for the same on a broker, where its default is told under that name; "" if there is none.
  std::string_view broker_name{};
  // For people: what it asks for.
  std::string_view help;
};

using TopicConfigs = std::map<std::string, std::string>;

// Every topic config of Apache Kafka 4.4, and diskless.enable of KIP-1150; by name. All are checked, kept and returned
// to clients; `effect` says what else. docs/configuration.md is printed from it.
const std::vector<TopicConfigRow>& topic_config_table();
// nullptr: no topic config has this name.
const TopicConfigRow* find_topic_config(std::string_view name);

// The value as it is kept and told to clients (numbers, truth values and lists written in one way, as Kafka prints what
// it has parsed), or why it cannot be set, as a sentence that names both.
Result<std::string, std::string> read_topic_config(std::string_view name, std::string_view value);
// Of all names and values that are set on a topic: they have to fit into an entry of the metadata log.
inline constexpr size_t kTopicConfigBytesMax = 64 * kKiB;
// All that is set on a topic, with the rules between settings. The first problem, if there is one.
Result<TopicConfigs, std::string> read_topic_configs(const TopicConfigs& given);

// The value in force: set on the topic, or the default. `limits` has the broker's own defaults.
std::string topic_config_value(const TopicConfigs& configs, const TopicConfigRow& row, const Limits& limits);

// "name=value" of those that ask for something other than the default and get it not yet.
std::vector<std::string> topic_configs_without_effect(const TopicConfigs& configs);

// Values as Java reads them: a whole number, which may have a '+'; the items of a list.
std::optional<int64_t> topic_config_number(std::string_view text);
std::vector<std::string_view> topic_config_items(std::string_view text);

}  // namespace varve::broker
