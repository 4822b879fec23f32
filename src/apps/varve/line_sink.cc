#include "apps/varve/line_sink.h"

#include <poll.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <vector>

#include "base/log_line.h"

namespace varve::apps {

void LineSink::write(const LogRecord& record) {
  pollfd poll_descriptor{.fd = descriptor_, .events = POLLOUT, .revents = 0};
  if (::poll(&poll_descriptor, 1, 0) != 1 || (poll_descriptor.revents & POLLOUT) == 0) {
    ++dropped_;
    return;
  }
  LogRecord shown = record;
  std::vector<LogField> fields(record.fields.begin(), record.fields.end());
  uint64_t dropped = dropped_.exchange(0);
  if (dropped > 0) fields.emplace_back("lines_dropped", dropped);
  shown.fields = fields;
  // A pipe that is ready takes this much without blocking.
  std::string line = format_log_line(shown, format_, PIPE_BUF - 1);
  line += '\n';
  if (::write(descriptor_, line.data(), line.size()) < 0) ++dropped_;
}

}  // namespace varve::apps
