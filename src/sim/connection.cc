#include "sim/connection.h"

#include <algorithm>

#include "sim/network.h"

namespace varve::sim {

using runtime::Completion;
using runtime::NetErrc;
using runtime::NetResult;
using runtime::Task;

namespace {

// What a sender may have under way and unread: the sum of both kernels' buffers.
constexpr size_t kWindowBytes = 256 * 1024;
constexpr size_t kSegmentBytesMax = 16 * 1024;

}  // namespace

SimConnection::SimConnection(SimNetwork& network, uint64_t number, Process& connector, Process& acceptor)
    : network_(network), number_(number) {
  ends_[0].process = &connector;
  ends_[1].process = &acceptor;
}

void SimConnection::wake(std::optional<Completion<bool>>& waiter) {
  if (!waiter) return;
  waiter->set(false);
  waiter.reset();
}

Task<bool> SimConnection::wait_on(std::optional<Completion<bool>>* waiter) {
  CHECK(!*waiter || (*waiter)->is_set(), "two reads or two writes of one stream at once");
  Completion<bool> woken;
  *waiter = woken;
  co_return co_await runtime::wait_until(woken, MonotonicTime::never(), true);
}

Task<NetResult<size_t>> SimConnection::read_some(Side side, MutableByteView into) {
  End& end = ends_[side];
  for (;;) {
    if (end.is_closed) co_return fail(NetErrc::kClosed, "closed here");
    if (!end.inbox.empty() || into.empty()) break;
    if (end.is_reset) co_return fail(NetErrc::kReset, "reset by the other side or the network");
    if (end.is_at_end) co_return size_t{0};
    bool is_stopped = co_await wait_on(&end.readable);
    if (is_stopped) co_return fail(NetErrc::kClosed, "stopped");
  }
  // Streams have no frames: a read gives any part of what is there.
  size_t size = std::min(into.size(), end.inbox.size());
  if (size > 1 && network_.world_.random().chance(1, 3)) size = 1 + network_.world_.random().below(size);
  std::copy_n(end.inbox.begin(), size, into.begin());
  end.inbox.erase(end.inbox.begin(), end.inbox.begin() + static_cast<std::ptrdiff_t>(size));
  End& sender = ends_[other(side)];
  sender.unread_bytes_sent -= std::min(size, sender.unread_bytes_sent);
  wake(sender.writable);
  co_return size;
}

Task<NetResult<void>> SimConnection::write(Side side, std::vector<ByteView> slices) {
  End& end = ends_[side];
  if (network_.draw(network_.faults_.cut, "network.cut")) cut();
  if (network_.draw(network_.faults_.clog, "network.clog")) {
    Duration span(network_.world_.random().between(0, network_.faults_.clog_max.count()));
    network_.block_for(end.process->node().host(), process(other(side)).node().host(), span);
  }
  size_t slice = 0;
  size_t done = 0;
  while (slice < slices.size()) {
    if (end.is_closed) co_return fail(NetErrc::kClosed, "closed here");
    if (end.is_reset) co_return fail(NetErrc::kReset, "reset by the other side or the network");
    if (end.unread_bytes_sent >= kWindowBytes) {
      bool is_stopped = co_await wait_on(&end.writable);
      if (is_stopped) co_return fail(NetErrc::kClosed, "stopped");
      continue;
    }
    Segment segment{SegmentKind::kData, {}};
    size_t room = 1 + network_.world_.random().below(kSegmentBytesMax);
    while (slice < slices.size() && segment.bytes.size() < room) {
      ByteView rest = slices[slice].subspan(done);
      ByteView part = rest.first(std::min(rest.size(), room - segment.bytes.size()));
      segment.bytes.insert(segment.bytes.end(), part.begin(), part.end());
      done += part.size();
      if (done == slices[slice].size()) {
        ++slice;
        done = 0;
      }
    }
    end.unread_bytes_sent += segment.bytes.size();
    if (!segment.bytes.empty()) send(side, std::move(segment));
  }
  co_return NetResult<void>{};
}

void SimConnection::close(Side side) {
  End& end = ends_[side];
  if (end.is_closed) return;
  end.is_closed = true;
  wake(end.readable);
  wake(end.writable);
  if (!end.process->is_alive() || end.is_reset) return;
  // Unread bytes make it a reset, as in Linux.
  send(side, {end.inbox.empty() ? SegmentKind::kEnd : SegmentKind::kReset, {}});
}

void SimConnection::break_end(Side side) {
  End& end = ends_[side];
  if (end.is_reset || end.is_closed || end.has_vanished) return;
  end.is_reset = true;
  // What had arrived may be lost with it.
  if (network_.world_.random().chance(1, 2)) end.inbox.clear();
  wake(end.readable);
  wake(end.writable);
}

void SimConnection::cut() {
  for (Side side : {Side{0}, Side{1}}) {
    network_.world_.after(network_.draw_one_way(),
                          [self = shared_from_this(), side] { self->break_end(side); });
  }
}

void SimConnection::process_ended(Side side, CrashKind kind) {
  End& end = ends_[side];
  if (end.has_vanished) return;
  end.has_vanished = true;
  if (kind == CrashKind::kKilled && !end.is_closed && !end.is_reset) {
    bool is_orderly = end.inbox.empty() && network_.world_.random().chance(1, 2);
    send(side, {is_orderly ? SegmentKind::kEnd : SegmentKind::kReset, {}});
  }
  end.is_closed = true;
}

void SimConnection::send(Side from, Segment segment) {
  uint64_t number = ends_[from].next_sent++;
  auto arrival = [self = shared_from_this(), from, number, segment = std::move(segment)]() mutable {
    self->arrive(from, number, std::move(segment));
  };
  network_.world_.after(network_.draw_one_way(), std::move(arrival));
}

void SimConnection::arrive(Side from, uint64_t number, Segment segment) {
  End& end = ends_[from];
  end.under_way.emplace(number, std::move(segment));
  pump(from);
  if (end.under_way.empty() || end.next_delivered != number) return;
  // It is its turn and it does not get through: the sender's clock runs.
  network_.world_.after(network_.draw_give_up(), [self = shared_from_this(), from, number] {
    if (self->ends_[from].next_delivered > number) return;
    self->network_.world_.happened("network.gave_up");
    self->break_end(from);
  });
}

void SimConnection::pump(Side from) {
  Side to = other(from);
  End& end = ends_[from];
  if (!network_.can_pass(process(from).node().host(), process(to).node().host())) return;
  while (!end.under_way.empty() && end.under_way.begin()->first == end.next_delivered) {
    Segment segment = std::move(end.under_way.begin()->second);
    end.under_way.erase(end.under_way.begin());
    ++end.next_delivered;
    deliver(to, std::move(segment));
  }
}

void SimConnection::deliver(Side to, Segment segment) {
  End& end = ends_[to];
  if (end.has_vanished) {
    // Nobody answers, until the machine is up again and does not know the connection.
    if (segment.kind != SegmentKind::kData) return;
    bool is_up = end.process->node().is_up();
    Duration wait = is_up ? network_.draw_one_way() : network_.draw_give_up();
    network_.world_.after(wait, [self = shared_from_this(), from = other(to)] { self->break_end(from); });
    return;
  }
  if (end.is_closed) {
    if (segment.kind == SegmentKind::kData) send(to, {SegmentKind::kReset, {}});
    return;
  }
  switch (segment.kind) {
    case SegmentKind::kData:
      end.inbox.insert(end.inbox.end(), segment.bytes.begin(), segment.bytes.end());
      break;
    case SegmentKind::kEnd:
      end.is_at_end = true;
      break;
    case SegmentKind::kReset:
      break_end(to);
      return;
  }
  wake(end.readable);
}

}  // namespace varve::sim
