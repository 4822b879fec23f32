#include "runtime/http/request_parser.h"

#include <fmt/format.h>

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>

namespace varve::runtime::http {
namespace {

namespace beast_http = boost::beast::http;

std::optional<uint8_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    std::optional<uint8_t> high = hex_digit(text[i + 1]);
    std::optional<uint8_t> low = hex_digit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    decoded += static_cast<char>(*high << 4 | *low);
    i += 2;
  }
  return decoded;
}

bool read_target(std::string_view target, Request& request) {
  size_t question = target.find('?');
  std::optional<std::string> path = percent_decode(target.substr(0, question));
  if (!path || !path->starts_with('/')) return false;
  request.path = std::move(*path);
  std::string_view query =
      question == std::string_view::npos ? std::string_view{} : target.substr(question + 1);
  while (!query.empty()) {
    size_t end = query.find('&');
    std::string_view pair = query.substr(0, end);
    size_t equals = pair.find('=');
    std::optional<std::string> name = percent_decode(pair.substr(0, equals));
    std::optional<std::string> value =
        percent_decode(equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1));
    if (!name || !value) return false;
    request.query[*name] = std::move(*value);
    query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
  }
  return true;
}

std::string_view view_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct RequestParser::Impl {
  beast_http::request_parser<beast_http::empty_body> parser;
};

RequestParser::RequestParser(size_t header_bytes_max) : impl_(std::make_unique<Impl>()) {
  impl_->parser.header_limit(static_cast<uint32_t>(header_bytes_max));
}

RequestParser::~RequestParser() = default;

Result<size_t, ParseErrc> RequestParser::feed(ByteView bytes) {
  boost::beast::error_code error;
  size_t used = impl_->parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error == beast_http::error::need_more) return used;
  if (error == beast_http::error::header_limit) return std::unexpected(ParseErrc::kTooLarge);
  if (error == beast_http::error::unexpected_body) return std::unexpected(ParseErrc::kHasBody);
  if (error) return std::unexpected(ParseErrc::kMalformed);
  if (impl_->parser.is_header_done() && !impl_->parser.is_done()) return std::unexpected(ParseErrc::kHasBody);
  return used;
}

bool RequestParser::complete() const { return impl_->parser.is_done(); }

std::optional<ParsedRequest> RequestParser::take() {
  const auto& message = impl_->parser.get();
  ParsedRequest parsed;
  parsed.keep_alive = message.keep_alive();
  parsed.request.method = std::string(view_of(message.method_string()));
  if (!read_target(view_of(message.target()), parsed.request)) return std::nullopt;
  return parsed;
}

std::string response_head(const Response& response, bool keep_alive) {
  std::string_view reason = view_of(beast_http::obsolete_reason(beast_http::int_to_status(response.status)));
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n\r\n",
                     response.status, reason, response.content_type, response.body.size(),
                     keep_alive ? "keep-alive" : "close");
}

}  // namespace varve::runtime::http
