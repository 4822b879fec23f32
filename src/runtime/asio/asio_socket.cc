#include "runtime/asio/asio_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <stop_token>

namespace varve::runtime {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

NetErrc net_code_of(const error_code& error) {
  namespace codes = boost::asio::error;
  if (error == codes::operation_aborted || error == codes::bad_descriptor) return NetErrc::kClosed;
  if (error == codes::connection_refused) return NetErrc::kRefused;
  if (error == codes::timed_out) return NetErrc::kTimeout;
  if (error == codes::address_in_use) return NetErrc::kAddressInUse;
  if (error == codes::access_denied || error == codes::address_family_not_supported ||
      error.value() == EADDRNOTAVAIL) {
    return NetErrc::kBadAddress;
  }
  if (error == codes::no_descriptors || error == codes::no_buffer_space || error == codes::no_memory ||
      error.value() == ENFILE) {
    return NetErrc::kNoResources;
  }
  return NetErrc::kReset;
}

std::unexpected<NetError> net_error(const error_code& error, std::string_view what) {
  return fail(net_code_of(error), fmt::format("{}: {}", what, error.message()));
}

Address to_address(const tcp::endpoint& endpoint) {
  asio::ip::address address = endpoint.address();
  // A socket bound to "::" shows IPv4 peers as ::ffff:a.b.c.d.
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return Address{address.to_string(), endpoint.port()};
}

// Shared with the handlers of pending operations. An operation that ends as cancelled looks at `closed` and
// at its own stop token: Asio cancels reading and writing together, so the one that was not meant starts
// again.
struct AsioStream::State {
  State(AsioExecutor& owner, tcp::socket connected) : executor(owner), socket(std::move(connected)) {}

  void cancel() {
    error_code ignored;
    socket.cancel(ignored);
  }

  AsioExecutor& executor;
  tcp::socket socket;
  PendingOperation reading;
  PendingOperation writing;
  bool closed = false;
};

namespace {

std::unexpected<NetError> closed_here() { return fail(NetErrc::kClosed, "the connection was closed here"); }

// For a stop callback, which may run on any thread.
template <class State>
auto cancel_on_executor(const std::shared_ptr<State>& state) {
  return [&executor = state->executor, weak = std::weak_ptr<State>(state)] {
    executor.post([weak] {
      if (auto alive = weak.lock()) alive->cancel();
    });
  };
}

// Where a gathered write stands.
struct WriteCursor {
  std::span<const ByteView> slices;
  size_t done_of_first = 0;

