// The planted bugs (base/planted_bugs.h) by name, for the command line and for tables of tests.
#pragma once

#include <span>
#include <string_view>

#include "base/planted_bugs.h"

namespace varve::sim {

struct PlantedBugName {
  std::string_view name;
  bool PlantedBugs::* member;
};

std::span<const PlantedBugName> planted_bug_names();

// False if there is none of that name.
bool plant(PlantedBugs& bugs, std::string_view name);

}  // namespace varve::sim
