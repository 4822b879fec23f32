// A line of a log that may not be longer than its reader takes.
#pragma once

#include <string>

#include "base/log.h"

namespace varve {

// As format_log_text() or format_log_json() gives it, if that has at most `bytes_max` bytes. Else its longest texts are
// cut, at the end of a character, and say how many bytes are missing; fields are left out only if there are too many for
// a line. So it stays JSON.
std::string format_log_line(const LogRecord& record, LogFormat format, size_t bytes_max);

}  // namespace varve
