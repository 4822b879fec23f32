// SimConnection: one byte stream between two simulated processes, with what a real one does to it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/network.h"
#include "sim/node.h"

namespace varve::sim {

class SimNetwork;

// Shared by its two streams and by the segments on their way. Segments of one direction arrive in the order they
// were sent; while the way is blocked they are held, and after a while the sender gives up (kReset).
// Life: from connect to the last of both streams and of the segments. Events of the world and jobs of the two
// processes call it.
class SimConnection : public std::enable_shared_from_this<SimConnection> {
 public:
  // Which end: 0 connected, 1 accepted.
  using Side = size_t;

  SimConnection(SimNetwork& network, uint64_t number, Process& connector, Process& acceptor);

  uint64_t number() const { return number_; }
  Process& process(Side side) const { return *ends_[side].process; }

  // As Stream's, for one end.
  runtime::Task<runtime::NetResult<size_t>> read_some(Side side, MutableByteView into);
  runtime::Task<runtime::NetResult<void>> write(Side side, std::vector<ByteView> slices);
  void close(Side side);

  // A reset by the network: both ends learn of it, each in its own time.
  void cut();
  // The process of that end is gone. Killed: its kernel tells the other end. Without power: nobody does.
  void process_ended(Side side, CrashKind kind);
  // The way from that end is open again: what waits gets through.
  void pump(Side from);

 private:
  enum class SegmentKind : uint8_t { kData, kEnd, kReset };
  struct Segment {
    SegmentKind kind;
    std::vector<uint8_t> bytes;
  };
  struct End {
    Process* process;
    std::deque<uint8_t> inbox;
    // Sent by this end and not yet read by the other: bounded by the window.
    size_t unread_bytes_sent = 0;
    bool is_closed = false;     // here
    bool is_reset = false;      // the other side or the network broke it
    bool is_at_end = false;     // the other side has closed; the inbox may have bytes yet
    bool has_vanished = false;  // the machine lost its power: silence
    std::optional<runtime::Completion<bool>> readable;
    std::optional<runtime::Completion<bool>> writable;
    // Of the direction from this end.
    uint64_t next_sent = 0;
    uint64_t next_delivered = 0;
    std::map<uint64_t, Segment> under_way;  // arrived, but out of turn or at a blocked way
  };

  static Side other(Side side) { return 1 - side; }
  void send(Side from, Segment segment);
  void arrive(Side from, uint64_t number, Segment segment);
  void deliver(Side to, Segment segment);
  void break_end(Side side);
  void wake(std::optional<runtime::Completion<bool>>& waiter);
  // True if the task was asked to stop.
  runtime::Task<bool> wait_on(std::optional<runtime::Completion<bool>>* waiter);

  SimNetwork& network_;
  uint64_t number_;
  std::array<End, 2> ends_;
};

}  // namespace varve::sim
