// KafkaConnection: a connection of a simulated Kafka client, which speaks whatever version its owner draws.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "client/connection.h"

namespace varve::sim {

// The client library's connection, where the simulator has no use for reasons: an answer that cannot be read is a bug,
// and everything else is no answer. Life: shared by its users. Belongs to one executor.
class KafkaConnection {
 public:
  using Posted = client::Connection::Posted;

  // `number` is unlike any other connection's.
  KafkaConnection(std::shared_ptr<client::Connection> connection, uint64_t number)
      : connection_(std::move(connection)), number_(number) {}

  uint64_t number() const { return number_; }
  bool is_closed() const { return connection_->is_closed(); }

  // Queues the request behind those before it. Without a reply (acks=0) there is nothing to wait for.
  template <class Request>
  Posted post(const Request& request, int16_t version, bool has_reply = true) {
    if (has_reply) return connection_->post(request, version);
    connection_->post_without_reply(request, version);
    return {};
  }

  // The reply to what was posted. nullopt: lost, or late, which closes the connection, as Kafka's clients do.
  template <class Request>
  static runtime::Task<std::optional<typename Request::Response>> reply(
      std::shared_ptr<KafkaConnection> connection, Posted posted, int16_t version, MonotonicTime deadline) {
    auto response = co_await client::Connection::reply<Request>(connection->connection_, std::move(posted),
                                                                version, deadline);
    if (response) co_return std::move(*response);
    CHECK(response.error().cause != client::ClientErrc::kMalformed, "{}", response.error().message);
    co_return std::nullopt;
  }

  template <class Request>
  static runtime::Task<std::optional<typename Request::Response>> ask(
      std::shared_ptr<KafkaConnection> connection, Request request, int16_t version, MonotonicTime deadline) {
    Posted posted = connection->post(request, version);
    co_return co_await reply<Request>(connection, std::move(posted), version, deadline);
  }

 private:
  const std::shared_ptr<client::Connection> connection_;
  const uint64_t number_;
};

}  // namespace varve::sim
