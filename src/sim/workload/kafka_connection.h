// KafkaConnection: one connection of a simulated Kafka client to a broker, with any number of requests under way.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/frame.h"
#include "protocol/message_codec.h"
#include "runtime/network.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"

namespace varve::sim {

// Replies come in the order of the requests, as Kafka promises; one out of turn ends the connection.
// Life: shared by its owner and by its two tasks, which end once it is closed, here or by the broker. Belongs to
// one executor.
class KafkaConnection : public std::enable_shared_from_this<KafkaConnection> {
 public:
  // All bytes after the length; nullopt: the connection was lost before the reply.
  using Frame = std::optional<Slice>;
  struct Posted {
    int32_t correlation = 0;
    runtime::Completion<Frame> reply;
  };

  // `number` is unlike any other connection's.
  KafkaConnection(std::unique_ptr<runtime::Stream> stream, uint64_t number, std::string client_id);

  // Reads and writes from now on.
  void start(runtime::Executor& executor, runtime::TaskScope& scope);

  uint64_t number() const { return number_; }
  bool is_closed() const { return is_closed_; }
  void close();

  // Queues the request behind those before it. Without a reply (acks=0) the completion is set when the connection
  // ends.
  template <class Request>
  Posted post(const Request& request, int16_t version, bool has_reply = true) {
    int32_t correlation = ++last_correlation_;
    return enqueue(protocol::request_frame(request, version, correlation, client_id_), correlation,
                   has_reply);
  }

  // The reply to what was posted. nullopt: lost, late (which closes the connection, as Kafka's clients do) or not
  // to be read.
  template <class Request>
  static runtime::Task<std::optional<typename Request::Response>> reply(
      std::shared_ptr<KafkaConnection> connection, Posted posted, int16_t version, MonotonicTime deadline) {
    using Response = typename Request::Response;
    Frame frame = co_await runtime::wait_until(posted.reply, deadline, Frame());
    if (!frame) {
      connection->close();
      co_return std::nullopt;
    }
    auto body =
        protocol::parse_response(*frame, protocol::api_info(Request::kApiKey), version, posted.correlation);
    CHECK(body, "a reply that is none: {}", body.error().message);
    auto response = protocol::decode_message<Response>(*body, version);
    CHECK(response, "a malformed reply: {}", response.error().message);
    co_return std::move(*response);
  }

  template <class Request>
  static runtime::Task<std::optional<typename Request::Response>> ask(
      std::shared_ptr<KafkaConnection> connection, Request request, int16_t version, MonotonicTime deadline) {
    Posted posted = connection->post(request, version);
    co_return co_await reply<Request>(connection, posted, version, deadline);
  }

 private:
  Posted enqueue(std::vector<Slice> frame, int32_t correlation, bool has_reply);
  static runtime::Task<> write_loop(std::shared_ptr<KafkaConnection> connection);
  static runtime::Task<> read_loop(std::shared_ptr<KafkaConnection> connection);
  runtime::Task<bool> fill(MutableByteView bytes);

  std::unique_ptr<runtime::Stream> stream_;
  const uint64_t number_;
  const std::string client_id_;
  bool is_closed_ = false;
  int32_t last_correlation_ = 0;
  std::deque<std::vector<Slice>> outbox_;
  std::optional<runtime::Completion<runtime::Done>> outbox_waiter_;
  std::deque<runtime::Completion<Frame>> expected_;
  std::vector<runtime::Completion<Frame>> without_reply_;
};

}  // namespace varve::sim
