#include "sim/workload/kafka_connection.h"

#include <utility>

namespace varve::sim {

using runtime::Completion;
using runtime::Done;
using runtime::Task;

KafkaConnection::KafkaConnection(std::unique_ptr<runtime::Stream> stream, uint64_t number,
                                 std::string client_id)
    : stream_(std::move(stream)), number_(number), client_id_(std::move(client_id)) {}

void KafkaConnection::start(runtime::Executor& executor, runtime::TaskScope& scope) {
  scope.spawn(executor, "kafka writer", write_loop(shared_from_this()));
  scope.spawn(executor, "kafka reader", read_loop(shared_from_this()));
}

void KafkaConnection::close() {
  if (is_closed_) return;
  is_closed_ = true;
  stream_->close();
  if (outbox_waiter_) outbox_waiter_->set(Done{});
  for (const auto& reply : std::exchange(expected_, {})) reply.set(std::nullopt);
  for (const auto& reply : std::exchange(without_reply_, {})) reply.set(std::nullopt);
}

KafkaConnection::Posted KafkaConnection::enqueue(std::vector<Slice> frame, int32_t correlation,
                                                 bool has_reply) {
  Posted posted{correlation, {}};
  if (is_closed_) {
    posted.reply.set(std::nullopt);
    return posted;
  }
  if (has_reply) {
    expected_.push_back(posted.reply);
  } else {
    without_reply_.push_back(posted.reply);
  }
  outbox_.push_back(std::move(frame));
  if (outbox_waiter_) outbox_waiter_->set(Done{});
  return posted;
}

Task<> KafkaConnection::write_loop(std::shared_ptr<KafkaConnection> connection) {
  while (!connection->is_closed_) {
    if (connection->outbox_.empty()) {
      connection->outbox_waiter_.emplace();
      co_await runtime::wait_until(*connection->outbox_waiter_, MonotonicTime::never(), Done{});
      runtime::TaskContext& context = co_await runtime::this_context();
      if (context.stop.stop_requested()) connection->close();
      continue;
    }
    std::vector<Slice> frame = std::move(connection->outbox_.front());
    connection->outbox_.pop_front();
    std::vector<ByteView> views;
    views.reserve(frame.size());
    for (const Slice& slice : frame) views.push_back(slice.view());
    auto written = co_await connection->stream_->write(views);
    if (!written) connection->close();
  }
}

Task<bool> KafkaConnection::fill(MutableByteView bytes) {
  while (!bytes.empty()) {
    auto read = co_await stream_->read_some(bytes);
    if (!read || *read == 0) co_return false;
    bytes = bytes.subspan(*read);
  }
  co_return true;
}

Task<> KafkaConnection::read_loop(std::shared_ptr<KafkaConnection> connection) {
  while (!connection->is_closed_) {
    std::vector<uint8_t> length(protocol::kFrameLengthBytes);
    if (!co_await connection->fill(length)) break;
    std::vector<uint8_t> bytes(load_be<uint32_t>(length.data()));
    if (!co_await connection->fill(bytes)) break;
    CHECK(!connection->expected_.empty(), "a reply that nobody asked for");
    Completion<Frame> reply = connection->expected_.front();
    connection->expected_.pop_front();
    reply.set(Slice::take(std::move(bytes)));
  }
  connection->close();
}

}  // namespace varve::sim
