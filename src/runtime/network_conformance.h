// What every Network must do while nothing is wrong. Included by the test of each runtime, as
// runtime_conformance.h is; the suite is NetworkConformance.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/runtime_under_test.h"
#include "runtime/task_scope.h"

namespace varve::runtime {

class NetworkConformance : public testing::TestWithParam<RuntimeCase> {
 protected:
  // The body of a test: a plain function that is a coroutine, run on io(0).
  void run(Task<> (*body)(Runtime&)) {
    std::unique_ptr<RuntimeUnderTest> world = GetParam().make();
    world->run(world->runtime().io(0), body(world->runtime()));
  }
};

namespace conformance {

inline std::unique_ptr<Listener> must_listen(Runtime& runtime) {
  auto listener = runtime.network().listen(runtime.io(0), {"127.0.0.1", 0});
  EXPECT_TRUE(listener) << listener.error().message;
  return listener ? std::move(*listener) : nullptr;
}

inline Task<std::unique_ptr<Stream>> must_connect(Runtime& runtime, uint16_t port) {
  auto stream = co_await runtime.network().connect({"127.0.0.1", port}, runtime.now() + 10s);
  EXPECT_TRUE(stream) << stream.error().message;
  co_return stream ? std::move(*stream) : nullptr;
}

struct StreamPair {
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

// Both ends on io(0), where the caller runs.
inline Task<StreamPair> must_pair(Runtime& runtime) {
  auto listener = must_listen(runtime);
  auto client = co_await must_connect(runtime, listener->local().port);
  auto server = co_await listener->accept(runtime.io(0));
  EXPECT_TRUE(server) << server.error().message;
  StreamPair pair;
  pair.client = std::move(client);
  if (server) pair.server = std::move(*server);
  co_return std::move(pair);
}

inline Task<> must_write(Stream& stream, std::string text) {
  std::vector<ByteView> slices = {as_bytes(text)};
  auto written = co_await stream.write(slices);
  EXPECT_TRUE(written) << written.error().message;
}

// Reads until `size` bytes are there or the stream ends.
inline Task<std::string> read_text(Stream& stream, size_t size) {
  std::vector<uint8_t> bytes(size);
  size_t got = 0;
  while (got < size) {
    auto more = co_await stream.read_some(MutableByteView(bytes).subspan(got));
    EXPECT_TRUE(more) << more.error().message;
    if (!more || *more == 0) break;
    got += *more;
  }
  co_return std::string(as_text(ByteView(bytes).first(got)));
}

inline Task<NetErrc> read_error(Stream& stream) {
  std::vector<uint8_t> bytes(10);
  auto got = co_await stream.read_some(bytes);
  EXPECT_FALSE(got);
  co_return got ? NetErrc::kNoResources : got.error().code;
}

inline Task<> echo(std::unique_ptr<Stream> stream) {
  std::vector<uint8_t> bytes(4096);
  for (;;) {
    auto got = co_await stream->read_some(bytes);
    if (!got || *got == 0) co_return;
    std::vector<ByteView> slices = {ByteView(bytes).first(*got)};
    auto written = co_await stream->write(slices);
    if (!written) co_return;
  }
}

inline Task<> serve_echo(Runtime& runtime, std::unique_ptr<Listener> listener, TaskScope& scope) {
  for (size_t i = 0;; ++i) {
    Executor& executor = runtime.io(i % runtime.io_count());
    auto stream = co_await listener->accept(executor);
    if (!stream) {
      EXPECT_EQ(stream.error().code, NetErrc::kClosed);
      co_return;
    }
    scope.spawn(executor, "echo", echo(std::move(*stream)));
  }
}

inline Task<> write_many(Stream& stream, const std::string& text) {
  for (size_t at = 0; at < text.size(); at += 10'000) {
    std::string_view part = std::string_view(text).substr(at, 10'000);
    std::vector<ByteView> slices = {as_bytes(part.substr(0, 3)), {}, as_bytes(part.substr(3))};
    auto written = co_await stream.write(slices);
    EXPECT_TRUE(written) << written.error().message;
  }
}

inline Task<> echo_back(Runtime& runtime, uint16_t port, Completion<Done> done) {
  auto client = co_await must_connect(runtime, port);
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("{},", i);
  TaskScope writer;
  TaskContext& context = co_await this_context();
  writer.spawn(*context.executor, "writer", write_many(*client, text));
  std::string echoed = co_await read_text(*client, text.size());
  EXPECT_TRUE(echoed == text) << "all bytes in order";
  co_await writer.close();
  done.set(Done{});
}

inline Task<> echoes(Runtime& runtime) {
  TaskScope scope;
  auto listener = must_listen(runtime);
  uint16_t port = listener->local().port;
  scope.spawn(runtime.io(0), "server", serve_echo(runtime, std::move(listener), scope));
  std::vector<Completion<Done>> all_done(4);
  for (size_t i = 0; i < all_done.size(); ++i) {
    scope.spawn(runtime.io(i % runtime.io_count()), "client", echo_back(runtime, port, all_done[i]));
  }
  for (const Completion<Done>& done : all_done) co_await done.wait();
  co_await scope.close();
}

inline Task<> end_of_stream(Runtime& runtime) {
  StreamPair pair = co_await must_pair(runtime);
  co_await must_write(*pair.server, "bye");
  pair.server->close();
  EXPECT_EQ(co_await read_text(*pair.client, 100), "bye");
  std::vector<uint8_t> bytes(10);
  auto again = co_await pair.client->read_some(bytes);
  EXPECT_TRUE(again && *again == 0) << "the end stays the end";
}

inline Task<> write_to_closed(Runtime& runtime) {
  StreamPair pair = co_await must_pair(runtime);
  pair.server.reset();
  std::vector<ByteView> slices = {as_bytes("is anybody there?")};
  NetErrc code = NetErrc::kNoResources;
  for (int i = 0; i < 1000 && code == NetErrc::kNoResources; ++i) {
    auto written = co_await pair.client->write(slices);
    if (!written) code = written.error().code;
    co_await sleep_for(1ms);
  }
  EXPECT_EQ(code, NetErrc::kReset);
}

inline Task<> refused(Runtime& runtime) {
  auto listener = must_listen(runtime);
  uint16_t port = listener->local().port;
  listener.reset();
  co_await sleep_for(1ms);
  auto stream = co_await runtime.network().connect({"127.0.0.1", port}, runtime.now() + 10s);
  EXPECT_TRUE(!stream && stream.error().code == NetErrc::kRefused);
}

inline Task<> ports(Runtime& runtime) {
  auto first = must_listen(runtime);
  auto other = must_listen(runtime);
  EXPECT_NE(first->local().port, 0);
  EXPECT_NE(first->local().port, other->local().port);
  auto same = runtime.network().listen(runtime.io(0), first->local());
  EXPECT_TRUE(!same && same.error().code == NetErrc::kAddressInUse);
  Address address = first->local();
  first.reset();
  co_await sleep_for(1ms);
  auto again = runtime.network().listen(runtime.io(0), address);
  EXPECT_TRUE(again) << "a closed listener frees its port";
}

inline Task<> close_soon(Stream& stream) {
  co_await sleep_for(2ms);
  stream.close();
}

inline Task<> close_ends_read(Runtime& runtime) {
  StreamPair pair = co_await must_pair(runtime);
  TaskScope scope;
  scope.spawn(runtime.io(0), "closer", close_soon(*pair.client));
  EXPECT_EQ(co_await read_error(*pair.client), NetErrc::kClosed);
  EXPECT_EQ(co_await read_error(*pair.client), NetErrc::kClosed);
  std::vector<ByteView> slices = {as_bytes("x")};
  auto written = co_await pair.client->write(slices);
  EXPECT_TRUE(!written && written.error().code == NetErrc::kClosed);
  co_await scope.close();
}

inline Task<> record_read_error(Stream& stream, Completion<NetErrc> error) {
  NetErrc code = co_await read_error(stream);
  error.set(code);
}

inline Task<> record_accept_error(Listener& listener, Executor& executor, Completion<NetErrc> error) {
  auto stream = co_await listener.accept(executor);
  EXPECT_FALSE(stream);
  error.set(stream ? NetErrc::kNoResources : stream.error().code);
}

inline Task<> stop_ends_waits(Runtime& runtime) {
  StreamPair pair = co_await must_pair(runtime);
  auto listener = must_listen(runtime);
  Completion<NetErrc> from_read;
  Completion<NetErrc> from_accept;
  TaskScope scope;
  scope.spawn(runtime.io(0), "reader", record_read_error(*pair.client, from_read));
  scope.spawn(runtime.io(0), "acceptor", record_accept_error(*listener, runtime.io(0), from_accept));
  co_await sleep_for(2ms);
  co_await scope.close();
  EXPECT_EQ(co_await from_read.wait(), NetErrc::kClosed);
  EXPECT_EQ(co_await from_accept.wait(), NetErrc::kClosed);
  co_await must_write(*pair.server, "on");
  EXPECT_EQ(co_await read_text(*pair.client, 2), "on") << "the stream outlives a read that was stopped";
}

inline Task<> close_ends_accept(Runtime& runtime) {
  auto listener = must_listen(runtime);
  Completion<NetErrc> error;
  TaskScope scope;
  scope.spawn(runtime.io(0), "acceptor", record_accept_error(*listener, runtime.io(0), error));
  co_await sleep_for(2ms);
  listener->close();
  EXPECT_EQ(co_await error.wait(), NetErrc::kClosed);
  co_await scope.close();
}

inline constexpr size_t kMoreThanBuffers = 32 << 20;

inline Task<> write_much(Stream& stream, Completion<Done> done) {
  std::vector<uint8_t> bytes(kMoreThanBuffers);
  std::vector<ByteView> slices = {bytes};
  auto written = co_await stream.write(slices);
  EXPECT_TRUE(written) << written.error().message;
  done.set(Done{});
}

inline Task<> writes_wait_for_readers(Runtime& runtime) {
  StreamPair pair = co_await must_pair(runtime);
  Completion<Done> done;
  TaskScope scope;
  scope.spawn(runtime.io(0), "writer", write_much(*pair.server, done));
  co_await sleep_for(50ms);
  EXPECT_FALSE(done.is_set()) << "nobody has read yet";
  std::vector<uint8_t> bytes(1 << 20);
  size_t total = 0;
  while (total < kMoreThanBuffers) {
    auto got = co_await pair.client->read_some(bytes);
    EXPECT_TRUE(got && *got > 0);
    if (!got || *got == 0) break;
    total += *got;
  }
  co_await done.wait();
  co_await scope.close();
}

inline Task<> peers_are_told(Runtime& runtime) {
  StreamPair pair = co_await must_pair(runtime);
  EXPECT_EQ(pair.client->peer().host, "127.0.0.1");
  EXPECT_FALSE(pair.server->peer().host.empty());
  EXPECT_NE(pair.server->peer().port, 0);
}

}  // namespace conformance

TEST_P(NetworkConformance, BytesArriveInOrderOnManyConnections) { run(conformance::echoes); }
TEST_P(NetworkConformance, AClosedPeerIsTheEndOfTheStream) { run(conformance::end_of_stream); }
TEST_P(NetworkConformance, WritingToAClosedPeerIsAReset) { run(conformance::write_to_closed); }
TEST_P(NetworkConformance, ConnectingToNobodyIsRefused) { run(conformance::refused); }
TEST_P(NetworkConformance, APortHasOneListener) { run(conformance::ports); }
TEST_P(NetworkConformance, ClosingEndsAPendingRead) { run(conformance::close_ends_read); }
TEST_P(NetworkConformance, AStopEndsPendingReadsAndAccepts) { run(conformance::stop_ends_waits); }
TEST_P(NetworkConformance, ClosingAListenerEndsAPendingAccept) { run(conformance::close_ends_accept); }
TEST_P(NetworkConformance, WritesWaitForReaders) { run(conformance::writes_wait_for_readers); }
TEST_P(NetworkConformance, PeersAreTold) { run(conformance::peers_are_told); }

}  // namespace varve::runtime
