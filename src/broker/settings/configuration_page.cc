#include <fmt/format.h>

#include "broker/settings/setting_table.h"
#include "broker/settings/settings.h"

namespace varve::broker {
namespace {

std::string_view heading(SettingGroup group) {
  switch (group) {
    case SettingGroup::kNetwork:
      return "Network";
    case SettingGroup::kStorage:
      return "Storage";
    case SettingGroup::kWritePath:
      return "Write path";
    case SettingGroup::kTopics:
      return "Topics";
    case SettingGroup::kLimits:
      return "Limits";
    case SettingGroup::kOperation:
      return "Operation";
    case SettingGroup::kLater:
      return "Known, not built yet";
  }
  return "";
}

constexpr std::string_view kIntroduction =
    "# Configuration\n"
    "\n"
    "Printed by `varve broker --print-configuration-docs` from the table in the code "
    "(`src/broker/settings/setting_table.cc`); a test compares the two.\n"
    "\n"
    "A setting is given in the environment, or in a file of `name=value` lines passed with `--config FILE` "
    "(either "
    "name of a setting may be used there; lines that start with `#` are comments). The environment wins. An "
    "empty "
    "value counts as not set. A wrong value stops the start, with the setting, the value and what is "
    "allowed. "
    "Environment names that start with `KAFSCALE_` and mean nothing to a broker are warned about.\n";

void print_row(const SettingRow& row, std::string& page) {
  page += fmt::format("\n### `{}`\n\n", row.env);
  if (row.group == SettingGroup::kLater) {
    page += fmt::format("For {}. Until then: {}.\n", row.help, row.allowed);
    return;
  }
  if (!row.key.empty()) page += fmt::format("Also `{}`. ", row.key);
  page += fmt::format("Type: {}", row.type);
  if (!row.allowed.empty()) page += fmt::format(", {}", row.allowed);
  page += row.default_text.empty() ? ". Default: not set.\n"
                                   : fmt::format(". Default: `{}`.\n", row.default_text);
  page += fmt::format("\n{}\n", row.help);
}

}  // namespace

std::string configuration_page() {
  std::string page(kIntroduction);
  std::optional<SettingGroup> group;
  for (const SettingRow& row : setting_table()) {
    if (group != row.group) {
      page += fmt::format("\n## {}\n", heading(row.group));
      if (row.group == SettingGroup::kLater) {
        page +=
            "\nSettings of KafScale, or of later versions. Setting one to a value that asks for something "
            "stops the "
            "start: nothing is left out in silence.\n";
      }
    }
    group = row.group;
    print_row(row, page);
  }
  return page;
}

}  // namespace varve::broker
