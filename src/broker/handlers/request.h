// What the server knows of a request when it hands it to a handler, and what it gets back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/strong.h"
#include "base/time.h"
#include "broker/security/authorizer.h"
#include "protocol/frame.h"
#include "runtime/completion.h"
#include "runtime/network.h"

namespace varve::broker {

// Names a connection for as long as its server lives; never used again. Part of a chain (invariant 9).
using ConnectionId = Strong<uint64_t, struct ConnectionIdTag>;

// A value, filled by the connection, read by handlers.
struct RequestContext {
  ConnectionId connection;
  runtime::Address peer;
  std::string listener;
  Principal principal;
  std::string client_id;  // "" if there is none
  int16_t version = 0;
  MonotonicTime received;
  // When work for it must end with what is known by then. A timeout in the request itself may come before it.
  MonotonicTime deadline;
  // Bytes of the buffer that the request's slices share.
  size_t frame_bytes = 0;
  // The request's share of the memory for requests, given back with the last reference. Who lets bytes of the
  // request outlive its reply without counting them elsewhere keeps one. Who waits long, and has let go of the request
  // before, gives it back at once.
  mutable std::shared_ptr<const void> memory;
  // Of the whole server when the request began: who makes large replies makes them smaller when much waits.
  size_t reply_bytes_waiting = 0;
  // A Produce sets it when its place among the connection's batches is taken: the next one starts then, or when
  // this one has ended.
  runtime::Completion<runtime::Done> placed;
};

struct Reply {
  enum class Kind : uint8_t {
    kResponse,  // `frame` is sent in its turn
    kNone,      // nothing is sent (acks=0)
    kClose,     // the connection is closed in its turn, as Kafka does where it cannot or must not answer
  };
  Kind kind = Kind::kNone;
  std::vector<Slice> frame = {};
  // For the log: why the connection is closed.
  std::string reason = {};
  // With kClose: the client sent what is no request, which the operator is told and which is counted.
  bool is_bad_input = false;
  // The client has used more than its share: its next request begins so much later.
  Duration throttle{};
  // For metrics, where an API counts failed requests.
  bool has_error = false;

  static Reply response(std::vector<Slice> slices) {
    return {.kind = Kind::kResponse, .frame = std::move(slices)};
  }
  static Reply none() { return {}; }
  static Reply close(std::string why) { return {.kind = Kind::kClose, .reason = std::move(why)}; }
  static Reply malformed(std::string why) {
    return {.kind = Kind::kClose, .reason = std::move(why), .is_bad_input = true};
  }
};

// Implemented by the handler table; the server knows no API beyond the order rule for Produce. Outlives the server.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // On the connection's executor. Never fails: what goes wrong is in the reply. A stop request of the task means
  // that the client is gone or the broker stops: waiting must end, what was promised must not be dropped.
  virtual runtime::Task<Reply> handle(RequestContext context, protocol::RequestFrame request) = 0;
};

}  // namespace varve::broker
