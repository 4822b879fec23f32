// The order of requests and replies, limits, and how connections end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/server/server_testing.h"

namespace varve::broker {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

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
  // The client may have the last byte before the server has seen its write end.
  for (int i = 0; i < 500 && gauge("varve_reply_waiting_bytes") > 0; ++i) std::this_thread::sleep_for(10ms);
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

TEST_F(ServerTest, ARequestBearsTheNameOfTheListenerItCameThrough) {
  start();
  TestSocket first(port("PLAINTEXT"));
  TestSocket second(port("SECOND"));
  first.send(metadata(1));
  second.send(metadata(2));
  handler_.wait_for(2);
  EXPECT_EQ(handler_.context(1).listener, "PLAINTEXT");
  EXPECT_EQ(handler_.context(2).listener, "SECOND");
  EXPECT_EQ(handler_.context(1).principal.type, "User");
  EXPECT_EQ(handler_.context(1).principal.name, "ANONYMOUS");
  handler_.answer(1);
  handler_.answer(2);
}

TEST_F(ServerTest, ARequestHasTheWholeTimeToItsDeadlineFromItsTurnOn) {
  start();
  TestSocket client(port());
  client.send(metadata(1));
  client.send(metadata(2));
  handler_.wait_for(1);
  // The second one is here, and waits.
  std::this_thread::sleep_for(100ms);
  MonotonicTime begin = runtime_.now();
  handler_.answer(1);
  handler_.wait_for(2);
  for (int32_t id : {1, 2}) {
    RequestContext context = handler_.context(id);
    EXPECT_EQ(context.deadline - context.received, limits_.sync_deadline_max) << id;
    EXPECT_EQ(context.received >= begin, id == 2) << id;
  }
  handler_.answer(2);
}

TEST_F(ServerTest, AThrottledClientGetsItsAnswerAtOnceAndItsNextRequestBeginsLater) {
  start();
  handler_.answer(1, ScriptedHandler::reply_with(1, 200ms));
  handler_.answer(2);
  TestSocket client(port());
  MonotonicTime begin = runtime_.now();
  client.send(metadata(1));
  client.send(metadata(2));
  EXPECT_EQ(client.receive_frame(), bytes_of(1));
  EXPECT_LT(runtime_.now() - begin, 150ms);
  EXPECT_EQ(client.receive_frame(), bytes_of(2));
  EXPECT_GE(runtime_.now() - begin, 200ms);
}

TEST_F(ServerTest, AProduceThatEndsLaterMakesTheWaitLonger) {
  start();
  TestSocket client(port());
  for (int32_t id : {1, 2, 3}) client.send(produce(id));
  handler_.wait_for(1);
  handler_.place(1);
  handler_.wait_for(2);
  handler_.answer(1, ScriptedHandler::reply_with(1, 100ms));
  EXPECT_EQ(client.receive_frame(), bytes_of(1));
  handler_.place(2);
  MonotonicTime begin = runtime_.now();
  handler_.answer(2, ScriptedHandler::reply_with(2, 400ms));
  EXPECT_EQ(client.receive_frame(), bytes_of(2));
  EXPECT_THAT(handler_.wait_for(3), ElementsAre(1, 2, 3));
  EXPECT_GE(runtime_.now() - begin, 400ms);
  handler_.answer(3);
}

TEST_F(ServerTest, StoppingDoesNotWaitForAThrottledClient) {
  start();
  handler_.answer(1, ScriptedHandler::reply_with(1, 20s));
  handler_.answer(2);
  TestSocket client(port());
  client.send(metadata(1));
  client.send(metadata(2));
  EXPECT_EQ(client.receive_frame(), bytes_of(1));
  MonotonicTime begin = runtime_.now();
  stop();
  EXPECT_LT(runtime_.now() - begin, 5s);
}

}  // namespace
}  // namespace varve::broker
