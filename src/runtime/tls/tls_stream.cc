#include "runtime/tls/tls_stream.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/tls/tls_engine.h"

namespace varve::runtime {

namespace {

using Step = TlsEngine::Step;

// Gathered before they are written: few system calls, and a bound for memory.
constexpr size_t kOutputBytesMax = 256 * 1024;
// Buffers above this are given back once they are written.
constexpr size_t kOutputBytesKept = 20 * 1024;
// Record header, nonce, tag and padding: 29 in TLS 1.2 with AES-GCM, 22 in TLS 1.3.
constexpr size_t kRecordOverheadMax = 64;
// Long chains of certificates take 10 KiB.
constexpr size_t kHandshakeBytesMax = 256 * 1024;

std::unexpected<NetError> closed_here() { return fail(NetErrc::kClosed, "the connection was closed here"); }

// One write that runs until it first waits, and no longer: its owner destroys it then.
struct Attempt {
  struct promise_type : internal::PromiseBase {
    Attempt get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    void return_void() const noexcept {}
  };

  std::coroutine_handle<promise_type> handle;
};

Attempt attempt_write(Stream* stream, ByteView bytes) {
  std::array<ByteView, 1> slices = {bytes};
  // Whether it went well changes nothing: this is the last that the other side is told.
  (void)co_await stream->write(slices);
}

class TlsStream final : public Stream {
 public:
  TlsStream(Executor& executor, std::unique_ptr<Stream> plain, std::unique_ptr<TlsEngine> engine)
      : executor_(executor), plain_(std::move(plain)), engine_(std::move(engine)) {}
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  // Elsewhere than on its executor it is destroyed where it stands, with a runtime that has stopped: it says nothing.
  ~TlsStream() override {
    if (executor_.is_current()) close();
  }

  // Once, before all else.
  Task<NetResult<void>> handshake();

  Task<NetResult<size_t>> read_some(MutableByteView into) override;
  Task<NetResult<void>> write(std::span<const ByteView> slices) override {
    return write_all({slices.begin(), slices.end()});
  }
  void close() override;
  const Address& peer() const override { return plain_->peer(); }

 private:
  Task<NetResult<void>> write_all(std::vector<ByteView> slices);
  Task<NetResult<void>> write_records(ByteView slice);
  Task<NetResult<void>> fill();
  Task<NetResult<void>> flush();
  void send_without_waiting();

