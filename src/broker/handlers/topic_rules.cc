#include "broker/handlers/topic_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace varve::broker {
namespace {

constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kLongMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kLongMax = std::numeric_limits<int64_t>::max();
constexpr std::string_view kMaxMessageBytes = "max.message.bytes";

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  // Java's parsers take a leading '+', from_chars does not.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> list_items(std::string_view text) {
  std::vector<std::string_view> items;
  text = trim(text);
  while (!text.empty()) {
    size_t comma = text.find(',');
    items.push_back(trim(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return items;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_replica_list(std::string_view value) {
  if (value.empty() || value == "*") return true;
  for (std::string_view item : list_items(value)) {
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
      for (std::string_view item : list_items(value)) {
        if (std::ranges::find(row.choices, item) == row.choices.end()) {
          return wrong(fmt::format("allowed are {}", fmt::join(row.choices, ", ")));
        }
      }
      if (list_items(value).empty()) return wrong("the list is empty");
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<TopicConfigRow> make_table() {
  constexpr auto kBool = ConfigType::kBoolean;
  constexpr auto kInt = ConfigType::kInt;
  constexpr auto kLong = ConfigType::kLong;
  constexpr std::string_view kNoTiering =
      "tiered storage has no meaning here: everything is in the object store";
  return {
      {"cleanup.policy", ConfigType::kList, "delete", 0, 0, {"compact", "delete"}, ""},
      {"compression.gzip.level", kInt, "-1", -1, 9, {}, ""},
      {"compression.lz4.level", kInt, "9", 1, 17, {}, ""},
      {"compression.type",
       ConfigType::kString,
       "producer",
       0,
       0,
       {"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"},
       ""},
      {"compression.zstd.level", kInt, "3", -131072, 22, {}, ""},
      {"delete.retention.ms", kLong, "86400000", 0, kLongMax, {}, ""},
      {"diskless.enable",
       kBool,
       "true",
       0,
       0,
       {},
       "it asks for segments before each acknowledgement, which this version does not write"},
      {"file.delete.delay.ms", kLong, "60000", 0, kLongMax, {}, ""},
      {"flush.messages", kLong, "9223372036854775807", 1, kLongMax, {}, ""},
      {"flush.ms", kLong, "9223372036854775807", 0, kLongMax, {}, ""},
      {"follower.replication.throttled.replicas", ConfigType::kList, "", 0, 0, {}, ""},
      {"index.interval.bytes", kInt, "4096", 0, kIntMax, {}, ""},
      {"leader.replication.throttled.replicas", ConfigType::kList, "", 0, 0, {}, ""},
      {"local.retention.bytes", kLong, "-2", -2, kLongMax, {}, ""},
      {"local.retention.ms", kLong, "-2", -2, kLongMax, {}, ""},
      {"max.compaction.lag.ms", kLong, "9223372036854775807", 1, kLongMax, {}, ""},
      {kMaxMessageBytes, kInt, "1048588", 0, kIntMax, {}, ""},
      {"message.timestamp.after.max.ms", kLong, "3600000", 0, kLongMax, {}, ""},
      {"message.timestamp.before.max.ms", kLong, "9223372036854775807", 0, kLongMax, {}, ""},
      {"message.timestamp.type",
       ConfigType::kString,
       "CreateTime",
       0,
       0,
       {"CreateTime", "LogAppendTime"},
       ""},
      {"min.cleanable.dirty.ratio", ConfigType::kDouble, "0.5", 0, 0, {}, ""},
      {"min.compaction.lag.ms", kLong, "0", 0, kLongMax, {}, ""},
      {"min.insync.replicas", kInt, "1", 1, kIntMax, {}, ""},
      {"preallocate", kBool, "false", 0, 0, {}, ""},
      {"remote.log.copy.disable", kBool, "false", 0, 0, {}, kNoTiering},
      {"remote.log.delete.on.disable", kBool, "false", 0, 0, {}, kNoTiering},
      {"remote.storage.enable", kBool, "false", 0, 0, {}, kNoTiering},
      {"retention.bytes", kLong, "-1", kLongMin, kLongMax, {}, ""},
      {"retention.ms", kLong, "604800000", -1, kLongMax, {}, ""},
      {"segment.bytes", kInt, "1073741824", 1024 * 1024, kIntMax, {}, ""},
      {"segment.index.bytes", kInt, "10485760", 4, kIntMax, {}, ""},
      {"segment.jitter.ms", kLong, "0", 0, kLongMax, {}, ""},
      {"segment.ms", kLong, "604800000", 1, kLongMax, {}, ""},
      {"unclean.leader.election.enable", kBool, "false", 0, 0, {}, ""},
  };
}

const TopicConfigRow* find_config(std::string_view name) {
  const auto& table = topic_config_table();
  auto row = std::ranges::find(table, name, &TopicConfigRow::name);
  return row == table.end() ? nullptr : &*row;
}

}  // namespace

std::optional<std::string> topic_name_problem(std::string_view name) {
  auto is_legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (name.empty()) return "a topic name cannot be empty";
  if (name == "." || name == "..") return fmt::format("'{}' cannot be a topic name", name);
  if (name.size() > kTopicNameCharsMax) {
    return fmt::format("a topic name of {} characters; at most {} are allowed", name.size(),
                       kTopicNameCharsMax);
  }
  if (!std::ranges::all_of(name, is_legal)) {
    return fmt::format(
        "'{}' cannot be a topic name: allowed are letters and digits of ASCII, '.', '_' and '-'", name);
  }
  for (std::string_view reserved : {"_wal", "_data", "_log", "manifest.json"}) {
    if (name == reserved) {
      return fmt::format("'{}' cannot be a topic name: it has a meaning of its own in the object store",
                         name);
    }
  }
  return std::nullopt;
}

bool has_collision_characters(std::string_view name) {
  return name.find_first_of("._") != std::string_view::npos;
}

std::string unified_name(std::string_view name) {
  std::string unified(name);
  std::ranges::replace(unified, '_', '.');
  return unified;
}

bool is_internal_topic(std::string_view name) {
  return name == "__consumer_offsets" || name == "__transaction_state";
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

protocol::records::ProduceRules produce_rules(const metadata::TopicView& topic, const Limits& limits) {
  protocol::records::ProduceRules rules;
  rules.batch_bytes_max = limits.batch_bytes_max;
  auto number = [&topic](const char* name, auto& into) {
    auto found = topic.configs.find(name);
    if (found == topic.configs.end()) return;
    if (std::optional<int64_t> value = parse_number<int64_t>(found->second)) {
      into = static_cast<std::remove_reference_t<decltype(into)>>(*value);
    }
  };
  if (topic.configs.empty()) return rules;
  number("max.message.bytes", rules.batch_bytes_max);
  number("message.timestamp.before.max.ms", rules.timestamp_before_ms_max);
  number("message.timestamp.after.max.ms", rules.timestamp_after_ms_max);
  auto type = topic.configs.find("message.timestamp.type");
  if (type != topic.configs.end() && type->second == "LogAppendTime") {
    rules.timestamp_type = protocol::records::TimestampType::kLogAppendTime;
  }
  auto policy = topic.configs.find("cleanup.policy");
  if (policy != topic.configs.end()) {
    std::vector<std::string_view> policies = list_items(policy->second);
    rules.keys_required = std::ranges::find(policies, "compact") != policies.end();
  }
  return rules;
}

}  // namespace varve::broker
