// FrameReader: cuts a connection's bytes into frames.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/frame.h"
#include "runtime/network.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"

namespace varve::broker {

struct Frame {
  Slice bytes;  // without the length; one buffer, shared by everything cut from it
  // The frame's share of the memory for requests.
  std::optional<runtime::Semaphore::Permit> ticket;
};

enum class FrameReadErrc : uint8_t {
  kEnd,         // the client closed between two frames
  kCut,         // the client closed, or the network failed, inside a frame
  kClosedHere,  // stop request, or the watchdog
  kBadLength,   // negative
  kTooLarge,    // above the limit
};
using FrameReadError = ErrorOf<FrameReadErrc>;

// Belongs to one connection and its executor. Small frames are read several at a time into a buffer of its own and
// copied out; of a larger one only what was there by then is copied, the rest is read where it stays.
class FrameReader {
 public:
  static constexpr size_t kBufferBytes = 4096;

  // What a frame that is not there as a whole waits for.
  enum class Phase : uint8_t {
    kLength,  // the first bytes came, not yet four
    kMemory,  // the budget
    kBody,    // the rest
  };
  using OnPhase = std::function<void(Phase phase, size_t frame_bytes)>;

  // References outlive it. `on_phase` is called at the start of each phase that cannot end at once.
  FrameReader(runtime::Stream& stream, runtime::Semaphore& budget, size_t frame_bytes_max, OnPhase on_phase)
      : stream_(stream), budget_(budget), frame_bytes_max_(frame_bytes_max), on_phase_(std::move(on_phase)) {}

  // The length is checked before any memory is taken, and the memory is taken from the budget before the read.
  runtime::Task<Result<Frame, FrameReadError>> next();

 private:
  runtime::Task<Result<void, FrameReadError>> read_length();

  runtime::Stream& stream_;
  runtime::Semaphore& budget_;
  const size_t frame_bytes_max_;
  OnPhase on_phase_;
  std::array<uint8_t, kBufferBytes> buffer_;
  size_t begin_ = 0;  // of what was read and not yet used
  size_t end_ = 0;
};

}  // namespace varve::broker
