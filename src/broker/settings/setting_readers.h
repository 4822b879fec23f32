// Makers of SettingRow::read: each reads one type of value into one member of Settings.
#pragma once

#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "broker/settings/setting_table.h"

namespace varve::broker::setting_readers {

using Reader = decltype(SettingRow::read);

// Without the blanks and line ends around it.
std::string_view trim(std::string_view text);

// What stands between commas, without the blanks around it; an empty item too, but an empty text has none.
std::vector<std::string_view> list_items(std::string_view text);

std::optional<bool> parse_bool(std::string_view text);

// The whole text as a number, without blanks or a leading '+'.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A number between the bounds, turned into the member by `assign(settings, number)`.
template <class Assign>
Reader integer(int64_t min, int64_t max, Assign assign) {
  return [=](std::string_view text, Settings& settings) -> std::optional<std::string> {
    std::optional<int64_t> value = parse_number<int64_t>(text);
    if (!value) return "not a whole number";
    if (*value < min) return "too small";
    if (*value > max) return "too large";
    assign(settings, *value);
    return std::nullopt;
  };
}

template <class T>
Reader integer(int64_t min, int64_t max, T Settings::* member) {
  return integer(min, max, [member](Settings& settings, int64_t value) { settings.*member = T(value); });
}
inline Reader integer(int64_t min, int64_t max, size_t Limits::* member) {
  return integer(min, max,
                 [member](Settings& settings, int64_t value) { settings.limits.*member = size_t(value); });
}
// The text counts units (1ms, 1s).
inline Reader duration(Duration unit, int64_t min, int64_t max, Duration Settings::* member) {
  return integer(min, max, [=](Settings& settings, int64_t value) { settings.*member = unit * value; });
}

Reader boolean(bool Settings::* member);
Reader text(std::string Settings::* member);
// Only these values (any case) are taken, and change nothing: the rest of the setting is not built yet.
Reader later(std::vector<std::string_view> neutral, std::string_view what);

}  // namespace varve::broker::setting_readers
