// Asks a running broker's HTTP port.
#pragma once

#include <string>

#include "base/result.h"

namespace varve::apps {

// The body of the answer to GET `target`; or a sentence: no address, nobody there, or a status other than 200.
// Blocks, for at most 10 s.
Result<std::string, std::string> admin_get(const std::string& address, const std::string& target);

}  // namespace varve::apps
