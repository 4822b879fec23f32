#include "broker/settings/listeners.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "broker/settings/setting_readers.h"
#include "broker/settings/setting_table.h"

namespace varve::broker {
namespace {

using setting_readers::trim;

constexpr std::string_view kPlaintext = "PLAINTEXT";
// Kafka's other security protocols: a listener of such a name speaks it where no map says otherwise.
constexpr std::string_view kLaterProtocols[] = {"SSL", "SASL_PLAINTEXT", "SASL_SSL"};
constexpr size_t kListenersMax = 16;

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

bool is_listener_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

// A comma at the end is none too many, as in Kafka's map of protocols.
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items = setting_readers::list_items(text);
  if (items.size() > 1 && items.back().empty()) items.pop_back();
  return items;
}

}  // namespace

Result<NamedAddresses, std::string> parse_named_addresses(std::string_view text) {
  NamedAddresses result;
  std::set<std::string> names;
  for (std::string_view item : items_of(text)) {
    size_t mark = item.find("://");
    if (mark == std::string_view::npos)
      return std::unexpected(fmt::format("'{}' is not NAME://host:port", item));
    std::string name = upper(item.substr(0, mark));
    std::string_view address_text = item.substr(mark + 3);
    std::optional<runtime::Address> address = parse_address(address_text, 0);
    // The port is never left out: which one would be meant?
    if (!is_listener_name(name) || !address || address_text.find(':') == std::string_view::npos) {
      return std::unexpected(fmt::format("'{}' is not NAME://host:port", item));
    }
    if (std::ranges::find(kLaterProtocols, name) != std::end(kLaterProtocols)) {
      return std::unexpected(fmt::format("{} is not there yet: this version serves PLAINTEXT only", name));
    }
    if (!names.insert(name).second) return std::unexpected(fmt::format("{} is named twice", name));
    result.emplace_back(std::move(name), std::move(*address));
  }
  if (result.empty()) return std::unexpected("it names no listener");
  if (result.size() > kListenersMax) {
    return std::unexpected(fmt::format("more than {} listeners", kListenersMax));
  }
  return result;
}

std::optional<std::string> protocol_map_problem(std::string_view text) {
  for (std::string_view item : items_of(text)) {
    size_t colon = item.find(':');
    if (colon == std::string_view::npos || !is_listener_name(upper(trim(item.substr(0, colon))))) {
      return fmt::format("'{}' is not NAME:PROTOCOL", item);
    }
    std::string protocol = upper(trim(item.substr(colon + 1)));
    if (protocol == kPlaintext) continue;
    if (std::ranges::find(kLaterProtocols, protocol) != std::end(kLaterProtocols)) {
      return fmt::format("{} is not there yet: this version serves PLAINTEXT only", protocol);
    }
    return fmt::format("{} is no security protocol", protocol);
  }
  return std::nullopt;
}

bool names_a_host(const std::string& host) { return !host.empty() && host != "0.0.0.0" && host != "::"; }

std::optional<SettingsError> advertise(std::vector<ListenerSettings>& listeners,
                                       const std::map<std::string, runtime::Address>& advertised,
                                       const std::string& default_host) {
  for (const auto& [name, address] : advertised) {
    std::string text = fmt::format("{}://{}", name, address.to_string());
    if (std::ranges::find(listeners, name, &ListenerSettings::name) == listeners.end()) {
      return SettingsError{"KAFKA_ADVERTISED_LISTENERS", text,
                           "KAFKA_LISTENERS has no listener of this name"};
    }
    if (!names_a_host(address.host)) {
      return SettingsError{"KAFKA_ADVERTISED_LISTENERS", text, "clients cannot connect to every interface"};
    }
  }
  for (ListenerSettings& listener : listeners) {
    auto found = advertised.find(listener.name);
    if (found != advertised.end()) {
      listener.advertised = found->second;
    } else {
      listener.advertised.host = names_a_host(listener.address.host) ? listener.address.host : default_host;
    }
  }
  return std::nullopt;
}

}  // namespace varve::broker
