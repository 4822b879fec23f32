// A small HTTP/1.1 server for operators: a few GET routes, short answers. Not for the internet.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"

namespace varve::runtime::http {

struct Request {
  std::string method;
  std::string path;                          // of the target, before '?', percent-decoded
  std::map<std::string, std::string> query;  // percent-decoded; of names given twice the last
};

struct Response {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Outlives its server.
class Handler {
 public:
  virtual ~Handler() = default;
  // On an io executor. Only GET and HEAD arrive; for HEAD the body is measured and dropped.
  virtual Task<Response> handle(Request request) = 0;
};

struct Limits {
  size_t connections_max = 64;
  size_t header_bytes_max = 8 * 1024;
  // From the first byte of a request, or from the answer before it, until the next one is there.
  Duration request_time_max = 30s;
  Duration write_time_max = 30s;
};

// Life: construct, listen() from a task on io(0), start(), co_await stop(), destroy.
class Server {
 public:
  Server(Runtime& runtime, Handler& handler, Limits limits, Logger logger);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // On io(0).
  NetResult<void> listen(const Address& address);
  const Address& local() const { return listener_->local(); }
  // On io(0).
  void start();
  // Any io task, once. Answers what it has read.
  Task<> stop();

 private:
  Task<> accept_loop();
  Task<> serve(std::unique_ptr<Stream> stream);

  Runtime& runtime_;
  Handler& handler_;
  const Limits limits_;
  Logger logger_;
  std::unique_ptr<Listener> listener_;
  std::atomic<size_t> connections_{0};
  size_t next_executor_ = 0;
  TaskScope scope_;
};

}  // namespace varve::runtime::http
