// Cuts HTTP/1.1 requests out of bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "runtime/http/http_server.h"

namespace varve::runtime::http {

struct ParsedRequest {
  Request request;
  bool keep_alive = false;
};

enum class ParseErrc : uint8_t {
  kMalformed,  // 400
  kTooLarge,   // 431
  kHasBody,    // 413: no route takes one
};

// One request at a time: feed() bytes until it gives one; then a new parser takes the bytes left over. Sans I/O.
class RequestParser {
 public:
  explicit RequestParser(size_t header_bytes_max);
  ~RequestParser();

  // How many bytes of `bytes` were used; all of them unless the request is complete. Call again with more while
  // complete() is false.
  Result<size_t, ParseErrc> feed(ByteView bytes);
  bool complete() const;
  // After complete(); nullopt: the target makes no sense.
  std::optional<ParsedRequest> take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The bytes of a response's head; the body follows unless the request was HEAD.
std::string response_head(const Response& response, bool keep_alive);

}  // namespace varve::runtime::http
