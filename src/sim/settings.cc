#include "sim/settings.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace varve::sim {
namespace {

uint64_t number_in(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  if (value == nullptr) return otherwise;
  std::string_view text = value;
  uint64_t number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

uint64_t seeds_wanted(uint64_t otherwise) { return number_in("VARVE_SIM_SEEDS", otherwise); }

double bug_seconds_wanted(double otherwise) {
  return static_cast<double>(number_in("VARVE_BUG_SECONDS", static_cast<uint64_t>(otherwise)));
}

uint64_t power_cuts_wanted(uint64_t otherwise) { return number_in("VARVE_POWER_CUTS", otherwise); }

}  // namespace varve::sim
