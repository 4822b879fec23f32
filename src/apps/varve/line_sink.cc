#include "apps/varve/line_sink.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

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
  std::string line = format_ == LogFormat::kJson ? format_log_json(shown) : format_log_text(shown);
  // A pipe that is ready takes this much without blocking.
  if (line.size() >= PIPE_BUF) line.resize(PIPE_BUF - 1);
  line += '\n';
  if (::write(descriptor_, line.data(), line.size()) < 0) ++dropped_;
}

}  // namespace varve::apps
