#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>

#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/task_scope.h"

namespace varve::runtime {
namespace {

class AsioNetworkTest : public testing::Test {
 protected:
  // Coroutines are static functions with plain parameters: a lambda's captures would not live long enough.
  template <class T>
  T run(Task<T> task) {
    return run_blocking(runtime_.io(0), std::move(task));
  }

  std::unique_ptr<Listener> listen(const std::string& host = "127.0.0.1") {
    auto listener = run([](Runtime* world, std::string name) -> Task<NetResult<std::unique_ptr<Listener>>> {
      co_return world->network().listen(world->io(0), {name, 0});
    }(&runtime_, host));
    EXPECT_TRUE(listener) << listener.error().message;
    return std::move(*listener);
  }

  AsioRuntime runtime_{{.io_threads = 2}};
};

Task<NetResult<std::string>> read_to_end(Stream* stream) {
  std::string all;
  std::vector<uint8_t> buffer(64 * 1024);
  for (;;) {
    auto got = co_await stream->read_some(buffer);
    if (!got) co_return pass_error(got);
    if (*got == 0) co_return all;
    all.append(reinterpret_cast<const char*>(buffer.data()), *got);
  }
}

Task<NetResult<void>> write_text(Stream* stream, std::string text) {
  ByteView slices[] = {as_bytes(text)};
  co_return co_await stream->write(slices);
}

// Sends back what comes, until the end.
Task<> echo(std::unique_ptr<Stream> stream) {
  std::vector<uint8_t> buffer(4096);
  for (;;) {
    auto got = co_await stream->read_some(buffer);
    if (!got || *got == 0) co_return;
    ByteView slices[] = {ByteView(buffer).first(*got)};
    if (!co_await stream->write(slices)) co_return;
  }
}

Task<> serve(Runtime* world, Listener* listener, TaskScope* scope) {
  for (size_t i = 0;; ++i) {
    Executor& target = world->io(i % world->io_count());
    auto stream = co_await listener->accept(target);
    if (!stream) co_return;
    scope->spawn(target, "echo", echo(std::move(*stream)));
  }
}

Task<std::string> exchange(Runtime* world, Address address, std::string text) {
  auto stream = co_await world->network().connect(address, world->now() + 5s);
  if (!stream) co_return stream.error().message;
  if (auto written = co_await write_text(stream->get(), text); !written) co_return written.error().message;
  std::string back;
  std::vector<uint8_t> buffer(4096);
  while (back.size() < text.size()) {
    auto got = co_await (*stream)->read_some(buffer);
    if (!got || *got == 0) co_return "cut short";
    back.append(reinterpret_cast<const char*>(buffer.data()), *got);
  }
  co_return back;
}

Task<> close_all(TaskScope* scope) { co_await scope->close(); }

class EchoTest : public AsioNetworkTest {
 protected:
  void start(const std::string& host) {
    listener_ = listen(host);
    connections_ = std::make_unique<TaskScope>();
    accepting_ = std::make_unique<TaskScope>();
    accepting_->spawn(runtime_.io(0), "serve", serve(&runtime_, listener_.get(), connections_.get()));
  }
  void finish() {
    run(close_all(accepting_.get()));
    run(close_all(connections_.get()));
    run([](std::unique_ptr<Listener> listener) -> Task<> {
      listener.reset();
      co_return;
    }(std::move(listener_)));
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<TaskScope> connections_;
  std::unique_ptr<TaskScope> accepting_;
};

TEST_F(EchoTest, BytesGoAndComeBackOverIpv4Ipv6AndNames) {
  for (std::string host : {"127.0.0.1", "::1", "localhost", ""}) {
    start(host);
    uint16_t port = listener_->local().port;
    EXPECT_NE(port, 0);
    for (std::string to : {"127.0.0.1", "::1", "localhost"}) {
      if (!host.empty() && host != to && !(host == "127.0.0.1" && to == "localhost")) continue;
      EXPECT_EQ(run(exchange(&runtime_, {to, port}, "hello " + to)), "hello " + to)
          << "listening on " << host;
    }
    finish();
  }
}

TEST_F(EchoTest, ManyConnectionsOverBothExecutorsEachGetTheirOwnBytes) {
  start("127.0.0.1");
  TaskScope clients;
  std::atomic<int> right = 0;
  auto client = [](Runtime* world, Address address, int number, std::atomic<int>* count) -> Task<> {
    for (int i = 0; i < 20; ++i) {
      std::string text(static_cast<size_t>(number * 37 + i * 501 + 1), static_cast<char>('a' + number % 26));
      if (co_await exchange(world, address, text) == text) ++*count;
    }
  };
  for (int i = 0; i < 40; ++i) {
    clients.spawn(runtime_.io(static_cast<size_t>(i) % 2), "client",
                  client(&runtime_, listener_->local(), i, &right));
  }
  run([](TaskScope* scope) -> Task<> {
    while (scope->size() > 0) co_await sleep_for(1ms);
  }(&clients));
  EXPECT_EQ(right, 40 * 20);
  finish();
}

struct Pair {
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

Task<Pair> connected_pair(Runtime* world, Listener* listener) {
  Pair pair;
  auto client = co_await world->network().connect(listener->local(), world->now() + 5s);
  auto server = co_await listener->accept(world->io(0));
  EXPECT_TRUE(client && server);
  pair.client = std::move(*client);
  pair.server = std::move(*server);
  co_return pair;
}

Task<> destroy_here(Pair, std::unique_ptr<Listener>) { co_return; }

Task<> write_into(Stream* stream, std::string text, Completion<bool> ended) {
  bool is_ok = (co_await write_text(stream, std::move(text))).has_value();
  stream->close();
  ended.set(is_ok);
}

TEST_F(AsioNetworkTest, AWriteLargerThanTheSocketTakesArrivesWholeInOrder) {
  auto listener = listen();
  Pair pair = run(connected_pair(&runtime_, listener.get()));
  std::string text;
  for (int i = 0; text.size() < 20'000'000; ++i) text += std::to_string(i);
  TaskScope scope;
  Completion<bool> ended;
  scope.spawn(runtime_.io(0), "writer", write_into(pair.client.get(), text, ended));
  auto got = run(read_to_end(pair.server.get()));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == text) << got->size() << " of " << text.size();
  run(close_all(&scope));
  run(destroy_here(std::move(pair), std::move(listener)));
}

Task<NetResult<void>> write_many(Stream* stream, int count) {
  std::string digits = "0123456789";
  std::vector<ByteView> slices;
  for (int i = 0; i < count; ++i) slices.push_back(as_bytes(digits).first(static_cast<size_t>(i % 11)));
  auto written = co_await stream->write(slices);
  stream->close();
  co_return written;
}

TEST_F(AsioNetworkTest, AWriteGathersAnyNumberOfSlicesEmptyOnesToo) {
  auto listener = listen();
  Pair pair = run(connected_pair(&runtime_, listener.get()));
  EXPECT_TRUE(run(write_many(pair.client.get(), 5000)));
  std::string expected;
  for (size_t i = 0; i < 5000; ++i) expected += std::string("0123456789").substr(0, i % 11);
  EXPECT_EQ(run(read_to_end(pair.server.get())).value_or("error"), expected);
  EXPECT_TRUE(run([](Stream* stream) -> Task<NetResult<void>> {
    co_return co_await stream->write({});
  }(pair.server.get())));
  run(destroy_here(std::move(pair), std::move(listener)));
}

Task<> read_into(Stream* stream, Completion<NetErrc> ended) {
  uint8_t buffer[10];
  auto got = co_await stream->read_some(buffer);
  ended.set(got ? NetErrc::kBadAddress : got.error().code);
}

Task<> fill_into(Stream* stream, Completion<NetErrc> ended) {
  std::string text(1 << 20, 'x');
  for (;;) {
    auto written = co_await write_text(stream, text);
    if (!written) {
      ended.set(written.error().code);
      co_return;
    }
  }
}

template <class T>
Task<T> wait_for(Completion<T> completion, T otherwise) {
  TaskContext& context = co_await this_context();
  co_return co_await wait_until(completion, context.executor->now() + 5s, otherwise);
}

TEST_F(AsioNetworkTest, CloseEndsAPendingReadAndAPendingWrite) {
  auto listener = listen();
  Pair pair = run(connected_pair(&runtime_, listener.get()));
  TaskScope scope;
  Completion<NetErrc> read_ended;
  Completion<NetErrc> write_ended;
  scope.spawn(runtime_.io(0), "reader", read_into(pair.client.get(), read_ended));
  scope.spawn(runtime_.io(0), "writer", fill_into(pair.client.get(), write_ended));
  run([](Stream* stream) -> Task<> {
    co_await sleep_for(20ms);
    stream->close();
  }(pair.client.get()));
  EXPECT_EQ(run(wait_for(read_ended, NetErrc::kTimeout)), NetErrc::kClosed);
  EXPECT_EQ(run(wait_for(write_ended, NetErrc::kTimeout)), NetErrc::kClosed);
  run(close_all(&scope));
  run(destroy_here(std::move(pair), std::move(listener)));
}

TEST_F(AsioNetworkTest, AStopEndsTheReadersOperationButNotTheWritersOfAnotherScope) {
  auto listener = listen();
  Pair pair = run(connected_pair(&runtime_, listener.get()));
  TaskScope readers;
  TaskScope writers;
  Completion<NetErrc> read_ended;
  Completion<bool> write_ended;
  std::string text(30'000'000, 'y');
  readers.spawn(runtime_.io(0), "reader", read_into(pair.client.get(), read_ended));
  writers.spawn(runtime_.io(0), "writer", write_into(pair.client.get(), text, write_ended));
  run([](TaskScope* scope) -> Task<> {
    co_await sleep_for(10ms);  // both are pending now: nobody reads at the other end
    co_await scope->close();
  }(&readers));
  EXPECT_EQ(run(wait_for(read_ended, NetErrc::kTimeout)), NetErrc::kClosed);
  EXPECT_FALSE(write_ended.is_set());
  EXPECT_EQ(run(read_to_end(pair.server.get())).value_or("").size(), text.size());
  EXPECT_TRUE(run(wait_for(write_ended, false)));
  run(close_all(&writers));
  run(destroy_here(std::move(pair), std::move(listener)));
}

TEST_F(AsioNetworkTest, TellsRefusedTakenUnknownAndSilentAddressesApart) {
  auto listener = listen();
  Address taken = listener->local();
  auto again = run([](Runtime* world, Address address) -> Task<NetResult<std::unique_ptr<Listener>>> {
    co_return world->network().listen(world->io(0), address);
  }(&runtime_, taken));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, NetErrc::kAddressInUse);
  EXPECT_NE(again.error().message.find(taken.to_string()), std::string::npos) << again.error().message;
  run(destroy_here({}, std::move(listener)));

