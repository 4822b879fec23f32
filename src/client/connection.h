// Connection: one connection to a Kafka broker, with any number of requests under way.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "client/error.h"
#include "protocol/frame.h"
#include "protocol/message_codec.h"
#include "runtime/network.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"

namespace varve::client {

// Versions of one API, both ends included.
struct VersionRange {
  int16_t low = 0;
  int16_t high = INT16_MAX;
};

struct ConnectionOptions {
  std::string client_id = "varve";
  size_t response_bytes_max = 256 * kMiB;
  size_t requests_open_max = 1'000;  // queued or waiting for their replies
};

// Replies come in the order of the requests, as Kafka promises; one out of turn ends the connection, and so does one
// that is late, because nobody could tell what the next one answers.
// Life: open(); shared by its users and by its two tasks, which end once it is closed, here or by the broker.
// Belongs to one executor.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // All bytes of a reply after the length.
  using Frame = ClientResult<Slice>;
  struct Posted {
    int32_t correlation = 0;
    runtime::Completion<Frame> reply;
  };

  // Reads and writes from now on, in tasks of `scope`.
  static std::shared_ptr<Connection> open(runtime::Executor& executor, runtime::TaskScope& scope,
                                          std::unique_ptr<runtime::Stream> stream, ConnectionOptions options);

  bool is_closed() const { return is_closed_; }
  // Whoever waits for a reply learns it.
  void close() { close(ClientError{ClientErrc::kDisconnected, {}, "the connection was closed"}); }

  // Queues the request behind those before it, in a version of the codec. With too many open the reply is kOverLimit.
  template <class Request>
  Posted post(const Request& request, int16_t version) {
    return enqueue(request_frame(request, version), true);
  }
  // For requests that the broker does not answer (Produce with acks=0). False: closed, or too many open.
  template <class Request>
  bool post_without_reply(const Request& request, int16_t version) {
    return !enqueue(request_frame(request, version), false).reply.is_set();
  }

  // The reply to what was posted. Once the deadline has passed the connection is closed.
  template <class Request>
  static runtime::Task<ClientResult<typename Request::Response>> reply(std::shared_ptr<Connection> connection,
                                                                       Posted posted, int16_t version,
                                                                       MonotonicTime deadline) {
    Frame frame = co_await await_frame(connection, posted, deadline);
    if (!frame) co_return pass_error(frame);
    const protocol::ApiInfo& api = protocol::api_info(Request::kApiKey);
    auto body = protocol::parse_response(*frame, api, version, posted.correlation);
    if (!body) co_return connection->malformed(api, body.error().message);
    auto response = protocol::decode_message<typename Request::Response>(*body, version);
    if (!response) co_return connection->malformed(api, response.error().message);
    co_return std::move(*response);
  }

  template <class Request>
  static runtime::Task<ClientResult<typename Request::Response>> ask(std::shared_ptr<Connection> connection,
                                                                     Request request, int16_t version,
                                                                     MonotonicTime deadline) {
    Posted posted = connection->post(request, version);
    co_return co_await reply<Request>(std::move(connection), std::move(posted), version, deadline);
  }

  // Learns which versions the broker serves (KIP-35, KIP-511). Once, before version_of().
  static runtime::Task<ClientResult<void>> negotiate(std::shared_ptr<Connection> connection,
                                                     MonotonicTime deadline);
  // The versions of `Request` within `wanted` that both sides know. kUnsupported if there is none.
  template <class Request>
  ClientResult<VersionRange> versions_of(VersionRange wanted = {}) const {
    return shared_versions(Request::kApiKey, {std::max(wanted.low, Request::kMinVersion),
                                              std::min(wanted.high, Request::kMaxVersion)});
  }

 private:
  Connection(std::unique_ptr<runtime::Stream> stream, ConnectionOptions options)
      : stream_(std::move(stream)), options_(std::move(options)) {}

  template <class Request>
  std::vector<Slice> request_frame(const Request& request, int16_t version) {
    return protocol::request_frame(request, version, ++last_correlation_, options_.client_id);
  }
  Posted enqueue(std::vector<Slice> frame, bool has_reply);
  static runtime::Task<Frame> await_frame(std::shared_ptr<Connection> connection, Posted posted,
                                          MonotonicTime deadline);
  void close(ClientError why);
  std::unexpected<ClientError> malformed(const protocol::ApiInfo& api, std::string_view why);
  ClientResult<VersionRange> shared_versions(protocol::ApiKey key, VersionRange ours) const;

  static runtime::Task<> write_loop(std::shared_ptr<Connection> connection);
  static runtime::Task<> read_loop(std::shared_ptr<Connection> connection);

  std::unique_ptr<runtime::Stream> stream_;
  const ConnectionOptions options_;
  bool is_closed_ = false;
  int32_t last_correlation_ = 0;
  std::deque<std::vector<Slice>> outbox_;
  std::optional<runtime::Completion<runtime::Done>> outbox_waiter_;
  std::deque<runtime::Completion<Frame>> expected_;
  std::map<protocol::ApiKey, VersionRange> served_;
};

}  // namespace varve::client
