// Which varve this is.
#pragma once

#include <string>

namespace varve::apps {

// "varve 0.1.0"
std::string version_text();

}  // namespace varve::apps
