#include "broker/server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace varve::broker {
namespace {

// After a failed accept (out of descriptors), before the next try.
constexpr Duration kAcceptRetry = 100ms;

}  // namespace

Server::Server(runtime::Runtime& runtime, RequestHandler& handler, const Limits& limits, Logger logger,
               MetricRegistry& metrics)
    : runtime_(runtime),
      limits_(limits),
      logger_(std::move(logger)),
      request_memory_(limits.request_memory_bytes_max),
      bad_input_log_(limits.log_repeat_interval),
      closed_log_(limits.log_repeat_interval),
      refused_log_(limits.log_repeat_interval),
      accept_log_(limits.log_repeat_interval),
      accepted_(metrics.counter("varve_connections_accepted_total", "Connections of Kafka clients")),
      refused_(
          metrics.counter("varve_connections_refused_total", "Connections closed at once, over a limit")),
      shared_{
          .handler = handler,
          .request_memory = request_memory_,
          .limits = limits_,
          .logger = logger_,
          .bad_input_log = bad_input_log_,
          .closed_log = closed_log_,
          .bytes_in = metrics.counter("varve_request_bytes_total", "Bytes of requests read"),
          .bytes_out = metrics.counter("varve_reply_bytes_total", "Bytes of replies sent"),
          .bad_frames = metrics.counter("varve_bad_requests_total",
                                        "Connections closed for a frame or request that cannot be answered"),
          .reply_bytes_waiting = reply_bytes_waiting_} {
  metrics.gauge_from("varve_connections", "Open connections of Kafka clients",
                     [this] { return static_cast<double>(connection_count()); });
  metrics.gauge_from("varve_request_memory_bytes", "Memory of requests being read or served",
                     [this] { return static_cast<double>(request_memory_.held()); });
  metrics.gauge_from("varve_reply_waiting_bytes", "Bytes of replies that wait to be sent",
                     [this] { return static_cast<double>(reply_bytes_waiting_.load()); });
}

Server::~Server() = default;

runtime::NetResult<void> Server::listen(std::string name, const runtime::Address& address) {
  auto listener = runtime_.network().listen(runtime_.io(0), address);
  if (!listener) return pass_error(listener);
  listeners_.push_back({std::move(name), std::move(*listener)});
  return {};
}

const runtime::Address& Server::local(std::string_view name) const {
  auto found = std::ranges::find(listeners_, name, &NamedListener::name);
  CHECK(found != listeners_.end(), "no listener {}", name);
  return found->listener->local();
}

void Server::start() {
  for (NamedListener& listener : listeners_) {
    accepting_.spawn(runtime_.io(0), "accept", accept_loop(listener));
  }
}

runtime::Task<> Server::accept_loop(NamedListener& from) {
  runtime::TaskContext& context = co_await runtime::this_context();
  while (!context.stop.stop_requested()) {
    // Its executor is fixed when it is accepted, so the turn is taken before.
    runtime::Executor& executor = runtime_.io((last_id_.value() + 1) % runtime_.io_count());
    auto stream = co_await from.listener->accept(executor);
    if (!stream) {
      if (stream.error().code == runtime::NetErrc::kClosed) co_return;
      logger_.limited(accept_log_, runtime_.now(), LogLevel::kWarn, "cannot accept a connection",
                      {{"reason", stream.error().message}});
      co_await runtime::sleep_for(kAcceptRetry);
      continue;
    }
    ++last_id_;
    const runtime::Address peer = (*stream)->peer();
    if (!admit(peer)) {
      refused_.add();
      logger_.limited(refused_log_, runtime_.now(), LogLevel::kWarn,
                      "connection refused: max.connections or max.connections.per.ip is reached",
                      {{"peer", peer.to_string()}});
      // Streams belong to their executor.
      executor.post([closing = std::move(*stream)]() mutable { closing.reset(); });
      continue;
    }
    accepted_.add();
    auto connection =
        std::make_shared<Connection>(last_id_, from.name, std::move(*stream), executor, shared_);
    {
      std::lock_guard lock(mutex_);
      connections_.emplace(last_id_, connection);
    }
    serving_.spawn(executor, "connection", serve(std::move(connection), last_id_, peer.host));
  }
}

runtime::Task<> Server::serve(std::shared_ptr<Connection> connection, ConnectionId id,
                              std::string peer_host) {
  co_await connection->run();
  std::lock_guard lock(mutex_);
  connections_.erase(id);
  --connection_count_;
  auto host = connections_by_host_.find(peer_host);
  if (--host->second == 0) connections_by_host_.erase(host);
}

bool Server::admit(const runtime::Address& peer) {
  std::lock_guard lock(mutex_);
  if (connection_count_ >= limits_.connections_max) return false;
  auto host = connections_by_host_.find(peer.host);
  if (host != connections_by_host_.end() && host->second >= limits_.connections_per_address_max) return false;
  ++connection_count_;
  ++connections_by_host_[peer.host];
  return true;
}

size_t Server::connection_count() const {
  std::lock_guard lock(mutex_);
  return connection_count_;
}

void Server::abort_all() {
  std::lock_guard lock(mutex_);
  for (auto& [id, weak] : connections_) {
    std::shared_ptr<Connection> connection = weak.lock();
    if (!connection) continue;
    runtime::Executor& executor = connection->executor();
    executor.post([connection = std::move(connection)] { connection->abort(); });
  }
}

void Server::begin_stop() {
  for (NamedListener& listener : listeners_) listener.listener->close();
  accepting_.request_stop();
  serving_.request_stop();
}

runtime::Task<> Server::stop(MonotonicTime deadline) {
  begin_stop();
  co_await accepting_.close();
  runtime::TaskContext& context = co_await runtime::this_context();
  std::unique_ptr<runtime::Timer> timer = context.executor->start_timer(deadline, [this] { abort_all(); });
  co_await serving_.close();
}

}  // namespace varve::broker
