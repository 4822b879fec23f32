// What a topic may be called and what may be configured on it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "metadata/client/image.h"
#include "protocol/records/validate.h"

namespace varve::broker {

// Why no topic can have this name, as a sentence; nullopt if it can. Kafka's rules, and names that would be taken
// for something else in the object store.
std::optional<std::string> topic_name_problem(std::string_view name);

// Names that differ only in '.' and '_' would share Kafka's metrics, so it refuses such a pair.
bool has_collision_characters(std::string_view name);
// The same for both names of such a pair.
std::string unified_name(std::string_view name);

// Kafka's two own topics, which clients may not fill by asking for them.
bool is_internal_topic(std::string_view name);

enum class ConfigType : uint8_t { kBoolean, kInt, kLong, kDouble, kString, kList };

struct TopicConfigRow {
  std::string_view name;
  ConfigType type;
  std::string_view default_text;
  // kInt and kLong.
  int64_t min = 0;
  int64_t max = 0;
  // kString and kList: what is allowed; empty: anything.
  std::vector<std::string_view> choices;
  // Values that would promise what is not kept are refused with this sentence.
  std::string_view refused_unless_default;
};

// Every topic config of Apache Kafka 4.4, and diskless.enable of KIP-1150; by name. Those that varve keeps by
// construction or has no mechanism for (flush.*, segment.*, index.*, ...) are checked, kept and returned.
const std::vector<TopicConfigRow>& topic_config_table();

// Why the value cannot be set, as a sentence that names both; nullopt if it can.
std::optional<std::string> topic_config_problem(std::string_view name, std::string_view value);

// The value in force: set on the topic, or the default. `limits` has the broker's own defaults.
std::string topic_config_value(const std::map<std::string, std::string>& configs, const TopicConfigRow& row,
                               const Limits& limits);

// How batches for the topic are checked (all but `now` and zstd_allowed).
protocol::records::ProduceRules produce_rules(const metadata::TopicView& topic, const Limits& limits);

}  // namespace varve::broker
