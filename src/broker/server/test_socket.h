// A blocking TCP client for tests: what goes over the wire is exactly what the test says.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace varve::broker {

class TestSocket {
 public:
  explicit TestSocket(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    timeval timeout{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  TestSocket(const TestSocket&) = delete;
  TestSocket& operator=(const TestSocket&) = delete;
  ~TestSocket() { ::close(socket_); }

  bool is_connected() const { return is_connected_; }
  // False if the other side has closed.
  bool send(ByteView bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(sent));
    }
    return true;
  }
  bool send(const std::vector<Slice>& slices) {
    for (const Slice& slice : slices) {
      if (!send(slice.view())) return false;
    }
    return true;
  }
  // Fewer bytes: the other side closed, or nothing came for 20 s.
  std::vector<uint8_t> receive(size_t size) {
    std::vector<uint8_t> bytes(size);
    size_t filled = 0;
    while (filled < size) {
      ssize_t received = ::recv(socket_, bytes.data() + filled, size - filled, 0);
      if (received <= 0) break;
      filled += static_cast<size_t>(received);
    }
    bytes.resize(filled);
    return bytes;
  }
  // The next frame, without its length; nullopt: closed.
  std::optional<std::vector<uint8_t>> receive_frame() {
    std::vector<uint8_t> length = receive(4);
    if (length.size() < 4) return std::nullopt;
    size_t size = load_be<uint32_t>(length.data());
    std::vector<uint8_t> frame = receive(size);
    if (frame.size() < size) return std::nullopt;
    return frame;
  }
  // Whether bytes come within the time.
  bool has_bytes_within(Duration span) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(socket_, &set);
    timeval timeout{.tv_sec = 0,
                    .tv_usec = std::chrono::duration_cast<std::chrono::microseconds>(span).count()};
    return ::select(socket_ + 1, &set, nullptr, nullptr, &timeout) > 0;
  }
  // Whether the other side closes, without a byte before.
  bool is_closed() {
    uint8_t byte;
    ssize_t got = ::recv(socket_, &byte, 1, 0);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  void close_sending() { ::shutdown(socket_, SHUT_WR); }

 private:
  int socket_;
  bool is_connected_ = false;
};

}  // namespace varve::broker
