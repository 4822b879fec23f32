// Frames and headers that are none: the connection is closed, the operator is told, no memory is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/server/server_testing.h"

namespace varve::broker {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

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

TEST_F(ServerTest, AFrameAboveTheLimitWaitsForNoMemoryThoughNoneIsLeft) {
  limits_.frame_bytes_max = 64 * kKiB;
  limits_.request_memory_bytes_max = 64 * kKiB;
  start();
  // All memory is taken by a request that is being served.
  TestSocket holder(port());
  protocol::ProduceRequest request;
  request.topic_data.emplace_back().partition_data.emplace_back().records =
      Slice::take(std::vector<uint8_t>(60 * kKiB));
  holder.send(protocol::request_frame(request, 9, 1, std::nullopt));
  handler_.wait_for(1);
  double held = gauge("varve_request_memory_bytes");
  EXPECT_GT(held, 60 * kKiB);
  TestSocket client(port());
  ByteWriter writer;
  writer.be<uint32_t>(200 * kMiB);
  client.send(writer.view());
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(gauge("varve_request_memory_bytes"), held);
  handler_.answer(1);
}

TEST_F(ServerTest, AFloodOfBadFramesIsOneLineThatCountsTheRest) {
  limits_.log_repeat_interval = 1s;
  start();
  auto send_bad_frames = [&](int count) {
    for (int i = 0; i < count; ++i) {
      TestSocket client(port());
      client.send(ByteView(std::vector<uint8_t>{0xff, 0xff, 0xff, 0xff}));
      EXPECT_TRUE(client.is_closed());
    }
  };
  send_bad_frames(20);
  EXPECT_EQ(sink_.lines_with("malformed frame").size(), 1u);
  std::this_thread::sleep_for(1100ms);
  send_bad_frames(1);
  EXPECT_EQ(sink_.count_with("malformed frame", 2), 2u);
  EXPECT_THAT(sink_.lines_with("malformed frame")[1], HasSubstr("19"));
  EXPECT_EQ(gauge("varve_bad_requests_total"), 21);
}

TEST_F(ServerTest, ARequestThatTheHandlerCannotReadIsLoggedAndCountedAsBadInput) {
  start();
  TestSocket client(port());
  handler_.answer(1, Reply::malformed("malformed Metadata request"));
  client.send(metadata(1));
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(sink_.count_with("malformed Metadata request", 1), 1u);
  EXPECT_THAT(sink_.lines_with("malformed Metadata request")[0], HasSubstr("WARN"));
  EXPECT_EQ(gauge("varve_bad_requests_total"), 1);
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
  for (Case unknown : {Case{9999, 0}, Case{-1, 0}, Case{3, 99}, Case{0, 2}, Case{24, 4}}) {
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
