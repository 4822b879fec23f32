#include "broker/settings/topic_configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "broker/settings/setting_readers.h"

namespace varve::broker {
namespace {

constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kIntMin = std::numeric_limits<int32_t>::min();
constexpr std::string_view kMaxMessageBytes = "max.message.bytes";
constexpr std::string_view kMaxDecompressedBytes = "max.decompressed.message.bytes";

// A value as it is kept, or why not.
using ReadValue = Result<std::string, std::string>;

// Java's parsers take a leading '+'.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return setting_readers::parse_number<T>(text);
}

// Java's doubles may end with their type.
std::optional<double> parse_double(std::string_view text) {
  if (text.size() > 1 && std::string_view("fFdD").contains(text.back())) text.remove_suffix(1);
  return parse_number<double>(text);
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// As Java prints a double: at least one digit behind the point.
std::string double_text(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

ReadValue read_number(const TopicConfigRow& row, std::string_view value) {
  bool is_int = row.type == ConfigType::kInt;
  std::optional<int64_t> number = parse_number<int64_t>(value);
  if (!number || (is_int && (*number > kIntMax || *number < kIntMin))) {
    return std::unexpected(fmt::format("not a whole number of {} bits", is_int ? 32 : 64));
  }
  if (number != row.also) {
    if (*number < row.min) return std::unexpected(fmt::format("below the least value, {}", row.min));
    if (*number > row.max) return std::unexpected(fmt::format("above the largest value, {}", row.max));
  }
  return std::to_string(*number);
}

bool is_replica(std::string_view item) {
  auto is_number = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  size_t colon = item.find(':');
  return colon != std::string_view::npos && is_number(item.substr(0, colon)) &&
         is_number(item.substr(colon + 1));
}

ReadValue read_list(const TopicConfigRow& row, std::string_view value) {
  std::vector<std::string_view> items = topic_config_items(value);
  for (std::string_view item : items) {
    if (item.empty()) return std::unexpected(std::string("an item of the list is empty"));
    if (row.choices.empty() && !is_replica(item) && (item != "*" || items.size() > 1)) {
      return std::unexpected(std::string("neither * nor a list of partition:broker"));
    }
    if (!row.choices.empty() && std::ranges::find(row.choices, item) == row.choices.end()) {
      return std::unexpected(fmt::format("allowed are {}", fmt::join(row.choices, ", ")));
    }
  }
  return fmt::format("{}", fmt::join(items, ","));
}

ReadValue read_value(const TopicConfigRow& row, std::string_view value) {
  switch (row.type) {
    case ConfigType::kBoolean:
      if (equals_ignoring_case(value, "true")) return "true";
      if (equals_ignoring_case(value, "false")) return "false";
      return std::unexpected(std::string("neither true nor false"));
    case ConfigType::kInt:
    case ConfigType::kLong:
      return read_number(row, value);
    case ConfigType::kDouble: {
      std::optional<double> number = parse_double(value);
      if (!number) return std::unexpected(std::string("not a number"));
      if (!(*number >= 0 && *number <= 1)) return std::unexpected(std::string("not between 0 and 1"));
      return double_text(*number);
    }
    case ConfigType::kString:
      if (std::ranges::find(row.choices, value) != row.choices.end()) return std::string(value);
      return std::unexpected(fmt::format("allowed are {}", fmt::join(row.choices, ", ")));
    case ConfigType::kList:
      return read_list(row, value);
  }
  return std::unexpected(std::string("of no known type"));
}

// The number in force of a row that is one.
int64_t number_of(const TopicConfigs& configs, std::string_view name) {
  const TopicConfigRow& row = *find_topic_config(name);
  auto set = configs.find(std::string(name));
  return parse_number<int64_t>(set == configs.end() ? row.default_text : set->second).value_or(0);
}

}  // namespace

const TopicConfigRow* find_topic_config(std::string_view name) {
  const auto& table = topic_config_table();
  auto row = std::ranges::lower_bound(table, name, {}, &TopicConfigRow::name);
  return row == table.end() || row->name != name ? nullptr : &*row;
}

std::optional<int64_t> topic_config_number(std::string_view text) { return parse_number<int64_t>(text); }

std::vector<std::string_view> topic_config_items(std::string_view text) {
  return setting_readers::list_items(text);
}

Result<std::string, std::string> read_topic_config(std::string_view name, std::string_view value) {
  const TopicConfigRow* row = find_topic_config(name);
  if (row == nullptr) return std::unexpected(fmt::format("{} is not a topic config", name));
  ReadValue read = read_value(*row, setting_readers::trim(value));
  if (!read) return std::unexpected(fmt::format("{}={}: {}", name, value, read.error()));
  if (!row->refused_unless_default.empty() && *read != row->default_text) {
    return std::unexpected(fmt::format("{}={} cannot be kept: {}", name, value, row->refused_unless_default));
  }
  return read;
}

Result<TopicConfigs, std::string> read_topic_configs(const TopicConfigs& given) {
  TopicConfigs configs;
  size_t bytes = 0;
  for (const auto& [name, value] : given) {
    bytes += name.size() + value.size();
    if (bytes > kTopicConfigBytesMax) {
      return std::unexpected(fmt::format("the configs of a topic may have {} bytes", kTopicConfigBytesMax));
    }
    auto read = read_topic_config(name, value);
    if (!read) return std::unexpected(std::move(read.error()));
    configs.emplace(name, std::move(*read));
  }
  int64_t lag_min = number_of(configs, "min.compaction.lag.ms");
  int64_t lag_max = number_of(configs, "max.compaction.lag.ms");
  if (lag_min > lag_max) {
    return std::unexpected(
        fmt::format("min.compaction.lag.ms={} is above max.compaction.lag.ms={}", lag_min, lag_max));
  }
  return configs;
}

std::string topic_config_value(const TopicConfigs& configs, const TopicConfigRow& row, const Limits& limits) {
  auto found = configs.find(std::string(row.name));
  if (found != configs.end()) return found->second;
  if (row.name == kMaxMessageBytes) return std::to_string(limits.batch_bytes_max);
  if (row.name == kMaxDecompressedBytes) return std::to_string(limits.decompressed_batch_bytes_max);
  return std::string(row.default_text);
}

std::vector<std::string> topic_configs_without_effect(const TopicConfigs& configs) {
  std::vector<std::string> found;
  for (const auto& [name, value] : configs) {
    const TopicConfigRow* row = find_topic_config(name);
    if (row == nullptr || row->effect != ConfigEffect::kNotYet) continue;
    // A negative retention and a policy of nothing ask to keep everything, which is so.
    bool is_kept_anyway = (name.starts_with("retention.") && value.starts_with('-')) ||
                          (name == "cleanup.policy" && value.empty());
    if (is_kept_anyway || value == row->default_text) continue;
    found.push_back(fmt::format("{}={}", name, value));
  }
  return found;
}

}  // namespace varve::broker
