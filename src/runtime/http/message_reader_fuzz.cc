// Any bytes, in any pieces, as requests, answers, and answers to HEAD: no crash, no body above its limit, an end.
#include "runtime/fuzz_stream_testing.h"
#include "runtime/http/message_reader.h"

namespace varve::runtime::http {
namespace {

constexpr MessageLimits kLimits{.header_bytes_max = 2048, .body_bytes_max = 4096};

Task<> read_all(MessageReader& reader, bool has_no_body) {
  while (true) {
    auto message = co_await reader.read(kLimits, has_no_body);
    if (!message) co_return;
    CHECK(message->body.size() <= (has_no_body ? 0 : kLimits.body_bytes_max));
  }
}

}  // namespace
}  // namespace varve::runtime::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace varve::runtime;
  using http::MessageKind;
  for (auto [kind, has_no_body] :
       {std::pair{MessageKind::kRequest, false}, std::pair{MessageKind::kResponse, false},
        std::pair{MessageKind::kResponse, true}}) {
    InlineExecutor executor;
    InputStream stream(varve::ByteView(data, size));
    http::MessageReader reader(stream, kind);
    executor.run(http::read_all(reader, has_no_body));
  }
  return 0;
}
