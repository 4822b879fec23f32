#include <unistd.h>

#include <string_view>

#include "broker/settings/settings.h"

namespace varve::broker {

Environment process_environment() {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    size_t equals = text.find('=');
    if (equals != std::string_view::npos) result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

}  // namespace varve::broker
