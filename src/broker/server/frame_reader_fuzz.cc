// Any bytes, in any pieces, through the frame reader and the request header: no crash, no memory beyond the budget.
#include "broker/server/frame_reader.h"
#include "protocol/frame.h"
#include "runtime/fuzz_stream_testing.h"

namespace varve::broker {
namespace {

constexpr size_t kFrameBytesMax = 4096;

runtime::Task<> read_all(FrameReader& reader, runtime::Semaphore& budget) {
  while (true) {
    auto frame = co_await reader.next();
    CHECK(budget.held() <= kFrameBytesMax);
    if (!frame) co_return;
    auto request = protocol::parse_request(frame->bytes);
    if (request) CHECK(request->body.size() <= frame->bytes.size());
  }
}

}  // namespace
}  // namespace varve::broker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace varve::broker;
  varve::runtime::InlineExecutor executor;
  varve::runtime::InputStream stream(varve::ByteView(data, size));
  varve::runtime::Semaphore budget(kFrameBytesMax);
  FrameReader reader(stream, budget, kFrameBytesMax,
                     [](FrameReader::Phase, size_t bytes) { CHECK(bytes <= kFrameBytesMax); });
  executor.run(read_all(reader, budget));
  CHECK(budget.held() == 0);
  return 0;
}
