#include "broker/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <thread>

#include "broker/server/test_socket.h"
#include "protocol/messages/metadata.h"
#include "protocol/messages/produce.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"

namespace varve::broker {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Keeps the lines.
class CapturingSink final : public LogSink {
 public:
  void write(const LogRecord& record) override {
    std::lock_guard lock(mutex_);
    lines_.push_back(format_log_text(record));
  }
  // Waits for so many lines, for a while.
  size_t count_with(std::string_view text, size_t expected) {
    for (int i = 0; i < 500 && lines_with(text).size() < expected; ++i) std::this_thread::sleep_for(10ms);
    return lines_with(text).size();
  }
  std::vector<std::string> lines_with(std::string_view text) {
    std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const std::string& line : lines_) {
      if (line.find(text) != std::string::npos) found.push_back(line);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// Answers each request when the test says so, by its correlation id.
class ScriptedHandler final : public RequestHandler {
 public:
  runtime::Task<Reply> handle(RequestContext context, protocol::RequestFrame request) override {
    int32_t id = request.header.correlation_id;
    runtime::Completion<Reply> reply;
    {
      std::lock_guard lock(mutex_);
      started_.push_back(id);
      placed_.emplace(id, context.placed);
      replies_.emplace(id, reply);
      bodies_.emplace(id, request.body.size());
      changed_.notify_all();
      auto ready = ready_.find(id);
      if (ready != ready_.end()) {
        context.placed.set(runtime::Done{});
        reply.set(ready->second);
      }
    }
    co_return co_await reply.wait();
  }

  static Reply reply_with(int32_t id) {
    ByteWriter writer;
    writer.be<int32_t>(4);
    writer.be(id);
    return Reply::response({Slice::take(writer.take())});
  }
  // Beforehand or afterwards.
  void answer(int32_t id, std::optional<Reply> reply = std::nullopt) {
    Reply value = reply ? std::move(*reply) : reply_with(id);
    std::lock_guard lock(mutex_);
    auto waiting = replies_.find(id);
    if (waiting == replies_.end()) {
      ready_.emplace(id, std::move(value));
    } else {
      waiting->second.set(std::move(value));
    }
  }
  void place(int32_t id) {
    std::lock_guard lock(mutex_);
    placed_.at(id).set(runtime::Done{});
  }
  // Waits until so many requests have started.
  std::vector<int32_t> wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 20s, [&] { return started_.size() >= count; });
    return started_;
  }
  std::vector<int32_t> started() {
    std::lock_guard lock(mutex_);
    return started_;
  }
  size_t body_bytes(int32_t id) {
    std::lock_guard lock(mutex_);
    return bodies_.at(id);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int32_t> started_;
  std::map<int32_t, runtime::Completion<Reply>> replies_;
  std::map<int32_t, runtime::Completion<runtime::Done>> placed_;
  std::map<int32_t, Reply> ready_;
  std::map<int32_t, size_t> bodies_;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() { limits_.log_repeat_interval = 0ns; }
  ~ServerTest() override { stop(); }

  void start() {
    server_ = std::make_unique<Server>(
        runtime_, handler_, limits_, "PLAINTEXT",
        Logger(sink_, [] { return WallTime(0); }, LogLevel::kDebug, "server"), metrics_);
    run_on_io([this] {
      auto bound = server_->listen({"127.0.0.1", 0});
      ASSERT_TRUE(bound) << bound.error().message;
      server_->start();
    });
  }
  template <class Function>
  void run_on_io(Function function) {
    runtime::run_blocking(runtime_.io(0), runtime::call(runtime_.io(0), std::move(function)));
  }
  void stop(Duration patience = 10s) {
    if (!server_) return;
    runtime::run_blocking(runtime_.io(0), server_->stop(runtime_.now() + patience));
    server_.reset();
  }
  uint16_t port() const { return server_->local().port; }

  static std::vector<Slice> metadata(int32_t id) {
    return protocol::request_frame(protocol::MetadataRequest{}, 9, id, "test");
  }
  static std::vector<Slice> produce(int32_t id) {
    return protocol::request_frame(protocol::ProduceRequest{}, 9, id, "test");
  }
  static std::vector<uint8_t> bytes_of(int32_t id) {
    ByteWriter writer;
    writer.be(id);
    return writer.take();
  }
  double gauge(const std::string& name) {
    std::string text = metrics_.to_prometheus_text();
    size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  Limits limits_;
  CapturingSink sink_;
  MetricRegistry metrics_;
  runtime::AsioRuntime runtime_{{.io_threads = 2, .disk_threads = 1}};
  ScriptedHandler handler_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, RepliesKeepTheOrderOfRequestsThoughProducesEndInAnother) {
  start();
  TestSocket client(port());
  for (int32_t id : {1, 2, 3}) {
    client.send(produce(id));
    handler_.wait_for(static_cast<size_t>(id));
    handler_.place(id);
  }
  handler_.answer(3);
  handler_.answer(2);
  EXPECT_FALSE(client.has_bytes_within(50ms));
  handler_.answer(1);
  for (int32_t id : {1, 2, 3}) EXPECT_EQ(client.receive_frame(), bytes_of(id));
}

TEST_F(ServerTest, AProduceStartsWhenTheOneBeforeHasItsPlace) {
  start();
  TestSocket client(port());
  client.send(produce(1));
  client.send(produce(2));
  EXPECT_THAT(handler_.wait_for(1), ElementsAre(1));
  std::this_thread::sleep_for(30ms);
  EXPECT_THAT(handler_.started(), ElementsAre(1));
  handler_.place(1);
  EXPECT_THAT(handler_.wait_for(2), ElementsAre(1, 2));
  handler_.answer(1);
  handler_.answer(2);
}

TEST_F(ServerTest, AnyOtherRequestStartsWhenThoseBeforeItAreDoneAndHoldsBackThoseAfterIt) {
  start();
  TestSocket client(port());
  client.send(produce(1));
  client.send(metadata(2));
  client.send(produce(3));
  handler_.wait_for(1);
  handler_.place(1);
  std::this_thread::sleep_for(30ms);
  EXPECT_THAT(handler_.started(), ElementsAre(1));
  handler_.answer(1);
  EXPECT_THAT(handler_.wait_for(2), ElementsAre(1, 2));
  std::this_thread::sleep_for(30ms);
  EXPECT_THAT(handler_.started(), ElementsAre(1, 2));
  handler_.answer(2);
  EXPECT_THAT(handler_.wait_for(3), ElementsAre(1, 2, 3));
  handler_.answer(3);
}

TEST_F(ServerTest, NoMoreProducesOverlapThanTheLimitAllows) {
  limits_.requests_in_flight_per_connection_max = 2;
  start();
  TestSocket client(port());
  for (int32_t id : {1, 2, 3}) client.send(produce(id));
  handler_.wait_for(1);
  handler_.place(1);
  handler_.wait_for(2);
  handler_.place(2);
  std::this_thread::sleep_for(30ms);
  EXPECT_THAT(handler_.started(), ElementsAre(1, 2));
  handler_.answer(2);
  EXPECT_THAT(handler_.wait_for(3), ElementsAre(1, 2, 3));
  handler_.answer(1);
  handler_.answer(3);
}

TEST_F(ServerTest, AWaitingRequestHoldsNoOtherConnection) {
  start();
  std::vector<std::unique_ptr<TestSocket>> waiting;
  for (int32_t id = 1; id <= 20; ++id) {
    waiting.push_back(std::make_unique<TestSocket>(port()));
    waiting.back()->send(metadata(id));
  }
  handler_.wait_for(20);
  handler_.answer(100);
  TestSocket client(port());
  client.send(metadata(100));
  EXPECT_EQ(client.receive_frame(), bytes_of(100));
  for (int32_t id = 1; id <= 20; ++id) handler_.answer(id);
}

TEST_F(ServerTest, ARequestWithoutAReplyShiftsNoLaterOne) {
  start();
  TestSocket client(port());
  handler_.answer(1, Reply::none());
  handler_.answer(2);
  client.send(produce(1));
  client.send(metadata(2));
  EXPECT_EQ(client.receive_frame(), bytes_of(2));
}

TEST_F(ServerTest, AReplyThatClosesComesAfterTheRepliesBeforeIt) {
  start();
  TestSocket client(port());
  handler_.answer(1);
  handler_.answer(2, Reply::close("because"));
  client.send(metadata(1));
  client.send(produce(2));
  EXPECT_EQ(client.receive_frame(), bytes_of(1));
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(sink_.count_with("because", 1), 1u);
}

TEST_F(ServerTest, AnOversizedFrameIsClosedLoggedOnceAndTakesNoMemory) {
  limits_.frame_bytes_max = 1 * kMiB;
  limits_.request_memory_bytes_max = 2 * kMiB;
  start();
  for (uint32_t size : {uint32_t{1 * kMiB + 1}, uint32_t{200 * kMiB}, uint32_t{0x7fffffff}}) {
    TestSocket client(port());
    ByteWriter writer;
    writer.be(size);
    client.send(writer.view());
    EXPECT_TRUE(client.is_closed());
    EXPECT_EQ(gauge("varve_request_memory_bytes"), 0);
  }
  EXPECT_EQ(sink_.count_with("malformed frame", 3), 3u);
  EXPECT_THAT(sink_.lines_with("malformed frame")[1], HasSubstr("209715200"));
}

TEST_F(ServerTest, AMalformedFrameIsClosedAndLoggedOnce) {
  start();
  std::vector<std::vector<uint8_t>> frames = {
      {0xff, 0xff, 0xff, 0xff},                                     // negative length
      {0, 0, 0, 0},                                                 // no header
      {0, 0, 0, 3, 0, 3, 0},                                        // less than a key and a version
      {0, 0, 0, 8, 0, 3, 0, 9, 0, 0, 0, 1},                         // no client id
      {0, 0, 0, 12, 0, 3, 0, 9, 0, 0, 0, 1, 0x7f, 0xff, 'a', 'b'},  // client id longer than the frame
      {0, 0, 0, 10, 0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff},            // no tag buffer
  };
  for (size_t i = 0; i < frames.size(); ++i) {
    TestSocket client(port());
    client.send(ByteView(frames[i]));
    EXPECT_TRUE(client.is_closed()) << i;
  }
  EXPECT_EQ(sink_.count_with("connection closed", frames.size()), frames.size());
  EXPECT_TRUE(handler_.started().empty());
}

TEST_F(ServerTest, AnUnknownApiOrVersionClosesTheConnectionAsInKafka) {
  start();
  struct Case {
    int16_t key, version;
  };
  for (Case unknown : {Case{9999, 0}, Case{-1, 0}, Case{3, 99}, Case{0, 2}, Case{11, 4}}) {
    TestSocket client(port());
    ByteWriter writer;
    writer.be<int32_t>(10);
    writer.be(unknown.key);
    writer.be(unknown.version);
    writer.be<int32_t>(7);
    writer.be<int16_t>(-1);
    client.send(writer.view());
    EXPECT_TRUE(client.is_closed()) << unknown.key << " " << unknown.version;
  }
  EXPECT_EQ(sink_.count_with("request refused", 5), 5u);
}

TEST_F(ServerTest, AnUnknownVersionOfApiVersionsReachesTheHandlerAndKeepsTheConnection) {
  start();
  handler_.answer(7);
  handler_.answer(8);
  TestSocket client(port());
  std::vector<uint8_t> request = {0, 0, 0, 16, 0, 18, 0, 9, 0, 0, 0, 7, 0xff, 0xff, 0, 2, 'x', 2, '1', 0};
  client.send(ByteView(request));
  EXPECT_EQ(client.receive_frame(), bytes_of(7));
  client.send(metadata(8));
  EXPECT_EQ(client.receive_frame(), bytes_of(8));
}

TEST_F(ServerTest, FramesArriveInAnyPieces) {
  start();
  std::vector<uint8_t> stream;
  for (int32_t id = 1; id <= 50; ++id) {
    for (const Slice& slice : metadata(id))
      stream.insert(stream.end(), slice.view().begin(), slice.view().end());
    handler_.answer(id);
  }
  TestSocket all_at_once(port());
  all_at_once.send(ByteView(stream));
  for (int32_t id = 1; id <= 50; ++id) ASSERT_EQ(all_at_once.receive_frame(), bytes_of(id));
  TestSocket byte_by_byte(port());
  for (size_t i = 0; i < 200; ++i) ASSERT_TRUE(byte_by_byte.send(ByteView(stream).subspan(i, 1)));
  EXPECT_EQ(byte_by_byte.receive_frame(), bytes_of(1));
}

TEST_F(ServerTest, LargeFramesAndRepliesPassWhole) {
  start();
  constexpr size_t kBytes = 9 * kMiB;
  protocol::ProduceRequest request;
  auto& partition = request.topic_data.emplace_back().partition_data.emplace_back();
  partition.records = Slice::take(std::vector<uint8_t>(kBytes, 7));
  ByteWriter head;
  head.be<int32_t>(static_cast<int32_t>(kBytes + 3));
  std::vector<Slice> reply = {Slice::take(head.take()), Slice::copy_of(as_bytes("abc")),
                              Slice::take(std::vector<uint8_t>(kBytes, 9))};
  handler_.answer(1, Reply::response(std::move(reply)));
  TestSocket client(port());
  std::jthread sender([&] { client.send(protocol::request_frame(request, 9, 1, std::nullopt)); });
  auto received = client.receive_frame();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->size(), kBytes + 3);
  EXPECT_EQ((*received)[2], 'c');
  EXPECT_EQ(received->back(), 9);
  EXPECT_GT(handler_.body_bytes(1), kBytes);
  EXPECT_EQ(gauge("varve_reply_waiting_bytes"), 0);
}

TEST_F(ServerTest, RequestsWaitForMemoryAndGetIt) {
  limits_.frame_bytes_max = 64 * kKiB;
  limits_.request_memory_bytes_max = 100 * kKiB;
  start();
  auto large = [](int32_t id) {
    protocol::ProduceRequest request;
    request.topic_data.emplace_back().partition_data.emplace_back().records =
        Slice::take(std::vector<uint8_t>(60 * kKiB));
    return protocol::request_frame(request, 9, id, std::nullopt);
  };
  TestSocket first(port());
  TestSocket second(port());
  first.send(large(1));
  handler_.wait_for(1);
  second.send(large(2));
  std::this_thread::sleep_for(30ms);
  EXPECT_THAT(handler_.started(), ElementsAre(1));
  EXPECT_LE(gauge("varve_request_memory_bytes"), 100 * kKiB);
  handler_.answer(1);
  EXPECT_THAT(handler_.wait_for(2), ElementsAre(1, 2));
  handler_.answer(2);
  EXPECT_EQ(second.receive_frame(), bytes_of(2));
}

TEST_F(ServerTest, AConnectionOverALimitIsClosedAtOnce) {
  limits_.connections_per_address_max = 2;
  start();
  handler_.answer(1);
  {
    TestSocket first(port());
    TestSocket second(port());
    first.send(metadata(1));
    EXPECT_EQ(first.receive_frame(), bytes_of(1));
    TestSocket third(port());
    EXPECT_TRUE(third.is_closed());
  }
  // Those that left made room.
  for (int i = 0; i < 200 && server_->connection_count() > 0; ++i) std::this_thread::sleep_for(10ms);
  TestSocket next(port());
  next.send(metadata(1));
  EXPECT_EQ(next.receive_frame(), bytes_of(1));
}

TEST_F(ServerTest, AnIdleConnectionIsClosedButNotOneThatWaitsForAReply) {
  limits_.connection_idle_max = 150ms;
  start();
  TestSocket waiting(port());
  waiting.send(metadata(1));
  handler_.wait_for(1);
  TestSocket idle(port());
  EXPECT_TRUE(idle.is_closed());
  std::this_thread::sleep_for(200ms);
  handler_.answer(1);
  EXPECT_EQ(waiting.receive_frame(), bytes_of(1));
  EXPECT_TRUE(waiting.is_closed());
  EXPECT_EQ(sink_.count_with("nothing happened for too long", 2), 2u);
}

TEST_F(ServerTest, WhatWasReadBeforeTheClientClosedItsSideIsAnswered) {
  start();
  TestSocket client(port());
  client.send(metadata(1));
  client.close_sending();
  handler_.wait_for(1);
  handler_.answer(1);
  EXPECT_EQ(client.receive_frame(), bytes_of(1));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, StoppingAnswersWhatWasRead) {
  start();
  TestSocket client(port());
  client.send(produce(1));
  handler_.wait_for(1);
  handler_.place(1);
  std::jthread stopper([this] { stop(); });
  std::this_thread::sleep_for(50ms);
  handler_.answer(1);
  EXPECT_EQ(client.receive_frame(), bytes_of(1));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, AClientThatLeavesInTheMiddleOfAFrameLeavesNothingBehind) {
  start();
  for (int i = 0; i < 20; ++i) {
    TestSocket client(port());
    std::vector<uint8_t> part = {0, 0, 1, 0, 0, 3, 0, 9};
    client.send(ByteView(part));
  }
  for (int i = 0; i < 200 && server_->connection_count() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(server_->connection_count(), 0u);
  EXPECT_EQ(gauge("varve_request_memory_bytes"), 0);
}

}  // namespace
}  // namespace varve::broker
