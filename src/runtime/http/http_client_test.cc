#include "runtime/http/http_client.h"

#include <gtest/gtest.h>

#include <deque>

#include "runtime/task_scope.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::runtime::http {
namespace {

constexpr uint16_t kPort = 80;
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// What a server does with the next request.
struct Step {
  std::string answer{};          // "": none
  bool closes = false;           // after it
  bool answers_at_once = false;  // before it has read the request
};

// A server on one host of a simulated network, and a client on another.
class HttpClientTest : public testing::Test {
 protected:
  using Answer = Result<Message, ClientError>;

  HttpClientTest() {
    auto listener = server_.process().network().listen(server_.process().io(0), {"server", kPort});
    CHECK(listener, "the simulated server cannot listen");
    listener_ = std::move(*listener);
    scope_.spawn(server_.process().io(0), "accept", accept());
  }

  Task<> accept() {
    for (;;) {
      auto stream = co_await listener_->accept(server_.process().io(0));
      if (!stream) co_return;
      ++connections_;
      scope_.spawn(server_.process().io(0), "serve", serve(std::move(*stream)));
    }
  }
  Task<> serve(std::unique_ptr<Stream> stream) {
    MessageReader reader(*stream, MessageKind::kRequest);
    for (;;) {
      if (!steps_.empty() && steps_.front().answers_at_once) {
        Step step = take_step();
        ByteView bytes = as_bytes(step.answer);
        co_await stream->write(std::span(&bytes, 1));
        co_await sleep_for(1s);
        co_return;
      }
      auto request = co_await reader.read({});
      if (!request) co_return;
      requests_.push_back(std::move(*request));
      Step step = take_step();
      if (!step.answer.empty()) {
        ByteView bytes = as_bytes(step.answer);
        co_await stream->write(std::span(&bytes, 1));
      }
      if (step.closes) co_return;
    }
  }
  Step take_step() {
    if (steps_.empty()) return {.answer = std::string(kOk)};
    Step step = std::move(steps_.front());
    steps_.pop_front();
    return step;
  }

  Task<NetResult<std::unique_ptr<Stream>>> connect(MonotonicTime deadline) {
    return client_node_.process().network().connect({"server", kPort}, deadline);
  }
  template <class Body>
  void run(Body body) {
    sim::run_task(world_, client_node_.process().io(0), body());
  }
  Task<Answer> ask(std::string method, std::vector<Slice> body = {}) {
    return client_.send({.method = std::move(method),
                         .target = "/",
                         .headers = {{"Host", "server"}},
                         .body = std::move(body)});
  }

  sim::World world_{{.seed = 1}};
  sim::SimNetwork network_{world_};
  sim::Node server_{world_, {.host = "server"}, &network_};
  sim::Node client_node_{world_, {.host = "client"}, &network_};
  std::unique_ptr<Listener> listener_;
  TaskScope scope_;
  std::deque<Step> steps_;
  std::vector<Message> requests_;
  size_t connections_ = 0;
  Client client_{client_node_.process(),
                 {.connect = [this](MonotonicTime deadline) { return connect(deadline); }}};
};

TEST_F(HttpClientTest, AConnectionIsUsedAgain) {
  run([&]() -> Task<> {
    for (int i = 0; i < 5; ++i) {
      auto answer = co_await ask("GET");
      EXPECT_TRUE(answer && as_text(answer->body.view()) == "ok");
    }
    std::vector<Slice> body = {Slice::copy_of(as_bytes("one ")), Slice(), Slice::copy_of(as_bytes("two"))};
    EXPECT_TRUE(co_await ask("PUT", body));
    co_await client_.close();
  });
  EXPECT_EQ(connections_, 1u);
  EXPECT_EQ(as_text(requests_.back().body.view()), "one two");
  EXPECT_EQ(find_header(requests_.back().headers, "content-length"), "7");
  EXPECT_EQ(find_header(requests_.front().headers, "content-length"), std::nullopt);
}

TEST_F(HttpClientTest, AnOldConnectionIsNotUsedAgain) {
  run([&]() -> Task<> {
    EXPECT_TRUE(co_await ask("PUT"));
    co_await sleep_for(4s);
    EXPECT_TRUE(co_await ask("PUT"));
  });
  EXPECT_EQ(connections_, 2u);
}

TEST_F(HttpClientTest, WhoAsksOnlyAsksAgainWhereTheUsedConnectionWasClosed) {
  run([&]() -> Task<> {
    steps_ = {{.answer = std::string(kOk), .closes = true}};
    EXPECT_TRUE(co_await ask("GET"));
    EXPECT_TRUE(co_await ask("GET"));
    // A change is the caller's to repeat: the server may have made it.
    steps_ = {{.answer = std::string(kOk), .closes = true}};
    EXPECT_TRUE(co_await ask("GET"));
    auto put = co_await ask("PUT");
    EXPECT_TRUE(!put && put.error().code == ClientErrc::kLost);
  });
}

TEST_F(HttpClientTest, OnANewConnectionNothingIsSentTwice) {
  run([&]() -> Task<> {
    steps_ = {{.closes = true}};
    auto got = co_await ask("GET");
    EXPECT_TRUE(!got && got.error().code == ClientErrc::kLost);
  });
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(HttpClientTest, ARefusalInTheMiddleOfALargeBodyIsHeard) {
  run([&]() -> Task<> {
    steps_ = {{.answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", .answers_at_once = true}};
    auto put = co_await ask("PUT", {Slice::copy_of(as_bytes(std::string(20'000'000, 'x')))});
    EXPECT_TRUE(put);
    if (put) EXPECT_EQ(put->status, 403u);
    EXPECT_TRUE(co_await ask("GET")) << "on a connection of its own";
  });
  EXPECT_EQ(connections_, 2u);
}

TEST_F(HttpClientTest, AnAnswerThatIsCutIsLost) {
  run([&]() -> Task<> {
    steps_ = {{.answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", .closes = true},
              {.answer = "220 mail.example.com ESMTP\r\n\r\n", .closes = true}};
    auto cut = co_await ask("GET");
    EXPECT_TRUE(!cut && cut.error().code == ClientErrc::kLost);
    auto odd = co_await ask("GET");
    EXPECT_TRUE(!odd && odd.error().code == ClientErrc::kBadAnswer);
  });
}

TEST_F(HttpClientTest, WhoIsAskedToStopStops) {
  run([&]() -> Task<> {
    steps_ = {{.answer = ""}};
    TaskContext& context = co_await this_context();
    MonotonicTime began = context.executor->now();
    auto stopped = co_await with_deadline(began + 200ms, ask("GET"));
    EXPECT_TRUE(!stopped && stopped.error().code == ClientErrc::kStopped);
    EXPECT_LT(context.executor->now() - began, 300ms);
  });
}

TEST_F(HttpClientTest, AServerThatIsNotThereIsUnreachable) {
  listener_->close();
  run([&]() -> Task<> {
    auto answer = co_await ask("PUT");
    EXPECT_TRUE(!answer && answer.error().code == ClientErrc::kUnreachable);
  });
}

}  // namespace
}  // namespace varve::runtime::http
