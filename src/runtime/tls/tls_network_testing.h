// A network whose every connection is TLS, to hold TLS to what every network must do.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "runtime/runtime_under_test.h"
#include "runtime/task_scope.h"
#include "runtime/tls/certificates_testing.h"
#include "runtime/tls/tls_stream.h"

namespace varve::runtime {

using MadeStream = NetResult<std::unique_ptr<Stream>>;

// A stream whose handshake goes on while its owner has it already: the suite connects first and accepts then, from one
// task. What is called before the end of the handshake waits for it.
class HandshakingStream final : public Stream {
 public:
  struct State {
    std::optional<MadeStream> made;
    std::stop_source stop;
    std::vector<Completion<Done>> waiting;

    void wake() {
      for (const Completion<Done>& waiter : std::exchange(waiting, {})) waiter.set(Done{});
    }
  };

  explicit HandshakingStream(Address peer) : peer_(std::move(peer)) {}
  ~HandshakingStream() override { close(); }

  Task<NetResult<size_t>> read_some(MutableByteView into) override {
    auto ready = co_await wait_until_made();
    if (!ready) co_return pass_error(ready);
    co_return co_await (**state_->made)->read_some(into);
  }
  Task<NetResult<void>> write(std::span<const ByteView> slices) override {
    auto ready = co_await wait_until_made();
    if (!ready) co_return ready;
    co_return co_await (**state_->made)->write(slices);
  }
  void close() override {
    state_->stop.request_stop();
    if (state_->made && *state_->made) (**state_->made)->close();
    state_->wake();
  }
  const Address& peer() const override { return peer_; }

  const std::shared_ptr<State>& state() const { return state_; }

 private:
  Task<NetResult<void>> wait_until_made() {
    TaskContext& context = co_await this_context();
    while (!state_->made) {
      if (context.stop.stop_requested() || state_->stop.stop_requested()) {
        co_return fail(NetErrc::kClosed, "stopped or closed");
      }
      Completion<Done> made;
      state_->waiting.push_back(made);
      co_await wait_until(made, MonotonicTime::never(), Done{});
    }
    if (!*state_->made) co_return std::unexpected(state_->made->error());
    co_return NetResult<void>{};
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
  Address peer_;
};

inline Task<> shake_hands(std::shared_ptr<HandshakingStream::State> state, Task<MadeStream> handshake) {
  TaskContext& outer = co_await this_context();
  TaskContext inner{outer.executor, state->stop.get_token()};
  std::stop_callback on_stop(outer.stop, [&state] { state->stop.request_stop(); });
  MadeStream made = co_await std::move(handshake).in_context(inner);
  if (made && state->stop.stop_requested()) (*made)->close();
  state->made.emplace(std::move(made));
  state->wake();
}

// Its handshakes belong to `scope`.
class TlsNetwork final : public Network {
 public:
  explicit TlsNetwork(Runtime& inner) : inner_(inner) {}

  NetResult<std::unique_ptr<Listener>> listen(Executor& executor, const Address& address) override {
    auto listener = inner_.network().listen(executor, address);
    if (!listener) return listener;
    return std::make_unique<TlsListener>(*this, std::move(*listener));
  }
  Task<MadeStream> connect(Address address, MonotonicTime deadline) override {
    auto plain = co_await inner_.network().connect(address, deadline);
    if (!plain) co_return plain;
    TaskContext& context = co_await this_context();
    auto stream = std::make_unique<HandshakingStream>((*plain)->peer());
    start(*context.executor, *stream,
          tls_connect(parties_.client, std::move(*plain), address.host, deadline));
    co_return std::move(stream);
  }

  TaskScope& scope() { return scope_; }

 private:
  class TlsListener final : public Listener {
   public:
    TlsListener(TlsNetwork& network, std::unique_ptr<Listener> inner)
        : network_(network), inner_(std::move(inner)) {}

    Task<MadeStream> accept(Executor& executor) override {
      auto plain = co_await inner_->accept(executor);
      if (!plain) co_return plain;
      auto stream = std::make_unique<HandshakingStream>((*plain)->peer());
      MonotonicTime deadline = executor.now() + 10s;
      network_.start(executor, *stream, tls_accept(network_.parties_.server, std::move(*plain), deadline));
      co_return std::move(stream);
    }
    void close() override { inner_->close(); }
    const Address& local() const override { return inner_->local(); }

   private:
    TlsNetwork& network_;
    std::unique_ptr<Listener> inner_;
  };

  void start(Executor& executor, const HandshakingStream& stream, Task<MadeStream> handshake) {
    scope_.spawn(executor, "handshake", shake_hands(stream.state(), std::move(handshake)));
  }

  Runtime& inner_;
  TlsParties parties_ = TlsParties::make();
  TaskScope scope_;
};

// Another runtime with that network.
class TlsRuntime final : public Runtime {
 public:
  explicit TlsRuntime(Runtime& inner) : inner_(inner) {}

  MonotonicTime now() const override { return inner_.now(); }
  WallTime wall_now() const override { return inner_.wall_now(); }
  uint64_t random_seed() override { return inner_.random_seed(); }
  Executor& core() override { return inner_.core(); }
  size_t io_count() const override { return inner_.io_count(); }
  Executor& io(size_t index) override { return inner_.io(index); }
  void offload(Lane lane, Job job) override { inner_.offload(lane, std::move(job)); }
  FileSystem& file_system() override { return inner_.file_system(); }
  Network& network() override { return network_; }

  TaskScope& handshakes() { return network_.scope(); }

 private:
  Runtime& inner_;
  TlsNetwork network_{inner_};
};

class TlsUnderTest final : public RuntimeUnderTest {
 public:
  explicit TlsUnderTest(std::unique_ptr<RuntimeUnderTest> inner) : inner_(std::move(inner)) {}

  Runtime& runtime() override { return runtime_; }
  // Once.
  void run(Executor& executor, Task<> task) override {
    inner_->run(executor, run_and_close(std::move(task), runtime_.handshakes()));
  }

 private:
  static Task<> run_and_close(Task<> task, TaskScope& handshakes) {
    co_await std::move(task);
    co_await handshakes.close();
  }

  std::unique_ptr<RuntimeUnderTest> inner_;
  TlsRuntime runtime_{inner_->runtime()};
};

inline RuntimeCase over_tls(const RuntimeCase& inner) {
  return {inner.name, [make = inner.make] { return std::make_unique<TlsUnderTest>(make()); }};
}

}  // namespace varve::runtime
