#include "broker/settings/topic_configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "broker/settings/setting_readers.h"

namespace varve::broker {
namespace {

constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kLongMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kLongMax = std::numeric_limits<int64_t>::max();
constexpr std::string_view kMaxMessageBytes = "max.message.bytes";

// Java's parsers take a leading '+'.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return setting_readers::parse_number<T>(text);
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_replica_list(std::string_view value) {
  if (value.empty() || value == "*") return true;
  for (std::string_view item : topic_config_items(value)) {
    size_t colon = item.find(':');
    if (colon == std::string_view::npos || !parse_number<int32_t>(item.substr(0, colon)) ||
        !parse_number<int32_t>(item.substr(colon + 1))) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> type_problem(const TopicConfigRow& row, std::string_view value) {
  auto wrong = [&](std::string_view why) { return fmt::format("{}={}: {}", row.name, value, why); };
  switch (row.type) {
    case ConfigType::kBoolean:
      if (equals_ignoring_case(value, "true") || equals_ignoring_case(value, "false")) return std::nullopt;
      return wrong("neither true nor false");
    case ConfigType::kInt:
    case ConfigType::kLong: {
      bool is_int = row.type == ConfigType::kInt;
      std::optional<int64_t> number = parse_number<int64_t>(value);
      if (!number || (is_int && (*number > kIntMax || *number < std::numeric_limits<int32_t>::min()))) {
        return wrong(is_int ? "not a whole number of 32 bits" : "not a whole number of 64 bits");
      }
      if (*number < row.min) return wrong(fmt::format("below the least value, {}", row.min));
      if (*number > row.max) return wrong(fmt::format("above the largest value, {}", row.max));
      return std::nullopt;
    }
    case ConfigType::kDouble: {
      std::optional<double> number = parse_number<double>(value);
      if (!number) return wrong("not a number");
      if (!(*number >= 0 && *number <= 1)) return wrong("not between 0 and 1");
      return std::nullopt;
    }
    case ConfigType::kString:
      if (row.choices.empty() || std::ranges::find(row.choices, value) != row.choices.end())
        return std::nullopt;
      return wrong(fmt::format("allowed are {}", fmt::join(row.choices, ", ")));
    case ConfigType::kList:
      if (row.choices.empty()) {
        if (is_replica_list(value)) return std::nullopt;
        return wrong("neither * nor a list of partition:broker");
      }
      for (std::string_view item : topic_config_items(value)) {
        if (std::ranges::find(row.choices, item) == row.choices.end()) {
          return wrong(fmt::format("allowed are {}", fmt::join(row.choices, ", ")));
        }
      }
      if (topic_config_items(value).empty()) return wrong("the list is empty");
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<TopicConfigRow> make_table() {
  constexpr auto kBool = ConfigType::kBoolean;
  constexpr auto kInt = ConfigType::kInt;
  constexpr auto kLong = ConfigType::kLong;
  constexpr auto kInForce = ConfigEffect::kInForce;
  constexpr auto kByDesign = ConfigEffect::kByDesign;
  constexpr auto kNotYet = ConfigEffect::kNotYet;
  constexpr std::string_view kNoTiering =
      "tiered storage has no meaning here: everything is in the object store";
  return {
      {"cleanup.policy", ConfigType::kList, "delete", kNotYet, 0, 0, {"compact", "delete"}, ""},
      {"compression.gzip.level", kInt, "-1", kNotYet, -1, 9, {}, ""},
      {"compression.lz4.level", kInt, "9", kNotYet, 1, 17, {}, ""},
      {"compression.type",
       ConfigType::kString,
       "producer",
       kNotYet,
       0,
       0,
       {"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"},
       ""},
      {"compression.zstd.level", kInt, "3", kNotYet, -131072, 22, {}, ""},
      {"delete.retention.ms", kLong, "86400000", kNotYet, 0, kLongMax, {}, ""},
      {"diskless.enable",
       kBool,
       "true",
       kByDesign,
       0,
       0,
       {},
       "it asks for segments before each acknowledgement, which this version does not write"},
      {"file.delete.delay.ms", kLong, "60000", kByDesign, 0, kLongMax, {}, ""},
      {"flush.messages", kLong, "9223372036854775807", kByDesign, 1, kLongMax, {}, ""},
      {"flush.ms", kLong, "9223372036854775807", kByDesign, 0, kLongMax, {}, ""},
      {"follower.replication.throttled.replicas", ConfigType::kList, "", kByDesign, 0, 0, {}, ""},
      {"index.interval.bytes", kInt, "4096", kByDesign, 0, kIntMax, {}, ""},
      {"leader.replication.throttled.replicas", ConfigType::kList, "", kByDesign, 0, 0, {}, ""},
      {"local.retention.bytes", kLong, "-2", kByDesign, -2, kLongMax, {}, ""},
      {"local.retention.ms", kLong, "-2", kByDesign, -2, kLongMax, {}, ""},
      {"max.compaction.lag.ms", kLong, "9223372036854775807", kNotYet, 1, kLongMax, {}, ""},
      {kMaxMessageBytes, kInt, "1048588", kInForce, 0, kIntMax, {}, ""},
      {"message.timestamp.after.max.ms", kLong, "3600000", kInForce, 0, kLongMax, {}, ""},
      {"message.timestamp.before.max.ms", kLong, "9223372036854775807", kInForce, 0, kLongMax, {}, ""},
      {"message.timestamp.type",
       ConfigType::kString,
       "CreateTime",
       kInForce,
       0,
       0,
       {"CreateTime", "LogAppendTime"},
       ""},
      {"min.cleanable.dirty.ratio", ConfigType::kDouble, "0.5", kNotYet, 0, 0, {}, ""},
      {"min.compaction.lag.ms", kLong, "0", kNotYet, 0, kLongMax, {}, ""},
      {"min.insync.replicas", kInt, "1", kByDesign, 1, kIntMax, {}, ""},
      {"preallocate", kBool, "false", kByDesign, 0, 0, {}, ""},
      {"remote.log.copy.disable", kBool, "false", kByDesign, 0, 0, {}, kNoTiering},
      {"remote.log.delete.on.disable", kBool, "false", kByDesign, 0, 0, {}, kNoTiering},
      {"remote.storage.enable", kBool, "false", kByDesign, 0, 0, {}, kNoTiering},
      {"retention.bytes", kLong, "-1", kNotYet, kLongMin, kLongMax, {}, ""},
      {"retention.ms", kLong, "604800000", kNotYet, -1, kLongMax, {}, ""},
      {"segment.bytes", kInt, "1073741824", kNotYet, 1024 * 1024, kIntMax, {}, ""},
      {"segment.index.bytes", kInt, "10485760", kByDesign, 4, kIntMax, {}, ""},
      {"segment.jitter.ms", kLong, "0", kNotYet, 0, kLongMax, {}, ""},
      {"segment.ms", kLong, "604800000", kNotYet, 1, kLongMax, {}, ""},
      {"unclean.leader.election.enable", kBool, "false", kByDesign, 0, 0, {}, ""},
  };
}

const TopicConfigRow* find_config(std::string_view name) {
  const auto& table = topic_config_table();
  auto row = std::ranges::find(table, name, &TopicConfigRow::name);
  return row == table.end() ? nullptr : &*row;
}

}  // namespace

std::optional<int64_t> topic_config_number(std::string_view text) { return parse_number<int64_t>(text); }

std::vector<std::string_view> topic_config_items(std::string_view text) {
  std::vector<std::string_view> items;
  text = setting_readers::trim(text);
  while (!text.empty()) {
    size_t comma = text.find(',');
    items.push_back(setting_readers::trim(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return items;
}

const std::vector<TopicConfigRow>& topic_config_table() {
  static const std::vector<TopicConfigRow> kTable = make_table();
  return kTable;
}

std::optional<std::string> topic_config_problem(std::string_view name, std::string_view value) {
  const TopicConfigRow* row = find_config(name);
  if (row == nullptr) return fmt::format("{} is not a topic config", name);
  if (std::optional<std::string> problem = type_problem(*row, value)) return problem;
  if (!row->refused_unless_default.empty() && !equals_ignoring_case(value, row->default_text)) {
    return fmt::format("{}={} cannot be kept: {}", name, value, row->refused_unless_default);
  }
  return std::nullopt;
}

std::string topic_config_value(const std::map<std::string, std::string>& configs, const TopicConfigRow& row,
                               const Limits& limits) {
  auto found = configs.find(std::string(row.name));
  if (found != configs.end()) return found->second;
  if (row.name == kMaxMessageBytes) return std::to_string(limits.batch_bytes_max);
  return std::string(row.default_text);
}

std::vector<std::string> topic_configs_without_effect(const std::map<std::string, std::string>& configs) {
  std::vector<std::string> found;
  for (const auto& [name, value] : configs) {
    const TopicConfigRow* row = find_config(name);
    if (row == nullptr || row->effect != ConfigEffect::kNotYet) continue;
    // A negative retention asks to keep everything, which is so.
    bool is_kept_anyway = name.starts_with("retention.") && value.starts_with('-');
    if (is_kept_anyway || equals_ignoring_case(value, row->default_text)) continue;
    found.push_back(fmt::format("{}={}", name, value));
  }
  return found;
}

}  // namespace varve::broker
