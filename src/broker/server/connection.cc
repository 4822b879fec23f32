#include "broker/server/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace varve::broker {
namespace {

// A frame must arrive within this, plus a second for each so many bytes: who announces 100 MiB and sends a byte
// a minute must not hold their memory.
constexpr Duration kFrameTimeMax = 30s;
constexpr size_t kFrameBytesPerSecondMin = 64 * kKiB;
// A client that takes nothing of a reply for so long is gone.
constexpr Duration kWriteStallMax = 60s;
// One write call's worth, so that the stall is measured on progress and not on a whole large reply.
constexpr size_t kWriteBytesMax = 1 * kMiB;
constexpr size_t kWriteSlicesMax = 256;

}  // namespace

Connection::Connection(ConnectionId id, std::string listener, std::unique_ptr<runtime::Stream> stream,
                       runtime::Executor& executor, const ConnectionShared& shared)
    : id_(id),
      listener_(std::move(listener)),
      peer_(stream->peer()),
      stream_(std::move(stream)),
      executor_(executor),
      shared_(shared),
      send_context_{.executor = &executor, .stop = {}},
      watchdog_(executor, *stream_),
      reader_(*stream_, shared.request_memory, shared.limits.frame_bytes_max,
              [this](FrameReader::Phase phase, size_t bytes) { on_phase(phase, bytes); }) {}

void Connection::Slot::set(Reply value) {
  reply_bytes = total_size(value.frame);
  reply_bytes_waiting += reply_bytes;
  reply = std::move(value);
}

void Connection::abort() {
  is_closing_ = true;
  stream_->close();
}

runtime::Task<> Connection::run() {
  begin_idle_if_quiet();
  co_await read_requests();
  // Waiting ends (a Fetch answers with what there is); what was promised goes on to its end.
  requests_.request_stop();
  co_await requests_.close();
  queue_.clear();
  stream_->close();
}

runtime::Task<> Connection::read_requests() {
  while (!is_closing_) {
    Result<Frame, FrameReadError> frame = co_await reader_.next();
    is_frame_begun_ = false;
    watchdog_.set(Watchdog::Wait::kFrame, MonotonicTime::never());
    watchdog_.set(Watchdog::Wait::kIdle, MonotonicTime::never());
    if (!frame) {
      report_read_end(frame.error());
      co_return;
    }
    shared_.bytes_in.add(frame->bytes.size() + protocol::kFrameLengthBytes);
    auto request = protocol::parse_request(frame->bytes);
    if (!request) {
      // As Kafka: without a header it understands there is no answer that the client would.
      log_bad_input("connection closed: request refused", request.error().message);
      co_return;
    }
    bool is_produce = request->api->key == protocol::ApiKey::kProduce;
    co_await wait_for_turn(is_produce);
    co_await wait_while_throttled();
    if (is_closing_) co_return;

    RequestContext context;
    context.connection = id_;
    context.peer = peer_;
    context.listener = listener_;
    context.principal = Principal::anonymous();
    context.client_id = request->header.client_id.value_or("");
    context.version = request->version();
    context.received = executor_.now();
    context.deadline = context.received + shared_.limits.sync_deadline_max;
    context.frame_bytes = frame->bytes.size();
    context.reply_bytes_waiting = shared_.reply_bytes_waiting;
    runtime::Completion<runtime::Done> placed = context.placed;
    auto slot = std::make_shared<Slot>(shared_.reply_bytes_waiting);
    queue_.push_back(slot);
    ++(is_produce ? produces_under_way_ : others_under_way_);
    frame->bytes = {};
    context.memory = std::make_shared<runtime::Semaphore::Permit>(std::move(*frame->ticket));
    requests_.spawn(executor_, "request", answer(std::move(context), std::move(*request), std::move(slot)));
    if (is_produce) co_await placed.wait();
  }
}

runtime::Task<> Connection::answer(RequestContext context, protocol::RequestFrame request,
                                   std::shared_ptr<Slot> slot) {
  runtime::Completion<runtime::Done> placed = context.placed;
  bool is_produce = request.api->key == protocol::ApiKey::kProduce;
  Reply reply = co_await shared_.handler.handle(std::move(context), std::move(request));
  throttled_until_ = std::max(throttled_until_, executor_.now() + reply.throttle);
  placed.set(runtime::Done{});
  slot->set(std::move(reply));
  slot.reset();
  --(is_produce ? produces_under_way_ : others_under_way_);
  if (change_) change_->set(runtime::Done{});
  co_await send_ready_replies().in_context(send_context_);
  begin_idle_if_quiet();
}

