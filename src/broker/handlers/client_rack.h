// Where a client is, by what its client id says: Kafka's Metadata request has no rack, so clients of diskless
// systems put it there (KIP-1163).
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace varve::broker {

// The value after `diskless_rack_id=`, `diskless_az=`, `ws_az=`, `automq_az=` or `zone=`, "" if there is none. A key
// stands at the start or after ' ', ',', '|', '&' or '?'; the value ends there too. Client libraries append suffixes
// ("-consumer-1"): the value is cut at its last '-' until it is one of `known_racks`, or left whole.
std::string client_rack(std::string_view client_id, const std::set<std::string, std::less<>>& known_racks);

}  // namespace varve::broker
