// Connection: one client's stream of requests and replies.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "broker/handlers/request.h"
#include "broker/server/frame_reader.h"
#include "broker/server/watchdog.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task_scope.h"

namespace varve::broker {

// What all connections of a server share. Owned by the server, outlives them.
struct ConnectionShared {
  RequestHandler& handler;
  runtime::Semaphore& request_memory;
  const Limits& limits;
  const Logger& logger;
  LogLimiter& bad_input_log;
  LogLimiter& closed_log;
  Counter& bytes_in;
  Counter& bytes_out;
  Counter& bad_frames;
  // Bytes of replies that wait to be sent, of all connections.
  std::atomic<size_t>& reply_bytes_waiting;
};

// Replies keep the order of requests. Consecutive Produce requests overlap: each starts when the one before it has
// taken its place in ingest; any other request starts when those before it are done, and those after it wait for
// it (as in Kafka, where every request waits for the one before).
//
// Life: made by the server, run() once as a task on `executor`, destroyed there after run() has returned.
class Connection {
 public:
  Connection(ConnectionId id, std::string listener, std::unique_ptr<runtime::Stream> stream,
             runtime::Executor& executor, const ConnectionShared& shared);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Serves until the client leaves, the connection must be closed, or the task is asked to stop: then what was
  // read is still answered. Returns when no request is under way any more.
  runtime::Task<> run();

  // On its executor. Cuts the stream: replies under way are lost. run() ends as soon as its requests do.
  void abort();
  runtime::Executor& executor() const { return executor_; }

 private:
  // A request that was read and whose reply has not been sent.
  struct Slot {
    explicit Slot(std::atomic<size_t>& waiting) : reply_bytes_waiting(waiting) {}
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { reply_bytes_waiting -= reply_bytes; }
    void set(Reply value);

    std::atomic<size_t>& reply_bytes_waiting;
    size_t reply_bytes = 0;
    std::optional<Reply> reply;
  };

  runtime::Task<> read_requests();
  runtime::Task<> answer(RequestContext context, protocol::RequestFrame request, std::shared_ptr<Slot> slot);
  // Sends the replies at the head of the queue that are there, unless somebody else is doing it.
  runtime::Task<> send_ready_replies();
  runtime::Task<> wait_for_turn(bool is_produce);
  // Waits until the client has served its time (KIP-219).
  runtime::Task<> wait_while_throttled();
  // Waits until a request ends.
  runtime::Task<> wait_for_change();
  void on_phase(FrameReader::Phase phase, size_t frame_bytes);
  void begin_idle_if_quiet();
  void log_bad_input(std::string_view what, std::string_view detail);
  void report_read_end(const FrameReadError& error);

  const ConnectionId id_;
  const std::string listener_;
  const runtime::Address peer_;
  std::unique_ptr<runtime::Stream> stream_;
  runtime::Executor& executor_;
  const ConnectionShared& shared_;
  // Of writes: a stop request ends waiting, not the answers.
  runtime::TaskContext send_context_;
  Watchdog watchdog_;
  FrameReader reader_;
  runtime::TaskScope requests_;

  std::deque<std::shared_ptr<Slot>> queue_;
  size_t produces_under_way_ = 0;
  size_t others_under_way_ = 0;
  MonotonicTime throttled_until_;
  bool is_frame_begun_ = false;
  bool is_sending_ = false;
  bool is_closing_ = false;
  std::optional<runtime::Completion<runtime::Done>> change_;
};

}  // namespace varve::broker
