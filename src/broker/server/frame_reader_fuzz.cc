// Any bytes, in any pieces, through the frame reader and the request header: no crash, no memory beyond the budget.
#include <algorithm>
#include <deque>
#include <optional>

#include "broker/server/frame_reader.h"
#include "protocol/frame.h"
#include "runtime/task_scope.h"

namespace varve::broker {
namespace {

constexpr size_t kFrameBytesMax = 4096;

class InlineExecutor final : public runtime::Executor {
 public:
  void post(runtime::Job job) override { jobs_.push_back(std::move(job)); }
  std::unique_ptr<runtime::Timer> start_timer(MonotonicTime, runtime::Job) override { return nullptr; }
  MonotonicTime now() const override { return MonotonicTime(); }
  bool is_current() const override { return true; }
  std::string_view name() const override { return "inline"; }

  void run() {
    while (!jobs_.empty()) {
      runtime::Job job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
    }
  }

 private:
  std::deque<runtime::Job> jobs_;
};

// Gives the input in pieces whose sizes the input itself chooses.
class InputStream final : public runtime::Stream {
 public:
  explicit InputStream(ByteView input) : input_(input) {}

  runtime::Task<runtime::NetResult<size_t>> read_some(MutableByteView into) override {
    size_t piece =
        input_.empty() ? 0 : std::min<size_t>({input_[0] % 97 + size_t{1}, input_.size(), into.size()});
    std::copy_n(input_.begin(), piece, into.begin());
    input_ = input_.subspan(piece);
    co_return piece;
  }
  runtime::Task<runtime::NetResult<void>> write(std::span<const ByteView>) override {
    co_return runtime::NetResult<void>();
  }
  void close() override {}
  const runtime::Address& peer() const override { return peer_; }

 private:
  ByteView input_;
  runtime::Address peer_;
};

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
  InlineExecutor executor;
  InputStream stream(varve::ByteView(data, size));
  varve::runtime::Semaphore budget(kFrameBytesMax);
  FrameReader reader(stream, budget, kFrameBytesMax,
                     [](FrameReader::Phase, size_t bytes) { CHECK(bytes <= kFrameBytesMax); });
  varve::runtime::TaskScope scope;
  scope.spawn(executor, "fuzz", read_all(reader, budget));
  executor.run();
  CHECK(scope.size() == 0 && budget.held() == 0);
  return 0;
}
