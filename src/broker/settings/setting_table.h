// The one table of settings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/settings/settings.h"

namespace varve::broker {

enum class SettingGroup : uint8_t {
  kNetwork,
  kStorage,
  kWritePath,
  kTopics,
  kGroups,
  kLimits,
  kOperation,
  kLater
};

struct SettingRow {
  SettingGroup group;
  // Spelling in the environment.
  std::string_view env;
  // Kafka's or the KIP's spelling, accepted in the file beside `env`; "" if there is none.
  std::string_view key;
  std::string_view type;
  // Read like a value that was given; "" leaves the field as it is made.
  std::string_view default_text;
  // For people: bounds or choices; "" if the type says it all.
  std::string allowed;
  std::string_view help;
  // Puts the value into the settings, or says what is wrong with it (what is allowed follows from the row).
  std::function<std::optional<std::string>(std::string_view text, Settings& settings)> read;
  bool is_secret = false;
};

// In the order of the page. Immutable.
const std::vector<SettingRow>& setting_table();

// Whether the name belongs to another program of KafScale (its console, operator, proxy, tests), and so is none of
// a broker's business.
bool belongs_to_another_program(std::string_view env);

// "host:port", ":port" (every interface), "[v6]:port", "host" (with `default_port`).
std::optional<runtime::Address> parse_address(std::string_view text, uint16_t default_port);

}  // namespace varve::broker
