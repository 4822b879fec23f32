// What tests of the server share: it runs on real sockets, behind it a handler that answers as the test says.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "broker/server/server.h"
#include "broker/server/test_socket.h"
#include "protocol/messages/metadata.h"
#include "protocol/messages/produce.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"

namespace varve::broker {

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
      contexts_[id] = context;
      contexts_[id].memory = nullptr;
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

  static Reply reply_with(int32_t id, Duration throttle = {}) {
    ByteWriter writer;
    writer.be<int32_t>(4);
    writer.be(id);
    Reply reply = Reply::response({Slice::take(writer.take())});
    reply.throttle = throttle;
    return reply;
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
  // What the server said of the request.
  RequestContext context(int32_t id) {
    std::lock_guard lock(mutex_);
    return contexts_.at(id);
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
  std::map<int32_t, RequestContext> contexts_;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() { limits_.log_repeat_interval = 0ns; }
  ~ServerTest() override { stop(); }

  void start() {
    server_ = std::make_unique<Server>(
        runtime_, handler_, limits_,
        Logger(sink_, [] { return WallTime(0); }, LogLevel::kDebug, "server"), metrics_);
    run_on_io([this] {
      auto second = server_->listen("SECOND", {"127.0.0.1", 0});
      ASSERT_TRUE(second) << second.error().message;
      auto bound = server_->listen("PLAINTEXT", {"127.0.0.1", 0});
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
  uint16_t port(std::string_view listener = "PLAINTEXT") const { return server_->local(listener).port; }

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

}  // namespace varve::broker
