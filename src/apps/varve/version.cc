#include "apps/varve/version.h"

namespace varve::apps {

std::string version_text() { return "varve " VARVE_VERSION; }

}  // namespace varve::apps
