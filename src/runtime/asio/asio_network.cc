#include "runtime/asio/asio_network.h"

#include <netdb.h>

#include <boost/asio/ip/v6_only.hpp>
#include <optional>
#include <stop_token>
#include <vector>

#include "runtime/asio/asio_socket.h"

namespace varve::runtime {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr Duration kPauseAfterFailure = 100ms;

AsioExecutor& asio_executor(Executor& executor) {
  auto* real = dynamic_cast<AsioExecutor*>(&executor);
  CHECK(real != nullptr, "{} is not an executor of this runtime", executor.name());
  return *real;
}

std::optional<tcp::endpoint> numeric_endpoint(const Address& address) {
  error_code error;
  asio::ip::address number = asio::ip::make_address(address.host, error);
  if (error) return std::nullopt;
  return tcp::endpoint(number, address.port);
}

// Blocks. At least one endpoint, in the order that the system prefers.
NetResult<std::vector<tcp::endpoint>> look_up(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int result = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &found);
  if (result != 0) {
    return fail(NetErrc::kBadAddress, fmt::format("look up {}: {}", address.host, ::gai_strerror(result)));
  }
  std::vector<tcp::endpoint> endpoints;
  for (const addrinfo* item = found; item != nullptr; item = item->ai_next) {
    tcp::endpoint endpoint;
    if (item->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), item->ai_addr, item->ai_addrlen);
    endpoint.resize(item->ai_addrlen);
    endpoint.port(address.port);
    endpoints.push_back(endpoint);
  }
  ::freeaddrinfo(found);
  if (endpoints.empty()) return fail(NetErrc::kBadAddress, "no address for " + address.host);
  return endpoints;
}

struct AcceptState {
  explicit AcceptState(AsioExecutor& owner) : executor(owner), acceptor(owner.context()) {}

  void cancel() {
    error_code ignored;
    acceptor.cancel(ignored);
  }

  AsioExecutor& executor;
  tcp::acceptor acceptor;
  PendingOperation accepting;
  std::optional<tcp::socket> accepted;
  bool closed = false;
};

class AsioListener final : public Listener {
 public:
  AsioListener(std::shared_ptr<AcceptState> state, Address local)
      : state_(std::move(state)), local_(std::move(local)) {}
  AsioListener(const AsioListener&) = delete;
  AsioListener& operator=(const AsioListener&) = delete;
  ~AsioListener() override { close(); }

  Task<NetResult<std::unique_ptr<Stream>>> accept(Executor& executor) override {
    AsioExecutor& target = asio_executor(executor);
    TaskContext& context = co_await this_context();
    std::shared_ptr<AcceptState> state = state_;
    std::stop_callback on_stop(context.stop, [&owner = state->executor, weak = std::weak_ptr(state)] {
      owner.post([weak] {
        if (auto alive = weak.lock()) alive->cancel();
      });
    });
    for (;;) {
      if (state->closed || context.stop.stop_requested()) {
        co_return fail(NetErrc::kClosed, "the listener was closed");
      }
      auto start = [&state, &target] {
        state->acceptor.async_accept(target.context(), [state](const error_code& error, tcp::socket socket) {
          if (!error) state->accepted.emplace(std::move(socket));
          state->accepting.complete(error, 0);
        });
      };
      co_await Await(state->accepting, start, [&state] { state->cancel(); });
      if (state->accepted) {
        tcp::socket socket = std::move(*state->accepted);
        state->accepted.reset();
        co_return std::make_unique<AsioStream>(target, std::move(socket));
      }
      error_code error = state->accepting.error;
      if (error == asio::error::operation_aborted) continue;  // and see above why
      // Out of descriptors, mostly. The connection stays in the backlog, so the next try may fail at once
      // again: pause, or the caller would spin.
      co_await sleep_for(kPauseAfterFailure);
      co_return net_error(error, "accept");
    }
  }

