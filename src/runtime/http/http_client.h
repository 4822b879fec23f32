// Client: HTTP/1.1 requests to one server over connections that are used again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/http/message_reader.h"
#include "runtime/runtime.h"

namespace varve::runtime::http {

struct ClientRequest {
  std::string method;
  std::string target;
  // With Host. Content-Length is added.
  Headers headers{};
  // Written as it is, never copied; what it refers to stays until the call returns.
  std::vector<Slice> body{};
  uint64_t answer_bytes_max = 64 * 1024 * 1024;
};

enum class ClientErrc : uint8_t {
  kUnreachable,  // no connection, so nothing was sent
  kLost,         // sent, or a part of it, and no whole answer came: whether it took effect is unknown
  kBadAnswer,    // no HTTP, or larger than asked for; whether it took effect is unknown
  kStopped,      // the task was asked to stop
};
using ClientError = ErrorOf<ClientErrc>;

struct ClientOptions {
  // A connection to the server, made on the calling task's executor.
  std::function<Task<NetResult<std::unique_ptr<Stream>>>(MonotonicTime deadline)> connect;
  Duration connect_time_max = 3s;
  // Below what servers keep: a request on a connection that its server is just closing is lost.
  Duration idle_time_max = 3s;
  // Kept for later, of each executor.
  size_t idle_connections_max = 64;
};

// A request takes the connection that was used last, or makes one. The answer is read while the request is still being
// written: a server that refuses a large body says so and closes. Then, and after an answer that asks for it, the
// connection is not used again.
//
// A request that asks only (GET, HEAD) and finds that its used connection has been closed is sent once more on a new
// one. Others are not: the server may have heard them.
//
// Deadlines are the caller's (with_deadline()). Life: construct, send() from tasks of any io executor, close() when
// they have ended, destroy. The runtime outlives it.
class Client {
 public:
  Client(Runtime& runtime, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Task<Result<Message, ClientError>> send(ClientRequest request);
  // Ends the connections that nobody uses.
  Task<> close();

 private:
  struct Connection;
  using ConnectionPtr = std::unique_ptr<Connection>;
  using Answer = Result<Message, ClientError>;

  // One that was used before, if there is one; an executor's connections are its own.
  ConnectionPtr take_idle(Executor& executor);
  void keep(Executor& executor, ConnectionPtr connection);
  Task<Result<ConnectionPtr, ClientError>> connect();
  // `connection` is no more when it cannot be used again.
  Task<Result<Message, MessageError>> exchange(ConnectionPtr& connection, const ClientRequest& request);

  Runtime& runtime_;
  const ClientOptions options_;
  std::mutex mutex_;
  std::map<Executor*, std::vector<ConnectionPtr>> idle_;
};

}  // namespace varve::runtime::http
