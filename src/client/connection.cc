#include "client/connection.h"

#include "client/frame_io.h"
#include "protocol/messages/api_versions.h"

namespace varve::client {

using protocol::ErrorCode;
using runtime::Done;
using runtime::Task;

namespace {

constexpr const char* kSoftwareName = "varve";
constexpr const char* kSoftwareVersion = "1";

}  // namespace

std::shared_ptr<Connection> Connection::open(runtime::Executor& executor, runtime::TaskScope& scope,
                                             std::unique_ptr<runtime::Stream> stream,
                                             ConnectionOptions options) {
  std::shared_ptr<Connection> connection(new Connection(std::move(stream), std::move(options)));
  bool is_open = scope.spawn(executor, "kafka writer", write_loop(connection)) &&
                 scope.spawn(executor, "kafka reader", read_loop(connection));
  if (!is_open) connection->close();
  return connection;
}

void Connection::close(ClientError why) {
  if (is_closed_) return;
  is_closed_ = true;
  stream_->close();
  if (outbox_waiter_) outbox_waiter_->set(Done{});
  outbox_.clear();
  for (const auto& reply : std::exchange(expected_, {})) reply.set(std::unexpected(why));
}

Connection::Posted Connection::enqueue(std::vector<Slice> frame, bool has_reply) {
  Posted posted{last_correlation_, {}};
  if (is_closed_) {
    posted.reply.set(failed(ClientErrc::kDisconnected, "the connection is closed"));
  } else if (outbox_.size() + expected_.size() >= options_.requests_open_max) {
    posted.reply.set(failed(ClientErrc::kOverLimit, fmt::format("{} requests are open on one connection",
                                                                options_.requests_open_max)));
  } else {
    if (has_reply) expected_.push_back(posted.reply);
    outbox_.push_back(std::move(frame));
    if (outbox_waiter_) outbox_waiter_->set(Done{});
  }
  return posted;
}

Task<Connection::Frame> Connection::await_frame(std::shared_ptr<Connection> connection, Posted posted,
                                                MonotonicTime deadline) {
  Frame late = failed(ClientErrc::kTimeout, "no answer within the deadline");
  Frame frame = co_await runtime::wait_until(posted.reply, deadline, late);
  if (!frame && frame.error().cause == ClientErrc::kTimeout) connection->close(frame.error());
  co_return frame;
}

std::unexpected<ClientError> Connection::malformed(const protocol::ApiInfo& api, std::string_view why) {
  ClientError error{
      ClientErrc::kMalformed, {}, fmt::format("the answer to {} cannot be read: {}", api.name, why)};
  close(error);
  return std::unexpected(std::move(error));
}

Task<> Connection::write_loop(std::shared_ptr<Connection> connection) {
  while (!connection->is_closed_) {
    if (connection->outbox_.empty()) {
      connection->outbox_waiter_.emplace();
      co_await runtime::wait_until(*connection->outbox_waiter_, MonotonicTime::never(), Done{});
      runtime::TaskContext& context = co_await runtime::this_context();
      if (context.stop.stop_requested()) connection->close();
      continue;
    }
    std::vector<Slice> frame = std::move(connection->outbox_.front());
    connection->outbox_.pop_front();
    auto written = co_await write_frame(*connection->stream_, std::move(frame));
    if (!written) connection->close(std::move(written.error()));
  }
}

Task<> Connection::read_loop(std::shared_ptr<Connection> connection) {
  while (!connection->is_closed_) {
    Frame frame = co_await read_frame(*connection->stream_, connection->options_.response_bytes_max);
    if (!frame) {
      connection->close(std::move(frame.error()));
    } else if (connection->expected_.empty()) {
      connection->close(ClientError{ClientErrc::kMalformed, {}, "a reply that nobody asked for"});
    } else {
      auto reply = std::move(connection->expected_.front());
      connection->expected_.pop_front();
      reply.set(std::move(frame));
    }
  }
}

Task<ClientResult<void>> Connection::negotiate(std::shared_ptr<Connection> connection,
                                               MonotonicTime deadline) {
  protocol::ApiVersionsRequest request;
  request.client_software_name = kSoftwareName;
  request.client_software_version = kSoftwareVersion;
  const protocol::ApiInfo& api = protocol::api_info(protocol::ApiKey::kApiVersions);
  int16_t version = api.max_version;
  // A broker that does not know the version answers in version 0 with the versions that it does know.
  for (int attempt = 0; attempt < 2; ++attempt) {
    Posted posted = connection->post(request, version);
    Frame frame = co_await await_frame(connection, posted, deadline);
    if (!frame) co_return pass_error(frame);
    auto body = protocol::parse_response(*frame, api, version, posted.correlation);
    if (!body || body->size() < sizeof(int16_t)) co_return connection->malformed(api, "too short");
    bool is_unknown = load_be<int16_t>(body->data()) == static_cast<int16_t>(ErrorCode::kUnsupportedVersion);
    auto response =
        protocol::decode_message<protocol::ApiVersionsResponse>(*body, is_unknown ? int16_t{0} : version);
    if (!response) co_return connection->malformed(api, response.error().message);
    for (const auto& row : response->api_keys) {
      connection->served_[static_cast<protocol::ApiKey>(row.api_key)] = {row.min_version, row.max_version};
    }
    if (response->error_code == ErrorCode::kNone) co_return ClientResult<void>();
    if (!is_unknown) co_return refused(response->error_code, api.name);
    auto known =
        connection->shared_versions(protocol::ApiKey::kApiVersions, {api.min_version, api.max_version});
    // As old brokers that name nothing.
    version = known ? known->high : int16_t{0};
  }
  co_return refused(ErrorCode::kUnsupportedVersion, api.name);
}

ClientResult<VersionRange> Connection::shared_versions(protocol::ApiKey key, VersionRange ours) const {
  auto served = served_.find(key);
  if (served != served_.end()) {
    VersionRange both{std::max(ours.low, served->second.low), std::min(ours.high, served->second.high)};
    if (both.low <= both.high) return both;
  }
  return failed(ClientErrc::kUnsupported, fmt::format("the broker serves no version of {} from {} to {}",
                                                      protocol::api_info(key).name, ours.low, ours.high));
}

}  // namespace varve::client
