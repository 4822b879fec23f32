#include <fmt/format.h>

#include "broker/settings/setting_table.h"
#include "broker/settings/settings.h"
#include "broker/settings/topic_configs.h"

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
    case SettingGroup::kGroups:
      return "Consumer groups";
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
    "Printed by `varve broker --print-configuration-docs` from the tables in the code "
    "(`setting_table.cc` and `topic_configs.cc` in `src/broker/settings/`); a test compares the two.\n"
    "\n"
    "A setting is given in the environment, or in a file of `name=value` lines passed with `--config FILE` "
    "(either "
    "name of a setting may be used there; lines that start with `#` are comments). The environment wins. An "
    "empty "
    "value counts as not set. A wrong value stops the start, with the setting, the value and what is "
    "allowed. "
    "Environment names that mean nothing to a broker are warned about if they start with `KAFSCALE_`, "
    "`DISKLESS_` or "
    "`VARVE_`; of those with `KAFKA_`, which other programs have too, only what is nearly a setting.\n";

constexpr std::string_view kTopicIntroduction =
    "\n## Topic settings\n"
    "\n"
    "What Kafka lets be configured on a topic can be given when it is made (CreateTopics) and changed later "
    "(IncrementalAlterConfigs, AlterConfigs; `kafka-configs.sh`). All of it is "
    "checked, kept, and told to clients that ask. What else follows, from the moment a change is answered:\n"
    "\n"
    "- *in force*: batches of the topic are held to it.\n"
    "- *by design*: what it asks for holds whatever its value is (an acknowledged record is in the object "
    "store, "
    "however many replicas `min.insync.replicas` wants), or it is about files, replicas or leaders, which "
    "varve does "
    "not have. `diskless.enable` and `remote.storage.enable` take their default only.\n"
    "- *not yet*: nothing. No record is deleted by age or size or compacted, and no batch is compressed "
    "anew; of "
    "`cleanup.policy`, only that `compact` demands a key of each record is in force. The broker warns when a "
    "topic is "
    "made with another value than the default.\n"
    "\n"
    "| setting | default | effect | what it asks for |\n"
    "|---|---|---|---|\n";

std::string_view name_of(ConfigEffect effect) {
  switch (effect) {
    case ConfigEffect::kInForce:
      return "in force";
    case ConfigEffect::kByDesign:
      return "by design";
    case ConfigEffect::kNotYet:
      return "not yet";
  }
  return "";
}

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
  page += kTopicIntroduction;
  for (const TopicConfigRow& row : topic_config_table()) {
    std::string value = row.default_text.empty() ? "empty" : fmt::format("`{}`", row.default_text);
    page += fmt::format("| `{}` | {} | {} | {} |\n", row.name, value, name_of(row.effect), row.help);
  }
  return page;
}

}  // namespace varve::broker
