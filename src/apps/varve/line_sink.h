// LineSink: log lines on a file descriptor, whose reader may be slow or gone.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/log.h"

namespace varve::apps {

// A line that could not be written at once is dropped, and how many were is said on the next one: a terminal that
// was stopped, or a full pipe, must not stop the broker. One write() a line, so that lines of several threads do not
// mix; for the same reason a line has at most the 4 KiB that a pipe takes at once, and what is longer is cut as
// format_log_line() does. Any thread.
class LineSink final : public LogSink {
 public:
  // The descriptor is not closed.
  LineSink(int descriptor, LogFormat format) : descriptor_(descriptor), format_(format) {}
  void write(const LogRecord& record) override;

 private:
  const int descriptor_;
  const LogFormat format_;
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace varve::apps
