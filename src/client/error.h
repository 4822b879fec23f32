// Why a call of the client failed.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "protocol/messages/error_code.h"

namespace varve::client {

enum class ClientErrc : uint8_t {
  kTimeout,       // no answer within the deadline; the request may have had its effect
  kDisconnected,  // no connection, or it ended before the answer; the request may have had its effect
  kRefused,       // the broker answered with an error, see `kafka`
  kUnsupported,   // the broker has no version of the API that would do
  kMalformed,     // the broker's answer cannot be read
  kOverLimit,     // one of our own limits
  kStopped,       // close() was called, or the task was asked to stop
};

// Keeps Kafka's code, so that a caller can tell its own user what the broker said.
struct ClientError {
  ClientErrc cause;
  protocol::ErrorCode kafka = protocol::ErrorCode::kNone;  // only of kRefused
  std::string message;

  // The same call may succeed later.
  bool is_retriable() const {
    switch (cause) {
      case ClientErrc::kTimeout:
      case ClientErrc::kDisconnected:
        return true;
      case ClientErrc::kRefused:
        return protocol::is_retriable(kafka);
      default:
        return false;
    }
  }
  bool is(protocol::ErrorCode code) const { return cause == ClientErrc::kRefused && kafka == code; }
  // Whether the broker may have done what it was asked, though nobody said so.
  bool leaves_doubt() const { return cause == ClientErrc::kTimeout || cause == ClientErrc::kDisconnected; }
};
template <class T>
using ClientResult = Result<T, ClientError>;

inline std::unexpected<ClientError> failed(ClientErrc cause, std::string message) {
  return std::unexpected(ClientError{cause, protocol::ErrorCode::kNone, std::move(message)});
}
// The broker's answer to `what` was `code`.
inline std::unexpected<ClientError> refused(protocol::ErrorCode code, std::string_view what) {
  return std::unexpected(
      ClientError{ClientErrc::kRefused, code, fmt::format("{}: {}", what, protocol::error_name(code))});
}

}  // namespace varve::client
