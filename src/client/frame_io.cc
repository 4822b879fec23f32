#include "client/frame_io.h"

#include <array>

#include "protocol/frame.h"

namespace varve::client {

using runtime::Task;

namespace {

Task<ClientResult<void>> fill(runtime::Stream& stream, MutableByteView bytes) {
  while (!bytes.empty()) {
    auto read = co_await stream.read_some(bytes);
    if (!read) co_return failed(ClientErrc::kDisconnected, std::move(read.error().message));
    if (*read == 0) co_return failed(ClientErrc::kDisconnected, "the other side closed the connection");
    bytes = bytes.subspan(*read);
  }
  co_return ClientResult<void>();
}

}  // namespace

Task<ClientResult<Slice>> read_frame(runtime::Stream& stream, size_t bytes_max) {
  std::array<uint8_t, protocol::kFrameLengthBytes> length{};
  auto begun = co_await fill(stream, length);
  if (!begun) co_return pass_error(begun);
  auto size = protocol::frame_size(length, bytes_max);
  if (!size) {
    bool is_too_large = size.error().code == protocol::FrameErrc::kTooLarge;
    co_return failed(is_too_large ? ClientErrc::kOverLimit : ClientErrc::kMalformed,
                     std::move(size.error().message));
  }
  std::vector<uint8_t> bytes(*size);
  auto filled = co_await fill(stream, bytes);
  if (!filled) co_return pass_error(filled);
  co_return Slice::take(std::move(bytes));
}

Task<ClientResult<void>> write_frame(runtime::Stream& stream, std::vector<Slice> frame) {
  std::vector<ByteView> views;
  views.reserve(frame.size());
  for (const Slice& slice : frame) views.push_back(slice.view());
  auto written = co_await stream.write(views);
  if (!written) co_return failed(ClientErrc::kDisconnected, std::move(written.error().message));
  co_return ClientResult<void>();
}

}  // namespace varve::client