  Executor& executor_;
  std::unique_ptr<Stream> plain_;
  std::unique_ptr<TlsEngine> engine_;
  bool is_closed_ = false;
  // A read of the plain stream is under way; who else needs its result waits for the turn.
  bool is_filling_ = false;
  std::optional<Completion<Done>> fill_waiter_;
  // The output whose write is under way; what the reader adds meanwhile (answers to the other side's changes of keys)
  // follows it. The reader itself never writes: it would wait for the other side, which may wait for it.
  bool is_sending_ = false;
  std::vector<uint8_t> sending_;
  std::optional<NetError> write_error_;
};

// Brings the engine more input, or lets another do it: the caller tries again what needed it.
Task<NetResult<void>> TlsStream::fill() {
  if (is_filling_) {
    Completion<Done> filled;
    fill_waiter_ = filled;
    co_await wait_until(filled, MonotonicTime::never(), Done{});
    co_return NetResult<void>{};
  }
  is_filling_ = true;
  auto got = co_await plain_->read_some(engine_->input_room());
  is_filling_ = false;
  if (fill_waiter_) std::exchange(fill_waiter_, std::nullopt)->set(Done{});
  if (is_closed_) co_return closed_here();
  if (!got) co_return pass_error(got);
  if (*got == 0) {
    co_return fail(
        NetErrc::kReset,
        fmt::format("the connection with {} was cut: it ended without the end of TLS", engine_->peer()));
  }
  engine_->add_input(*got);
  co_return NetResult<void>{};
}

// Writes the engine's output, and what is added to it meanwhile.
Task<NetResult<void>> TlsStream::flush() {
  while (!engine_->output().empty()) {
    if (is_closed_) co_return closed_here();
    if (write_error_) co_return std::unexpected(*write_error_);
    CHECK(!is_sending_, "two writes of one stream at once");
    sending_.swap(engine_->output());
    is_sending_ = true;
    std::array<ByteView, 1> slices = {sending_};
    auto written = co_await plain_->write(slices);
    is_sending_ = false;
    sending_.clear();
    if (is_closed_) co_return closed_here();
    if (!written) {
      write_error_ = written.error();
      co_return pass_error(written);
    }
  }
  co_return NetResult<void>{};
}

void TlsStream::send_without_waiting() {
  if (is_sending_ || write_error_ || engine_->output().empty()) return;
  TaskContext context{&executor_, {}};
  Attempt attempt = attempt_write(plain_.get(), engine_->output());
  attempt.handle.promise().context = &context;
  attempt.handle.resume();
  attempt.handle.destroy();
  engine_->output().clear();
}

Task<NetResult<void>> TlsStream::handshake() {
  for (;;) {
    Step step = engine_->handshake();
    if (step == Step::kFailed) {
      send_without_waiting();  // an alert, so that the other side can say what is wrong
      co_return std::unexpected(engine_->error());
    }
    auto flushed = co_await flush();
    if (!flushed || step == Step::kDone) co_return flushed;
    if (engine_->input_bytes() > kHandshakeBytesMax) {
      co_return fail(NetErrc::kUntrusted, fmt::format("no TLS with {}: more than {} bytes for a handshake",
                                                      engine_->peer(), kHandshakeBytesMax));
    }
    auto filled = co_await fill();
    if (!filled) co_return filled;
  }
}

Task<NetResult<size_t>> TlsStream::read_some(MutableByteView into) {
  CHECK(!into.empty(), "a read needs room");
  TaskContext& context = co_await this_context();
  for (;;) {
    if (is_closed_ || context.stop.stop_requested()) co_return closed_here();
    size_t got = 0;
    Step step = engine_->read(into, got);
    if (step == Step::kDone) co_return got;
    if (step == Step::kEnd) co_return size_t{0};
    if (step == Step::kFailed) {
      send_without_waiting();
      co_return std::unexpected(engine_->error());
    }
    if (engine_->output().size() > 2 * kOutputBytesMax) {
      co_return fail(NetErrc::kReset, engine_->peer() + " asks for more answers of TLS than it takes");
    }
    auto filled = co_await fill();
    if (!filled) co_return pass_error(filled);
  }
}

Task<NetResult<void>> TlsStream::write_all(std::vector<ByteView> slices) {
  size_t size = 0;
  for (ByteView slice : slices) {
    size += slice.size() + (slice.size() / TlsEngine::kRecordBytesMax + 1) * kRecordOverheadMax;
  }
  // All at once, or the buffer would be copied each time that it grows.
  engine_->output().reserve(
      std::min(size, kOutputBytesMax + TlsEngine::kRecordBytesMax + kRecordOverheadMax));
  NetResult<void> written;
  for (size_t i = 0; i < slices.size() && written; ++i) written = co_await write_records(slices[i]);
  if (written) written = co_await flush();
  for (std::vector<uint8_t>* buffer : {&engine_->output(), &sending_}) {
    if (buffer->empty() && buffer->capacity() > kOutputBytesKept) *buffer = {};
  }
  co_return written;
}

Task<NetResult<void>> TlsStream::write_records(ByteView slice) {
  TaskContext& context = co_await this_context();
  while (!slice.empty()) {
    if (is_closed_ || context.stop.stop_requested()) co_return closed_here();
    if (write_error_) co_return std::unexpected(*write_error_);
    ByteView record = slice.first(std::min(slice.size(), TlsEngine::kRecordBytesMax));
    Step step = engine_->write(record);
    if (step == Step::kFailed) co_return std::unexpected(engine_->error());
    if (step == Step::kNeedsInput) {
      // Half of a message about the session has come: nothing may be written before its rest.
      auto filled = co_await fill();
      if (!filled) co_return filled;
      continue;
    }
    slice = slice.subspan(record.size());
    if (engine_->output().size() < kOutputBytesMax) continue;
    auto flushed = co_await flush();
    if (!flushed) co_return flushed;
  }
  co_return NetResult<void>{};
}

void TlsStream::close() {
  if (is_closed_) return;
  is_closed_ = true;
  engine_->end();
  send_without_waiting();
  plain_->close();
}

// The handshake of either side.
Task<NetResult<std::unique_ptr<Stream>>> begin(NetResult<std::unique_ptr<TlsEngine>> engine,
                                               std::unique_ptr<Stream> plain, MonotonicTime deadline) {
  if (!engine) co_return pass_error(engine);
  TaskContext& context = co_await this_context();
  std::string peer = (*engine)->peer();
  auto stream = std::make_unique<TlsStream>(*context.executor, std::move(plain), std::move(*engine));
  auto done = co_await with_deadline(deadline, stream->handshake());
  if (done) co_return std::move(stream);
  std::string what = "TLS handshake with " + peer;
  if (context.stop.stop_requested()) co_return fail(NetErrc::kClosed, what + ": asked to stop");
  // Nobody else can have closed the stream.
  if (done.error().code == NetErrc::kClosed) co_return fail(NetErrc::kTimeout, what + ": no answer in time");
  if (done.error().code == NetErrc::kUntrusted) co_return pass_error(done);
  co_return fail(done.error().code, fmt::format("{}: {}", what, done.error().message));
}

}  // namespace

Task<NetResult<std::unique_ptr<Stream>>> tls_connect(TlsContext context, std::unique_ptr<Stream> plain,
                                                     std::string host, MonotonicTime deadline) {
  return begin(TlsEngine::client(std::move(context), host), std::move(plain), deadline);
}

Task<NetResult<std::unique_ptr<Stream>>> tls_accept(TlsContext context, std::unique_ptr<Stream> plain,
                                                    MonotonicTime deadline) {
  auto engine = TlsEngine::server(std::move(context), "client " + plain->peer().to_string());
  return begin(std::move(engine), std::move(plain), deadline);
}

}  // namespace varve::runtime
