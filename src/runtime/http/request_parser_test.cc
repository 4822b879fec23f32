#include "runtime/http/request_parser.h"

#include <gtest/gtest.h>

namespace varve::runtime::http {
namespace {

std::optional<ParsedRequest> parse(std::string_view text) {
  RequestParser parser(8192);
  auto used = parser.feed(as_bytes(text));
  if (!used || !parser.complete()) return std::nullopt;
  return parser.take();
}

TEST(HttpRequestParser, ReadsMethodPathAndQuery) {
  auto parsed = parse("GET /log?after=7&limit=%31%30&x HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->request.method, "GET");
  EXPECT_EQ(parsed->request.path, "/log");
  EXPECT_EQ(parsed->request.query.at("after"), "7");
  EXPECT_EQ(parsed->request.query.at("limit"), "10");
  EXPECT_EQ(parsed->request.query.at("x"), "");
  EXPECT_TRUE(parsed->keep_alive);
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\n\r\n")->keep_alive);
}

TEST(HttpRequestParser, LeavesTheBytesOfTheNextRequest) {
  RequestParser parser(8192);
  std::string first = "GET /a HTTP/1.1\r\n\r\n";
  auto used = parser.feed(as_bytes(first + "GET /b HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(used);
  EXPECT_EQ(*used, first.size());
  EXPECT_TRUE(parser.complete());
}

TEST(HttpRequestParser, RefusesBodiesLongHeadersAndNonsense) {
  auto error_of = [](std::string_view text) {
    RequestParser parser(200);
    auto used = parser.feed(as_bytes(text));
    return used ? std::optional<ParseErrc>() : used.error();
  };
  EXPECT_EQ(error_of("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde"), ParseErrc::kHasBody);
  EXPECT_EQ(error_of("GET / HTTP/1.1\r\nX: " + std::string(300, 'x') + "\r\n\r\n"), ParseErrc::kTooLarge);
  EXPECT_EQ(error_of(std::string_view("\x16\x03\x01\x00\x05hello world", 16)), ParseErrc::kMalformed);
  EXPECT_EQ(parse("GET /%zz HTTP/1.1\r\n\r\n"), std::nullopt);
  EXPECT_EQ(parse("GET http://host/ HTTP/1.1\r\n\r\n"), std::nullopt);
}

}  // namespace
}  // namespace varve::runtime::http