runtime::Task<> Connection::send_ready_replies() {
  if (is_sending_) co_return;
  is_sending_ = true;
  while (!queue_.empty() && queue_.front()->reply && !is_closing_) {
    // Held here: the slices must stay until they are written.
    std::vector<std::shared_ptr<Slot>> sent;
    std::vector<ByteView> views;
    size_t bytes = 0;
    while (!queue_.empty() && queue_.front()->reply && bytes < kWriteBytesMax &&
           views.size() < kWriteSlicesMax) {
      Reply& reply = *queue_.front()->reply;
      if (reply.kind == Reply::Kind::kClose) {
        is_closing_ = true;
        if (reply.is_bad_input) {
          log_bad_input("connection closed: malformed request", reply.reason);
        } else {
          shared_.logger.limited(shared_.closed_log, executor_.now(), LogLevel::kInfo, "connection closed",
                                 {{"peer", peer_.to_string()}, {"reason", reply.reason}});
        }
        break;
      }
      for (const Slice& slice : reply.frame) {
        views.push_back(slice.view());
        bytes += slice.size();
      }
      sent.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    // In pieces of bounded size, each with its own deadline.
    for (size_t first = 0; first < views.size();) {
      size_t last = first;
      size_t piece = 0;
      while (last < views.size() && (last == first || piece + views[last].size() <= kWriteBytesMax) &&
             last - first < kWriteSlicesMax) {
        piece += views[last++].size();
      }
      watchdog_.set(Watchdog::Wait::kWrite, executor_.now() + kWriteStallMax);
      auto written = co_await stream_->write(std::span(views).subspan(first, last - first));
      watchdog_.set(Watchdog::Wait::kWrite, MonotonicTime::never());
      if (!written) {
        is_closing_ = true;
        break;
      }
      shared_.bytes_out.add(piece);
      first = last;
    }
  }
  is_sending_ = false;
  // Ends the reader, which then ends the connection.
  if (is_closing_) stream_->close();
}

runtime::Task<> Connection::wait_for_turn(bool is_produce) {
  size_t produces_max = shared_.limits.requests_in_flight_per_connection_max;
  while (others_under_way_ > 0 ||
         (is_produce ? produces_under_way_ >= produces_max : produces_under_way_ > 0)) {
    co_await wait_for_change();
  }
}

runtime::Task<> Connection::wait_while_throttled() {
  // A Produce that ends meanwhile may make it longer.
  while (executor_.now() < throttled_until_) {
    if (co_await runtime::sleep_until(throttled_until_) == runtime::Wake::kStopped) co_return;
  }
}

runtime::Task<> Connection::wait_for_change() {
  change_.emplace();
  runtime::Completion<runtime::Done> change = *change_;
  co_await change.wait();
  change_.reset();
}

void Connection::on_phase(FrameReader::Phase phase, size_t frame_bytes) {
  is_frame_begun_ = true;
  watchdog_.set(Watchdog::Wait::kIdle, MonotonicTime::never());
  if (phase == FrameReader::Phase::kMemory) {
    // The wait is ours, not the client's.
    watchdog_.set(Watchdog::Wait::kFrame, MonotonicTime::never());
    return;
  }
  Duration allowance = std::chrono::seconds(frame_bytes / kFrameBytesPerSecondMin);
  watchdog_.set(Watchdog::Wait::kFrame, executor_.now() + kFrameTimeMax + allowance);
}

void Connection::begin_idle_if_quiet() {
  if (is_frame_begun_ || !queue_.empty() || produces_under_way_ + others_under_way_ > 0) return;
  watchdog_.set(Watchdog::Wait::kIdle, executor_.now() + shared_.limits.connection_idle_max);
}

void Connection::log_bad_input(std::string_view what, std::string_view detail) {
  shared_.bad_frames.add();
  shared_.logger.limited(shared_.bad_input_log, executor_.now(), LogLevel::kWarn, what,
                         {{"peer", peer_.to_string()}, {"reason", detail}});
}

void Connection::report_read_end(const FrameReadError& error) {
  if (watchdog_.fired() == Watchdog::Wait::kFrame) {
    log_bad_input("connection closed: its request did not arrive in time", error.message);
    return;
  }
  if (watchdog_.fired()) {
    shared_.logger.info("connection closed: nothing happened for too long", {{"peer", peer_.to_string()}});
    return;
  }
  switch (error.code) {
    case FrameReadErrc::kBadLength:
    case FrameReadErrc::kTooLarge:
      log_bad_input("connection closed: malformed frame", error.message);
      return;
    case FrameReadErrc::kEnd:
    case FrameReadErrc::kCut:
    case FrameReadErrc::kClosedHere:
      shared_.logger.debug("connection ended", {{"peer", peer_.to_string()}, {"reason", error.message}});
      return;
  }
}

}  // namespace varve::broker
