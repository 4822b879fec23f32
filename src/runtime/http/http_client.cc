#include "runtime/http/http_client.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/task_scope.h"

namespace varve::runtime::http {
namespace {

std::string head_of(const ClientRequest& request) {
  std::string head = fmt::format("{} {} HTTP/1.1\r\n", request.method, request.target);
  for (const Header& header : request.headers) {
    head += fmt::format("{}: {}\r\n", header.name, header.value);
  }
  if (!request.body.empty() || (request.method != "GET" && request.method != "HEAD")) {
    head += fmt::format("Content-Length: {}\r\n", total_size(request.body));
  }
  return head + "\r\n";
}

std::vector<ByteView> parts_of(std::string_view head, const std::vector<Slice>& body) {
  std::vector<ByteView> parts = {as_bytes(head)};
  parts.reserve(body.size() + 1);
  for (const Slice& slice : body) parts.push_back(slice.view());
  return parts;
}

bool only_asks(const ClientRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

ClientError error_of(MessageError error) {
  switch (error.code) {
    case MessageErrc::kStopped:
      return {ClientErrc::kStopped, std::move(error.message)};
    case MessageErrc::kMalformed:
    case MessageErrc::kTooLarge:
      return {ClientErrc::kBadAnswer, std::move(error.message)};
    case MessageErrc::kEnded:
    case MessageErrc::kCut:
      break;
  }
  return {ClientErrc::kLost, std::move(error.message)};
}

Task<> write_parts(Stream* stream, std::span<const ByteView> parts, bool* is_written) {
  auto written = co_await stream->write(parts);
  // A failure shows in the answer, or in that there is none.
  *is_written = written.has_value();
}

}  // namespace

struct Client::Connection {
  explicit Connection(std::unique_ptr<Stream> opened)
      : stream(std::move(opened)), reader(*stream, MessageKind::kResponse) {}

  std::unique_ptr<Stream> stream;
  MessageReader reader;
  MonotonicTime last_used;
};

Client::Client(Runtime& runtime, ClientOptions options) : runtime_(runtime), options_(std::move(options)) {}

Client::~Client() = default;

Task<Client::Answer> Client::send(ClientRequest request) {
  TaskContext& context = co_await this_context();
  ConnectionPtr connection = take_idle(*context.executor);
  bool was_used = connection != nullptr;
  for (;;) {
    if (!connection) {
      auto made = co_await connect();
      if (!made) co_return Answer(pass_error(made));
      connection = std::move(*made);
    }
    auto answer = co_await exchange(connection, request);
    if (connection) keep(*context.executor, std::move(connection));
    bool was_closed = !answer && was_used && answer.error().code == MessageErrc::kEnded;
    if (was_closed && only_asks(request)) {
      was_used = false;
      continue;
    }
    if (!answer) co_return Answer(std::unexpected(error_of(std::move(answer.error()))));
    co_return Answer(std::move(*answer));
  }
}

Task<Result<Message, MessageError>> Client::exchange(ConnectionPtr& connection,
                                                     const ClientRequest& request) {
  TaskContext& context = co_await this_context();
  Stream& stream = *connection->stream;
  std::string head = head_of(request);
  std::vector<ByteView> parts = parts_of(head, request.body);
  MessageLimits limits{.body_bytes_max = request.answer_bytes_max};
  bool is_written = false;
  TaskScope writing;
  writing.spawn(*context.executor, "http request", write_parts(&stream, parts, &is_written));
  auto answer = co_await connection->reader.read(limits, request.method == "HEAD");
  bool is_reusable = answer && answer->keep_alive && is_written;
  if (!is_reusable) stream.close();
  co_await writing.close();
  if (!is_reusable) connection.reset();
  co_return answer;
}

Task<Result<Client::ConnectionPtr, ClientError>> Client::connect() {
  using Made = Result<ConnectionPtr, ClientError>;
  TaskContext& context = co_await this_context();
  auto stream = co_await options_.connect(context.executor->now() + options_.connect_time_max);
  if (!stream) {
    ClientErrc code =
        stream.error().code == NetErrc::kClosed ? ClientErrc::kStopped : ClientErrc::kUnreachable;
    co_return Made(fail(code, std::move(stream.error().message)));
  }
  co_return Made(std::make_unique<Connection>(std::move(*stream)));
}

Client::ConnectionPtr Client::take_idle(Executor& executor) {
  MonotonicTime now = runtime_.now();
  ConnectionPtr taken;
  std::vector<ConnectionPtr> too_old;
  std::lock_guard lock(mutex_);
  std::vector<ConnectionPtr>& idle = idle_[&executor];
  if (!idle.empty() && now - idle.back()->last_used <= options_.idle_time_max) {
    taken = std::move(idle.back());
    idle.pop_back();
  } else {
    // The youngest is at the back. Destroyed here, on their executor.
    too_old.swap(idle);
  }
  return taken;
}

void Client::keep(Executor& executor, ConnectionPtr connection) {
  connection->last_used = runtime_.now();
  std::lock_guard lock(mutex_);
  std::vector<ConnectionPtr>& idle = idle_[&executor];
  if (idle.size() < options_.idle_connections_max) idle.push_back(std::move(connection));
}

Task<> Client::close() {
  std::vector<Executor*> executors;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [executor, connections] : idle_) executors.push_back(executor);
  }
  for (Executor* executor : executors) {
    co_await call(*executor, [this, executor] {
      std::vector<ConnectionPtr> ended;
      std::lock_guard lock(mutex_);
      ended.swap(idle_[executor]);
    });
  }
}

}  // namespace varve::runtime::http
