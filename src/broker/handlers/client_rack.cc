#include "broker/handlers/client_rack.h"

namespace varve::broker {
namespace {

constexpr std::string_view kSeparators = " ,|&?";

std::string_view value_of(std::string_view client_id, std::string_view key) {
  for (size_t at = client_id.find(key); at != std::string_view::npos; at = client_id.find(key, at + 1)) {
    if (at > 0 && kSeparators.find(client_id[at - 1]) == std::string_view::npos) continue;
    std::string_view rest = client_id.substr(at + key.size());
    return rest.substr(0, rest.find_first_of(" ,|&?="));
  }
  return {};
}

}  // namespace

std::string client_rack(std::string_view client_id, const std::set<std::string, std::less<>>& known_racks) {
  for (std::string_view key : {"diskless_rack_id=", "diskless_az=", "ws_az=", "automq_az=", "zone="}) {
    std::string_view value = value_of(client_id, key);
    if (value.empty()) continue;
    for (std::string_view cut = value; !cut.empty();) {
      if (known_racks.contains(cut)) return std::string(cut);
      size_t dash = cut.rfind('-');
      cut = dash == std::string_view::npos ? std::string_view{} : cut.substr(0, dash);
    }
    return std::string(value);
  }
  return {};
}

}  // namespace varve::broker
