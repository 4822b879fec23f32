#include "broker/handlers/topic_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/settings/topic_configs.h"

namespace varve::broker {

namespace {

// Whether it is set on the topic; what holds where nothing is set is "delete".
bool has_cleanup_policy(const metadata::TopicView& topic, std::string_view policy) {
  auto set = topic.configs.find("cleanup.policy");
  if (set == topic.configs.end()) return false;
  std::vector<std::string_view> policies = topic_config_items(set->second);
  return std::ranges::find(policies, policy) != policies.end();
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

bool is_compacted_only(const metadata::TopicView& topic) {
  return has_cleanup_policy(topic, "compact") && !has_cleanup_policy(topic, "delete");
}

protocol::records::ProduceRules produce_rules(const metadata::TopicView& topic, const Limits& limits) {
  protocol::records::ProduceRules rules;
  rules.batch_bytes_max = limits.batch_bytes_max;
  auto number = [&topic](const char* name, auto& into) {
    auto found = topic.configs.find(name);
    if (found == topic.configs.end()) return;
    if (std::optional<int64_t> value = topic_config_number(found->second)) {
      into = static_cast<std::remove_reference_t<decltype(into)>>(*value);
    }
  };
  if (topic.configs.empty()) return rules;
  number("max.message.bytes", rules.batch_bytes_max);
  number("max.decompressed.message.bytes", rules.decompressed_bytes_max);
  number("message.timestamp.before.max.ms", rules.timestamp_before_ms_max);
  number("message.timestamp.after.max.ms", rules.timestamp_after_ms_max);
  auto type = topic.configs.find("message.timestamp.type");
  if (type != topic.configs.end() && type->second == "LogAppendTime") {
    rules.timestamp_type = protocol::records::TimestampType::kLogAppendTime;
  }
  rules.keys_required = has_cleanup_policy(topic, "compact");
  return rules;
}

}  // namespace varve::broker
