// The settings of named listeners, in Kafka's notation: NAME://host:port,NAME://host:port.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "broker/settings/settings.h"

namespace varve::broker {

// As text: in upper case, as in Kafka, where names differ in more than that. The error is what is wrong with it.
using NamedAddresses = std::vector<std::pair<std::string, runtime::Address>>;
Result<NamedAddresses, std::string> parse_named_addresses(std::string_view text);

// "NAME:PROTOCOL,NAME:PROTOCOL": what is wrong with it; only PLAINTEXT is served.
std::optional<std::string> protocol_map_problem(std::string_view text);

// Gives each listener what its clients are told to connect to: its own entry of `advertised`, the host it listens on, or
// `default_host`. The error names the setting.
std::optional<SettingsError> advertise(std::vector<ListenerSettings>& listeners,
                                       const std::map<std::string, runtime::Address>& advertised,
                                       const std::string& default_host);

// Whether a client can connect to it: it names no "every interface".
bool names_a_host(const std::string& host);

}  // namespace varve::broker
