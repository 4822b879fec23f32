// Server: listens, accepts, and keeps its connections.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "broker/handlers/request.h"
#include "broker/server/connection.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task_scope.h"

namespace varve::broker {

// Connections are dealt to the io executors in turn and stay there.
//
// Life: construct, listen() from a task on io(0), start(), serve, co_await stop() on io(0), destroy. Owned by the broker.
class Server {
 public:
  // References outlive it.
  Server(runtime::Runtime& runtime, RequestHandler& handler, const Limits& limits, Logger logger,
         MetricRegistry& metrics);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // On io(0). Takes the address, so that a start that fails does so early; connections wait in the kernel until
  // start(). Once for each listener; requests that come through it bear its name.
  runtime::NetResult<void> listen(std::string name, const runtime::Address& address);
  // What was bound; after listen(). CHECKs that there is a listener of that name.
  const runtime::Address& local(std::string_view name) const;
  // On io(0). From now on requests are served.
  void start();

  // On io(0). Accepts and reads nothing new from now on; what was read is answered.
  void begin_stop();
  // On io(0), once. begin_stop(), then waits until no request is under way; at `deadline` the connections are
  // cut. The parts that requests wait for must still run, or fail their waiters.
  runtime::Task<> stop(MonotonicTime deadline);

  size_t connection_count() const;

 private:
  struct NamedListener {
    std::string name;
    std::unique_ptr<runtime::Listener> listener;
  };

  runtime::Task<> accept_loop(NamedListener& from);
  runtime::Task<> serve(std::shared_ptr<Connection> connection, ConnectionId id, std::string peer_host);
  // Whether one more may come from there; counts it.
  bool admit(const runtime::Address& peer);
  void abort_all();

  runtime::Runtime& runtime_;
  const Limits limits_;
  Logger logger_;
  runtime::Semaphore request_memory_;
  std::atomic<size_t> reply_bytes_waiting_{0};
  LogLimiter bad_input_log_;
  LogLimiter closed_log_;
  LogLimiter refused_log_;
  LogLimiter accept_log_;
  Counter& accepted_;
  Counter& refused_;
  ConnectionShared shared_;

  std::deque<NamedListener> listeners_;  // not moved by a further one
  mutable std::mutex mutex_;
  std::map<ConnectionId, std::weak_ptr<Connection>> connections_;
  std::map<std::string, size_t> connections_by_host_;
  size_t connection_count_ = 0;
  ConnectionId last_id_{0};

  runtime::TaskScope accepting_;
  runtime::TaskScope serving_;
};

}  // namespace varve::broker
