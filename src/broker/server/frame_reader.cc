#include "broker/server/frame_reader.h"

#include <algorithm>
#include <cstring>

namespace varve::broker {
namespace {

FrameReadErrc cause_of(runtime::NetErrc code, bool inside_frame) {
  if (code == runtime::NetErrc::kClosed) return FrameReadErrc::kClosedHere;
  return inside_frame ? FrameReadErrc::kCut : FrameReadErrc::kEnd;
}

}  // namespace

// Reads until the buffer holds a length that is unused.
runtime::Task<Result<void, FrameReadError>> FrameReader::read_length() {
  if (end_ - begin_ >= protocol::kFrameLengthBytes) co_return Result<void, FrameReadError>();
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (end_ < protocol::kFrameLengthBytes) {
    if (end_ > 0) on_phase_(Phase::kLength, 0);
    auto read = co_await stream_.read_some(MutableByteView(buffer_).subspan(end_));
    if (!read) co_return fail(cause_of(read.error().code, end_ > 0), std::move(read.error().message));
    if (*read == 0) {
      if (end_ == 0) co_return fail(FrameReadErrc::kEnd, "closed by the client");
      co_return fail(FrameReadErrc::kCut, "closed by the client inside a frame");
    }
    end_ += *read;
  }
  co_return Result<void, FrameReadError>();
}

runtime::Task<Result<Frame, FrameReadError>> FrameReader::next() {
  auto filled = co_await read_length();
  if (!filled) co_return pass_error(filled);
  std::array<uint8_t, protocol::kFrameLengthBytes> length;
  std::memcpy(length.data(), buffer_.data() + begin_, length.size());
  auto size = protocol::frame_size(length, frame_bytes_max_);
  if (!size) {
    bool is_large = size.error().code == protocol::FrameErrc::kTooLarge;
    co_return fail(is_large ? FrameReadErrc::kTooLarge : FrameReadErrc::kBadLength,
                   std::move(size.error().message));
  }
  begin_ += length.size();

  on_phase_(Phase::kMemory, *size);
  std::optional<runtime::Semaphore::Permit> ticket = co_await budget_.acquire(*size);
  if (!ticket) co_return fail(FrameReadErrc::kClosedHere, "stopped");
  auto bytes = std::make_shared_for_overwrite<uint8_t[]>(*size);
  size_t filled_bytes = std::min(*size, end_ - begin_);
  std::memcpy(bytes.get(), buffer_.data() + begin_, filled_bytes);
  begin_ += filled_bytes;
  MutableByteView whole(bytes.get(), *size);
  if (filled_bytes < *size) on_phase_(Phase::kBody, *size);
  while (filled_bytes < *size) {
    auto read = co_await stream_.read_some(whole.subspan(filled_bytes));
    if (!read) co_return fail(cause_of(read.error().code, true), std::move(read.error().message));
    if (*read == 0) co_return fail(FrameReadErrc::kCut, "closed by the client inside a frame");
    filled_bytes += *read;
  }
  Frame frame;
  frame.bytes = Slice(std::move(bytes), whole);
  frame.ticket = std::move(ticket);
  co_return frame;
}

}  // namespace varve::broker
