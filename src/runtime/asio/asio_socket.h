// Sockets as Streams. Private to runtime/asio: includes Asio.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <coroutine>
#include <memory>

#include "runtime/asio/asio_executor.h"
#include "runtime/network.h"

namespace varve::runtime {

NetErrc net_code_of(const boost::system::error_code& error);
std::unexpected<NetError> net_error(const boost::system::error_code& error, std::string_view what);

Address to_address(const boost::asio::ip::tcp::endpoint& endpoint);

// The slot of one Asio operation under way and of the coroutine that waits for it. A socket has one for each
// kind of operation, so that waiting takes no memory. Used on the socket's executor only.
struct PendingOperation {
  std::coroutine_handle<> waiter;
  boost::system::error_code error;
  size_t bytes = 0;

  void complete(const boost::system::error_code& result_error, size_t result_bytes) {
    error = result_error;
    bytes = result_bytes;
    if (std::coroutine_handle<> ready = std::exchange(waiter, nullptr)) ready.resume();
  }
};

// co_await Await(operation, start, cancel): start() begins an Asio operation whose handler calls
// operation.complete(). If the frame is destroyed while it is pending, cancel() withdraws it, so that nothing
// touches the frame's buffers later. The handler must keep the operation's owner alive.
template <class Start, class Cancel>
class Await {
 public:
  Await(PendingOperation& operation, Start start, Cancel cancel)
      : operation_(operation), start_(std::move(start)), cancel_(std::move(cancel)) {}
  Await(const Await&) = delete;
  Await& operator=(const Await&) = delete;
  ~Await() {
    if (!is_waiting_) return;
    operation_.waiter = nullptr;
    cancel_();
  }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    CHECK(!operation_.waiter, "two operations of one kind on one socket");
    operation_.waiter = handle;
    is_waiting_ = true;
    start_();
  }
  void await_resume() noexcept { is_waiting_ = false; }

 private:
  PendingOperation& operation_;
  Start start_;
  Cancel cancel_;
  bool is_waiting_ = false;
};

// A connected socket of `executor`.
class AsioStream final : public Stream {
 public:
  AsioStream(AsioExecutor& executor, boost::asio::ip::tcp::socket socket);
  ~AsioStream() override;

  Task<NetResult<size_t>> read_some(MutableByteView into) override;
  Task<NetResult<void>> write(std::span<const ByteView> slices) override;
  void close() override;
  const Address& peer() const override { return peer_; }

 private:
  struct State;

  std::shared_ptr<State> state_;
  Address peer_;
};

// Resolves and connects; the body of AsioNetwork::connect for one endpoint.
Task<NetResult<std::unique_ptr<Stream>>> connect_endpoint(AsioExecutor& executor,
                                                          boost::asio::ip::tcp::endpoint endpoint,
                                                          MonotonicTime deadline);

}  // namespace varve::runtime