  void close() override {
    if (state_->closed) return;
    state_->closed = true;
    error_code ignored;
    state_->acceptor.close(ignored);
  }

  const Address& local() const override { return local_; }

 private:
  std::shared_ptr<AcceptState> state_;
  Address local_;
};

error_code bind_to(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, bool is_wildcard) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && is_wildcard && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(false), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

// The endpoints to try, the first that binds wins: both families at once for the wildcard where the host has
// IPv6; IPv4 first for a name, because "localhost" with ::1 first would surprise clients that have IPv4 only.
NetResult<std::vector<tcp::endpoint>> endpoints_to_bind(const Address& address) {
  if (address.host.empty()) {
    return std::vector{tcp::endpoint(tcp::v6(), address.port), tcp::endpoint(tcp::v4(), address.port)};
  }
  if (auto number = numeric_endpoint(address)) return std::vector{*number};
  auto found = look_up(address);
  if (!found) return found;
  std::vector<tcp::endpoint> ordered;
  for (bool want_v4 : {true, false}) {
    for (const tcp::endpoint& endpoint : *found) {
      if (endpoint.address().is_v4() == want_v4) ordered.push_back(endpoint);
    }
  }
  return ordered;
}

}  // namespace

NetResult<std::unique_ptr<Listener>> AsioNetwork::listen(Executor& executor, const Address& address) {
  auto endpoints = endpoints_to_bind(address);
  if (!endpoints) return pass_error(endpoints);
  auto state = std::make_shared<AcceptState>(asio_executor(executor));
  error_code error;
  for (const tcp::endpoint& endpoint : *endpoints) {
    error = bind_to(state->acceptor, endpoint, address.host.empty());
    // Another family is another try; a port in use is not healed by it.
    if (!error || error == asio::error::address_in_use) break;
  }
  if (error) return net_error(error, "listen on " + address.to_string());
  Address local = to_address(state->acceptor.local_endpoint(error));
  if (error) return net_error(error, "listen on " + address.to_string());
  return std::make_unique<AsioListener>(std::move(state), std::move(local));
}

Task<NetResult<std::unique_ptr<Stream>>> AsioNetwork::connect(Address address, MonotonicTime deadline) {
  TaskContext& context = co_await this_context();
  AsioExecutor& executor = asio_executor(*context.executor);
  if (context.stop.stop_requested()) co_return fail(NetErrc::kClosed, "connect: asked to stop");
  if (executor.now() >= deadline) co_return fail(NetErrc::kTimeout, "connect: the deadline has passed");
  std::vector<tcp::endpoint> endpoints;
  if (auto number = numeric_endpoint(address)) {
    endpoints.push_back(*number);
  } else {
    Completion<NetResult<std::vector<tcp::endpoint>>> looked_up;
    runtime_.offload(Lane::kResolve, [looked_up, address] { looked_up.set(look_up(address)); });
    NetResult<std::vector<tcp::endpoint>> late =
        fail(NetErrc::kTimeout, fmt::format("look up {}: no answer in time", address.host));
    auto found = co_await wait_until(looked_up, deadline, std::move(late));
    if (context.stop.stop_requested()) co_return fail(NetErrc::kClosed, "connect: asked to stop");
    if (!found) co_return pass_error(found);
    endpoints = std::move(*found);
  }

  NetResult<std::unique_ptr<Stream>> result = fail(NetErrc::kBadAddress, "no address for " + address.host);
  for (size_t i = 0; i < endpoints.size(); ++i) {
    // A silent address may use up its share of the time, not that of the others.
    MonotonicTime share = deadline;
    if (deadline != MonotonicTime::never()) {
      MonotonicTime now = executor.now();
      share = now + (deadline - now) / static_cast<int64_t>(endpoints.size() - i);
    }
    result = co_await connect_endpoint(executor, endpoints[i], share);
    if (result || context.stop.stop_requested() || executor.now() >= deadline) break;
  }
  co_return result;
}

}  // namespace varve::runtime
