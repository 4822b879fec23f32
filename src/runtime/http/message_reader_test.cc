#include "runtime/http/message_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::runtime::http {
namespace {

// Gives what the test says, piece by piece, and then the end or an error.
class ScriptedStream final : public Stream {
 public:
  Task<NetResult<size_t>> read_some(MutableByteView into) override {
    if (pieces.empty()) {
      if (end) co_return fail(*end, "scripted");
      co_return size_t{0};
    }
    std::string& piece = pieces.front();
    size_t size = std::min(into.size(), piece.size());
    std::copy_n(piece.begin(), size, into.begin());
    piece.erase(0, size);
    if (piece.empty()) pieces.pop_front();
    co_return size;
  }
  Task<NetResult<void>> write(std::span<const ByteView>) override { co_return NetResult<void>{}; }
  void close() override {}
  const Address& peer() const override { return peer_; }

  std::deque<std::string> pieces;
  std::optional<NetErrc> end;

 private:
  Address peer_;
};

class MessageReaderTest : public testing::Test {
 protected:
  using Read = Result<Message, MessageError>;

  void cut(std::string_view text, size_t piece_bytes) {
    for (size_t at = 0; at < text.size(); at += piece_bytes) {
      stream_.pieces.emplace_back(text.substr(at, piece_bytes));
    }
  }
  Read read(MessageLimits limits = {}, bool has_no_body = false) {
    std::optional<Read> result;
    auto body = [](MessageReader* reader, MessageLimits bounds, bool no_body,
                   std::optional<Read>* out) -> Task<> { *out = co_await reader->read(bounds, no_body); };
    sim::run_task(world_, node_.process().io(0), body(&reader_, limits, has_no_body, &result));
    return std::move(*result);
  }
  // Of a fresh connection that gives `text` and ends.
  Read read_all(std::string_view text, MessageLimits limits = {}, bool has_no_body = false) {
    ScriptedStream stream;
    stream.pieces.emplace_back(text);
    MessageReader reader(stream, MessageKind::kResponse);
    std::optional<Read> result;
    auto body = [](MessageReader* from, MessageLimits bounds, bool no_body,
                   std::optional<Read>* out) -> Task<> { *out = co_await from->read(bounds, no_body); };
    sim::run_task(world_, node_.process().io(0), body(&reader, limits, has_no_body, &result));
    return std::move(*result);
  }
  MessageErrc error_of(std::string_view text, MessageLimits limits = {}) {
    auto result = read_all(text, limits);
    EXPECT_FALSE(result);
    return result ? MessageErrc::kStopped : result.error().code;
  }

  sim::World world_{{.seed = 1}};
  sim::Node node_{world_, {.host = "a"}};
  ScriptedStream stream_;
  MessageReader reader_{stream_, MessageKind::kResponse};
};

TEST_F(MessageReaderTest, ReadsOneMessageAfterTheOtherHoweverTheyAreCut) {
  std::string text =
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One: a b\r\n\r\nfirst"
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n";
  for (size_t piece_bytes : {size_t{1}, size_t{2}, size_t{7}, text.size()}) {
    cut(text, piece_bytes);
    auto first = read();
    ASSERT_TRUE(first) << first.error().message << ", pieces of " << piece_bytes;
    EXPECT_EQ(first->status, 200u);
    EXPECT_EQ(as_text(first->body.view()), "first");
    EXPECT_EQ(find_header(first->headers, "x-ONE"), "a b");
    EXPECT_TRUE(first->keep_alive);
    auto second = read();
    ASSERT_TRUE(second) << second.error().message << ", pieces of " << piece_bytes;
    EXPECT_EQ(second->status, 404u) << "what is interim is passed over";
    EXPECT_EQ(as_text(second->body.view()), "abcdefg");
    EXPECT_FALSE(second->keep_alive);
  }
}

TEST_F(MessageReaderTest, ABodyLargerThanTheBufferComesWhole) {
  std::string body(200'000, 'x');
  body += "end";
  cut("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body, 3'000);
  auto message = read();
  ASSERT_TRUE(message);
  EXPECT_TRUE(as_text(message->body.view()) == body);
}

TEST_F(MessageReaderTest, ABodyMayEndWithTheConnection) {
  auto message = read_all("HTTP/1.1 200 OK\r\n\r\nall of it");
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(as_text(message->body.view()), "all of it");
  EXPECT_FALSE(message->keep_alive);
}

TEST_F(MessageReaderTest, AnAnswerToHeadHasALengthAndNoBody) {
  auto message = read_all("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", {}, true);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_TRUE(message->body.empty());
  EXPECT_EQ(find_header(message->headers, "content-length"), "1000000");
  EXPECT_TRUE(message->keep_alive);
}

TEST_F(MessageReaderTest, AnEndBeforeAMessageIsNoCut) {
  EXPECT_EQ(error_of(""), MessageErrc::kEnded);
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Le"), MessageErrc::kCut);
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour"), MessageErrc::kCut);
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), MessageErrc::kCut);
  stream_.end = NetErrc::kReset;
  EXPECT_EQ(read().error().code, MessageErrc::kEnded);
  stream_.end = NetErrc::kClosed;
  EXPECT_EQ(read().error().code, MessageErrc::kStopped);
}

TEST_F(MessageReaderTest, WhatIsTooLargeIsRefusedBeforeItIsRead) {
  MessageLimits limits{.header_bytes_max = 200, .body_bytes_max = 10};
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", limits), MessageErrc::kTooLarge);
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n"),
            MessageErrc::kTooLarge);
  EXPECT_EQ(
      error_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n", limits),
      MessageErrc::kTooLarge);
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nX: " + std::string(300, 'x') + "\r\n\r\n", limits),
            MessageErrc::kTooLarge);
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')), MessageErrc::kTooLarge);
}

TEST_F(MessageReaderTest, WhatIsNoHttpIsSaidToBeNone) {
  EXPECT_EQ(error_of("SSH-2.0-OpenSSH_9.2\r\n\r\n"), MessageErrc::kMalformed);
  EXPECT_EQ(error_of(std::string_view("\x15\x03\x01\x00\x02\x02\x46\r\n\r\n", 11)), MessageErrc::kMalformed);
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n"), MessageErrc::kMalformed);
}

}  // namespace
}  // namespace varve::runtime::http
