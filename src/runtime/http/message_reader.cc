#include "runtime/http/message_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstring>

namespace varve::runtime::http {
namespace {

namespace beast_http = boost::beast::http;

std::string_view view_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

MessageError parse_error(const boost::beast::error_code& error) {
  bool is_too_large = error == beast_http::error::header_limit || error == beast_http::error::body_limit ||
                      error == beast_http::error::buffer_overflow;
  return {is_too_large ? MessageErrc::kTooLarge : MessageErrc::kMalformed, error.message()};
}

template <bool kIsRequest>
Message message_of(const beast_http::message<kIsRequest, beast_http::string_body>& parsed) {
  Message message;
  if constexpr (kIsRequest) {
    message.method = std::string(view_of(parsed.method_string()));
    message.target = std::string(view_of(parsed.target()));
  } else {
    message.status = parsed.result_int();
  }
  for (const auto& field : parsed) {
    message.headers.push_back(
        {std::string(view_of(field.name_string())), std::string(view_of(field.value()))});
  }
  message.keep_alive = parsed.keep_alive();
  return message;
}

}  // namespace

std::optional<std::string_view> find_header(const Headers& headers, std::string_view name) {
  auto is_named = [&](const Header& header) {
    return std::ranges::equal(header.name, name, {}, lower, lower);
  };
  auto found = std::ranges::find_if(headers, is_named);
  if (found == headers.end()) return std::nullopt;
  return found->value;
}

Task<Result<Message, MessageError>> MessageReader::read(MessageLimits limits, bool has_no_body) {
  return kind_ == MessageKind::kRequest ? read_one<true>(limits, false)
                                        : read_one<false>(limits, has_no_body);
}

template <bool kIsRequest>
Task<Result<Message, MessageError>> MessageReader::read_one(MessageLimits limits, bool has_no_body) {
  using Read = Result<Message, MessageError>;
  for (;;) {
    beast_http::parser<kIsRequest, beast_http::string_body> parser;
    parser.header_limit(limits.header_bytes_max);
    parser.body_limit(limits.body_bytes_max);
    if (has_no_body) parser.skip(true);
    has_begun_ = begin_ < end_;
    auto head = co_await read_head(parser, limits);
    if (!head) co_return Read(std::unexpected(std::move(head.error())));
    if constexpr (!kIsRequest) {
      if (parser.get().result_int() / 100 == 1) continue;
    }
    Message message = message_of<kIsRequest>(parser.get());
    if (!has_no_body) {
      auto body = co_await read_body(parser, limits);
      if (!body) co_return Read(std::unexpected(std::move(body.error())));
      message.body = std::move(*body);
    }
    if (parser.need_eof()) message.keep_alive = false;
    co_return Read(std::move(message));
  }
}

template <class Parser>
Task<Result<void, MessageError>> MessageReader::read_head(Parser& parser, MessageLimits limits) {
  using Read = Result<void, MessageError>;
  boost::beast::error_code error;
  bool needs_more = begin_ == end_;
  while (!parser.is_header_done()) {
    if (needs_more) {
      auto filled = co_await fill();
      if (!filled) co_return Read(std::unexpected(std::move(filled.error())));
      if (!*filled) {
        co_return Read(std::unexpected(
            MessageError{has_begun_ ? MessageErrc::kCut : MessageErrc::kEnded, "the connection ended"}));
      }
    }
    begin_ += parser.put(boost::asio::buffer(unused().data(), unused().size()), error);
    // The parser keeps nothing of a line that has not ended, and is given it again with what follows.
    needs_more = error == beast_http::error::need_more;
    if (error && !needs_more) co_return Read(std::unexpected(parse_error(error)));
    if (needs_more && end_ - begin_ > limits.header_bytes_max) {
      co_return Read(std::unexpected(MessageError{MessageErrc::kTooLarge, "a header is too long"}));
    }
  }
  co_return Read();
}

template <class Parser>
Task<Result<Slice, MessageError>> MessageReader::read_body(Parser& parser, MessageLimits limits) {
  using Read = Result<Slice, MessageError>;
  if (parser.content_length()) {
    uint64_t size = *parser.content_length();
    if (size > limits.body_bytes_max) {
      co_return Read(
          std::unexpected(MessageError{MessageErrc::kTooLarge, fmt::format("a body of {} bytes", size)}));
    }
    co_return co_await read_sized(size);
  }
  boost::beast::error_code error;
  parser.eager(true);
  while (!parser.is_done()) {
    if (begin_ == end_) {
      auto filled = co_await fill();
      if (!filled) co_return Read(std::unexpected(std::move(filled.error())));
      if (!*filled) {
        parser.put_eof(error);
        if (error)
          co_return Read(
              std::unexpected(MessageError{MessageErrc::kCut, "the connection ended inside a body"}));
        break;
      }
    }
    begin_ += parser.put(boost::asio::buffer(unused().data(), unused().size()), error);
    if (error && error != beast_http::error::need_more) co_return Read(std::unexpected(parse_error(error)));
    if (error == beast_http::error::need_more && begin_ < end_) {
      auto filled = co_await fill();
      if (!filled) co_return Read(std::unexpected(std::move(filled.error())));
      if (!*filled)
        co_return Read(
            std::unexpected(MessageError{MessageErrc::kCut, "the connection ended inside a body"}));
    }
  }
  auto owner = std::make_shared<const std::string>(std::move(parser.get().body()));
  ByteView view = as_bytes(*owner);
  co_return Read(Slice(std::move(owner), view));
}

Task<Result<Slice, MessageError>> MessageReader::read_sized(uint64_t size) {
  using Read = Result<Slice, MessageError>;
  auto owner = std::make_shared_for_overwrite<uint8_t[]>(size);
  MutableByteView into(owner.get(), size);
  size_t filled = std::min<uint64_t>(size, end_ - begin_);
  if (filled > 0) std::memcpy(into.data(), buffer_.data() + begin_, filled);
  begin_ += filled;
  while (filled < size) {
    auto read = co_await stream_.read_some(into.subspan(filled));
    if (!read) co_return Read(std::unexpected(error_of(read.error())));
    if (*read == 0) {
      co_return Read(std::unexpected(
          MessageError{MessageErrc::kCut,
                       fmt::format("the connection ended after {} of {} bytes of a body", filled, size)}));
    }
    filled += *read;
  }
  co_return Read(Slice(std::move(owner), into));
}

Task<Result<bool, MessageError>> MessageReader::fill() {
  using Filled = Result<bool, MessageError>;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    co_return Filled(std::unexpected(MessageError{MessageErrc::kTooLarge, "a line is too long"}));
  }
  auto read = co_await stream_.read_some(MutableByteView(buffer_).subspan(end_));
  if (!read) co_return Filled(std::unexpected(error_of(read.error())));
  if (*read > 0) has_begun_ = true;
  end_ += *read;
  co_return Filled(*read > 0);
}

MessageError MessageReader::error_of(const NetError& error) const {
  if (error.code == NetErrc::kClosed) return {MessageErrc::kStopped, error.message};
  return {has_begun_ ? MessageErrc::kCut : MessageErrc::kEnded, error.message};
}

}  // namespace varve::runtime::http
