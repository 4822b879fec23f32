#include "runtime/http/http_server.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/http/request_parser.h"

namespace varve::runtime::http {
namespace {

constexpr Duration kAcceptRetry = 100ms;

Response plain(unsigned status, std::string text) {
  Response response;
  response.status = status;
  response.body = std::move(text);
  return response;
}

Response refusal(ParseErrc cause) {
  switch (cause) {
    case ParseErrc::kTooLarge:
      return plain(431, "the request's header is too large\n");
    case ParseErrc::kHasBody:
      return plain(413, "a request with a body is not taken\n");
    case ParseErrc::kMalformed:
      break;
  }
  return plain(400, "not an HTTP request\n");
}

// Bytes of one connection, read and not yet used.
struct Buffer {
  std::array<uint8_t, 8 * 1024> bytes;
  size_t begin = 0;
  size_t end = 0;
};

// The next request, nullopt at the end of the connection, or what is wrong with it.
Task<Result<std::optional<ParsedRequest>, ParseErrc>> read_request(Stream& stream, Buffer& buffer,
                                                                   Limits limits) {
  using Read = Result<std::optional<ParsedRequest>, ParseErrc>;
  TaskContext& context = co_await this_context();
  // Closing the stream ends the read.
  std::unique_ptr<Timer> timer = context.executor->start_timer(
      context.executor->now() + limits.request_time_max, [&stream] { stream.close(); });
  RequestParser parser(limits.header_bytes_max);
  while (!parser.complete()) {
    if (buffer.begin == buffer.end) {
      auto read = co_await stream.read_some(buffer.bytes);
      if (!read || *read == 0) co_return Read(std::nullopt);
      buffer.begin = 0;
      buffer.end = *read;
    }
    ByteView unused = ByteView(buffer.bytes).subspan(buffer.begin, buffer.end - buffer.begin);
    auto used = parser.feed(unused);
    if (!used) co_return Read(std::unexpected(used.error()));
    buffer.begin += *used;
    // What the parser leaves is kept in front of what comes next.
    if (!parser.complete() && *used < unused.size()) {
      if (buffer.begin == 0 && buffer.end == buffer.bytes.size())
        co_return Read(std::unexpected(ParseErrc::kTooLarge));
      std::memmove(buffer.bytes.data(), buffer.bytes.data() + buffer.begin, buffer.end - buffer.begin);
      buffer.end -= buffer.begin;
      buffer.begin = 0;
      auto read = co_await stream.read_some(MutableByteView(buffer.bytes).subspan(buffer.end));
      if (!read || *read == 0) co_return Read(std::nullopt);
      buffer.end += *read;
    }
  }
  std::optional<ParsedRequest> parsed = parser.take();
  if (!parsed) co_return Read(std::unexpected(ParseErrc::kMalformed));
  co_return Read(std::move(parsed));
}

Task<bool> write_response(Stream& stream, Response response, bool is_head, bool keep_alive, Limits limits) {
  TaskContext& context = co_await this_context();
  std::unique_ptr<Timer> timer = context.executor->start_timer(
      context.executor->now() + limits.write_time_max, [&stream] { stream.close(); });
  std::string head = response_head(response, keep_alive);
  std::array<ByteView, 2> slices = {as_bytes(head), as_bytes(response.body)};
  auto written = co_await stream.write(std::span(slices).first(is_head || response.body.empty() ? 1 : 2));
  co_return written.has_value();
}

}  // namespace

Server::Server(Runtime& runtime, Handler& handler, Limits limits, Logger logger)
    : runtime_(runtime), handler_(handler), limits_(limits), logger_(std::move(logger)) {}

Server::~Server() = default;

NetResult<void> Server::listen(const Address& address) {
  auto listener = runtime_.network().listen(runtime_.io(0), address);
  if (!listener) return pass_error(listener);
  listener_ = std::move(*listener);
  return {};
}

void Server::start() { scope_.spawn(runtime_.io(0), "http accept", accept_loop()); }

Task<> Server::accept_loop() {
  TaskContext& context = co_await this_context();
  while (!context.stop.stop_requested()) {
    Executor& executor = runtime_.io(next_executor_++ % runtime_.io_count());
    auto stream = co_await listener_->accept(executor);
    if (!stream) {
      if (stream.error().code == NetErrc::kClosed) co_return;
      co_await sleep_for(kAcceptRetry);
      continue;
    }
    if (connections_ >= limits_.connections_max) {
      executor.post([closing = std::move(*stream)]() mutable { closing.reset(); });
      continue;
    }
    ++connections_;
    scope_.spawn(executor, "http connection", serve(std::move(*stream)));
  }
}

Task<> Server::serve(std::unique_ptr<Stream> stream) {
  Buffer buffer;
  bool keep_alive = true;
  while (keep_alive) {
    auto parsed = co_await read_request(*stream, buffer, limits_);
    if (parsed && !*parsed) break;
    Response response;
    bool is_head = false;
    if (!parsed) {
      response = refusal(parsed.error());
      keep_alive = false;
    } else {
      Request& request = (*parsed)->request;
      keep_alive = (*parsed)->keep_alive;
      is_head = request.method == "HEAD";
      if (!is_head && request.method != "GET") {
        response = plain(405, "only GET and HEAD are served\n");
      } else {
        response = co_await handler_.handle(std::move(request));
      }
    }
    bool is_written = co_await write_response(*stream, std::move(response), is_head, keep_alive, limits_);
    keep_alive = keep_alive && is_written;
  }
  --connections_;
}

Task<> Server::stop() {
  if (listener_) listener_->close();
  co_await scope_.close();
}

}  // namespace varve::runtime::http