  void advance(size_t bytes) {
    done_of_first += bytes;
    while (!slices.empty() && done_of_first >= slices.front().size()) {
      done_of_first -= slices.front().size();
      slices = slices.subspan(1);
    }
  }
};

// One system call with as many slices as fit in it. Gives errno, or 0.
int send_some(int descriptor, WriteCursor& cursor) {
  std::array<iovec, 256> vectors;
  msghdr message{};
  message.msg_iov = vectors.data();
  for (size_t i = 0; i < cursor.slices.size() && message.msg_iovlen < vectors.size(); ++i) {
    ByteView rest = i == 0 ? cursor.slices[0].subspan(cursor.done_of_first) : cursor.slices[i];
    if (!rest.empty()) vectors[message.msg_iovlen++] = {const_cast<uint8_t*>(rest.data()), rest.size()};
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno;
  cursor.advance(static_cast<size_t>(sent));
  return 0;
}

}  // namespace

AsioStream::AsioStream(AsioExecutor& executor, tcp::socket socket)
    : state_(std::make_shared<State>(executor, std::move(socket))) {
  error_code ignored;
  // Replies are written whole, so Nagle's algorithm could only delay them.
  state_->socket.set_option(tcp::no_delay(true), ignored);
  state_->socket.set_option(asio::socket_base::keep_alive(true), ignored);
  error_code error;
  tcp::endpoint remote = state_->socket.remote_endpoint(error);
  if (!error) peer_ = to_address(remote);
}

AsioStream::~AsioStream() { close(); }

void AsioStream::close() {
  if (state_->closed) return;
  state_->closed = true;
  error_code ignored;
  state_->socket.close(ignored);
}

Task<NetResult<size_t>> AsioStream::read_some(MutableByteView into) {
  CHECK(!into.empty(), "a read needs room");
  TaskContext& context = co_await this_context();
  std::shared_ptr<State> state = state_;
  std::stop_callback on_stop(context.stop, cancel_on_executor(state));
  for (;;) {
    if (state->closed || context.stop.stop_requested()) co_return closed_here();
    auto start = [&state, into] {
      state->socket.async_read_some(
          asio::buffer(into.data(), into.size()),
          [state](const error_code& error, size_t bytes) { state->reading.complete(error, bytes); });
    };
    co_await Await(state->reading, start, [&state] { state->cancel(); });
    if (!state->reading.error) co_return state->reading.bytes;
    if (state->reading.error == asio::error::eof) co_return size_t{0};
    if (state->reading.error != asio::error::operation_aborted) {
      co_return net_error(state->reading.error, "read");
    }
  }
}

// Writes at once what the socket takes, which is nearly always all; the rest as room comes.
Task<NetResult<void>> AsioStream::write(std::span<const ByteView> slices) {
  TaskContext& context = co_await this_context();
  std::shared_ptr<State> state = state_;
  std::stop_callback on_stop(context.stop, cancel_on_executor(state));
  WriteCursor cursor{slices};
  cursor.advance(0);  // over empty slices
  while (!cursor.slices.empty()) {
    if (state->closed || context.stop.stop_requested()) co_return closed_here();
    int error = send_some(state->socket.native_handle(), cursor);
    if (error == 0) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) {
      co_return net_error(error_code(error, boost::system::system_category()), "write");
    }
    auto start = [&state] {
      state->socket.async_wait(tcp::socket::wait_write,
                               [state](const error_code& result) { state->writing.complete(result, 0); });
    };
    co_await Await(state->writing, start, [&state] { state->cancel(); });
    // A failed wait shows again in the next send, as its own errno.
  }
  co_return NetResult<void>{};
}

namespace {

struct Connecting {
  explicit Connecting(AsioExecutor& owner) : executor(owner), socket(owner.context()) {}

  void cancel() {
    error_code ignored;
    socket.close(ignored);
  }

  AsioExecutor& executor;
  tcp::socket socket;
  PendingOperation connecting;
};

}  // namespace

Task<NetResult<std::unique_ptr<Stream>>> connect_endpoint(AsioExecutor& executor, tcp::endpoint endpoint,
                                                          MonotonicTime deadline) {
  TaskContext& context = co_await this_context();
  auto state = std::make_shared<Connecting>(executor);
  std::string what = "connect to " + to_address(endpoint).to_string();
  error_code error;
  state->socket.open(endpoint.protocol(), error);
  if (error) co_return net_error(error, what);

  std::unique_ptr<Timer> timer;
  if (deadline != MonotonicTime::never()) {
    timer = executor.start_timer(deadline, [state] { state->cancel(); });
  }
  std::stop_callback on_stop(context.stop, cancel_on_executor(state));
  auto start = [&state, endpoint] {
    state->socket.async_connect(endpoint,
                                [state](const error_code& result) { state->connecting.complete(result, 0); });
  };
  co_await Await(state->connecting, start, [&state] { state->cancel(); });
  if (context.stop.stop_requested()) co_return fail(NetErrc::kClosed, what + ": asked to stop");
  if (state->connecting.error == asio::error::operation_aborted) {
    co_return fail(NetErrc::kTimeout, what + ": no answer in time");
  }
  if (state->connecting.error) co_return net_error(state->connecting.error, what);
  co_return std::make_unique<AsioStream>(executor, std::move(state->socket));
}

}  // namespace varve::runtime
