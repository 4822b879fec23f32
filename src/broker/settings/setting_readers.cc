#include "broker/settings/setting_readers.h"

#include <fmt/format.h>

#include <algorithm>

namespace varve::broker::setting_readers {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> list_items(std::string_view text) {
  std::vector<std::string_view> items;
  text = trim(text);
  if (text.empty()) return items;
  for (;;) {
    size_t comma = text.find(',');
    items.push_back(trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

// The spellings that KafScale takes.
std::optional<bool> parse_bool(std::string_view text) {
  std::string word = lower(text);
  if (word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  return std::nullopt;
}

Reader boolean(bool Settings::* member) {
  return [member](std::string_view text, Settings& settings) -> std::optional<std::string> {
    std::optional<bool> value = parse_bool(text);
    if (!value) return "not a truth value";
    settings.*member = *value;
    return std::nullopt;
  };
}

Reader text(std::string Settings::* member) {
  return [member](std::string_view value, Settings& settings) -> std::optional<std::string> {
    settings.*member = std::string(value);
    return std::nullopt;
  };
}

Reader later(std::vector<std::string_view> neutral, std::string_view what) {
  return
      [neutral = std::move(neutral), what](std::string_view text, Settings&) -> std::optional<std::string> {
        std::string word = lower(text);
        if (std::ranges::find(neutral, std::string_view(word)) != neutral.end()) return std::nullopt;
        return fmt::format("this version of varve cannot do it yet ({}); unset it to start without", what);
      };
}

}  // namespace varve::broker::setting_readers
