// MessageReader: cuts HTTP/1.1 messages, with their bodies, out of a connection. For clients and proxies; the small
// server for operators (http_server.h) takes no bodies and has a parser of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/network.h"
#include "runtime/task.h"

namespace varve::runtime::http {

struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;

// Of the first header of that name, whatever its case.
std::optional<std::string_view> find_header(const Headers& headers, std::string_view name);

// A request or a response; the fields of the other kind are empty.
struct Message {
  std::string method;
  std::string target;  // as it was sent, percent-encoded
  unsigned status = 0;
  Headers headers;
  bool keep_alive = false;
  Slice body;
};

struct MessageLimits {
  uint32_t header_bytes_max = 16 * 1024;
  // A longer body is refused before memory is taken for it.
  uint64_t body_bytes_max = 64 * 1024 * 1024;
};

enum class MessageErrc : uint8_t {
  kEnded,      // the connection ended, or was cut, before the first byte of a message
  kCut,        // in the middle of one
  kMalformed,  // no HTTP/1.1
  kTooLarge,   // above a limit
  kStopped,    // the task was asked to stop, or the connection was closed here
};
using MessageError = ErrorOf<MessageErrc>;

enum class MessageKind : uint8_t { kRequest, kResponse };

// Bodies with a Content-Length are read to their place, in chunks or up to the end of the connection (responses only)
// by way of the parser. Interim responses (1xx) are passed over.
//
// Life: one per connection, on its executor; the stream outlives it. After an error the connection is of no use.
class MessageReader {
 public:
  MessageReader(Stream& stream, MessageKind kind) : stream_(stream), kind_(kind) {}

  // The next message. `has_no_body`: it answers a HEAD request.
  Task<Result<Message, MessageError>> read(MessageLimits limits, bool has_no_body = false);

 private:
  template <bool kIsRequest>
  Task<Result<Message, MessageError>> read_one(MessageLimits limits, bool has_no_body);
  template <class Parser>
  Task<Result<void, MessageError>> read_head(Parser& parser, MessageLimits limits);
  template <class Parser>
  Task<Result<Slice, MessageError>> read_body(Parser& parser, MessageLimits limits);
  Task<Result<Slice, MessageError>> read_sized(uint64_t size);
  // At least one more byte behind what is there; false at the end of the connection.
  Task<Result<bool, MessageError>> fill();
  ByteView unused() const { return ByteView(buffer_).subspan(begin_, end_ - begin_); }
  // Bytes of the message that have come so far tell an end from a cut.
  MessageError error_of(const NetError& error) const;

  Stream& stream_;
  const MessageKind kind_;
  std::array<uint8_t, 16 * 1024> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool has_begun_ = false;
};

}  // namespace varve::runtime::http