  auto connect_code = [this](Address address, Duration limit) {
    auto attempt = [](Runtime* world, Address to, Duration span) -> Task<NetErrc> {
      auto stream = co_await world->network().connect(to, world->now() + span);
      co_return stream ? NetErrc::kClosed : stream.error().code;
    };
    return run(attempt(&runtime_, address, limit));
  };
  EXPECT_EQ(connect_code(taken, 5s), NetErrc::kRefused);
  EXPECT_EQ(connect_code({"no-such-host.invalid", 1}, 20s), NetErrc::kBadAddress);
  EXPECT_EQ(connect_code(taken, -1s), NetErrc::kTimeout);
}

TEST_F(AsioNetworkTest, APeerThatVanishesWithUnreadBytesIsAReset) {
  auto listener = listen();
  Pair pair = run(connected_pair(&runtime_, listener.get()));
  EXPECT_TRUE(run(write_text(pair.client.get(), "unread")));
  auto drop = [](Pair* both) -> Task<NetErrc> {
    co_await sleep_for(5ms);
    both->server.reset();
    uint8_t buffer[10];
    auto got = co_await both->client->read_some(buffer);
    co_return got ? NetErrc::kClosed : got.error().code;
  };
  EXPECT_EQ(run(drop(&pair)), NetErrc::kReset);
  EXPECT_EQ(run(write_text(pair.client.get(), "more")).error().code, NetErrc::kReset);
  run(destroy_here(std::move(pair), std::move(listener)));
}

TEST_F(AsioNetworkTest, AcceptWithoutDescriptorsPausesAndWorksAgainLater) {
  auto listener = listen();
  auto open_clients = [](Runtime* world, Listener* door) -> Task<std::pair<NetErrc, bool>> {
    auto client = co_await world->network().connect(door->local(), world->now() + 5s);
    if (!client) co_return std::pair(client.error().code, false);
    rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    rlimit none{3, before.rlim_max};  // below what is open: nothing more can be
    setrlimit(RLIMIT_NOFILE, &none);
    MonotonicTime start = world->now();
    auto refused = co_await door->accept(world->io(0));
    Duration paused = world->now() - start;
    setrlimit(RLIMIT_NOFILE, &before);
    auto accepted = co_await door->accept(world->io(0));
    co_return std::pair(refused ? NetErrc::kClosed : refused.error().code,
                        accepted.has_value() && paused >= 50ms);
  };
  EXPECT_EQ(run(open_clients(&runtime_, listener.get())), std::pair(NetErrc::kNoResources, true));
  run(destroy_here({}, std::move(listener)));
}

TEST_F(AsioNetworkTest, ClosingTheListenerEndsAPendingAccept) {
  auto listener = listen();
  Completion<NetErrc> ended;
  TaskScope scope;
  scope.spawn(runtime_.io(0), "accept",
              [](Runtime* world, Listener* door, Completion<NetErrc> done) -> Task<> {
                auto stream = co_await door->accept(world->io(1));
                done.set(stream ? NetErrc::kReset : stream.error().code);
              }(&runtime_, listener.get(), ended));
  run([](Listener* door) -> Task<> {
    co_await sleep_for(5ms);
    door->close();
  }(listener.get()));
  EXPECT_EQ(run(wait_for(ended, NetErrc::kTimeout)), NetErrc::kClosed);
  run(close_all(&scope));
  run(destroy_here({}, std::move(listener)));
}

TEST_F(AsioNetworkTest, FramesWithPendingOperationsMayBeDestroyedAfterStop) {
  auto listener = listen();
  Pair pair = run(connected_pair(&runtime_, listener.get()));
  {
    TaskScope scope;
    Completion<NetErrc> ended;
    scope.spawn(runtime_.io(0), "reader", read_into(pair.client.get(), ended));
    scope.spawn(runtime_.io(0), "writer", fill_into(pair.server.get(), ended));
    scope.spawn(runtime_.io(0), "accept", serve(&runtime_, listener.get(), &scope));
    run([]() -> Task<> { co_await sleep_for(5ms); }());
    runtime_.stop();
  }
  EXPECT_NE(pair.client->peer().port, 0);
}

}  // namespace
}  // namespace varve::runtime
