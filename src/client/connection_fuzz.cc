#include "base/check.h"
#include "client/connection.h"
#include "protocol/messages/fetch.h"
#include "protocol/messages/metadata.h"
#include "sim/node.h"
#include "sim/run_task.h"
#include "sim/world.h"

namespace varve::client {
namespace {

// A broker that says these bytes, a piece at a time, whatever it is asked, and closes.
class ScriptedStream final : public runtime::Stream {
 public:
  explicit ScriptedStream(Slice bytes) : bytes_(std::move(bytes)) {}

  runtime::Task<runtime::NetResult<size_t>> read_some(MutableByteView into) override {
    // Whoever got an answer has time to ask for the next.
    co_await runtime::sleep_for(1ms);
    ByteView rest = bytes_.view().subspan(at_);
    size_t count = is_closed_ ? 0 : std::min(rest.size(), into.size());
    std::ranges::copy(rest.first(count), into.begin());
    at_ += count;
    co_return count;
  }
  runtime::Task<runtime::NetResult<void>> write(std::span<const ByteView>) override {
    co_return runtime::NetResult<void>();
  }
  void close() override { is_closed_ = true; }
  const runtime::Address& peer() const override { return peer_; }

 private:
  const Slice bytes_;
  const runtime::Address peer_;
  size_t at_ = 0;
  bool is_closed_ = false;
};

runtime::Task<> talk(runtime::Executor& executor, Slice bytes, int16_t metadata_version,
                     int16_t fetch_version) {
  runtime::TaskScope scope;
  auto stream = std::make_unique<ScriptedStream>(std::move(bytes));
  auto connection = Connection::open(executor, scope, std::move(stream), {.response_bytes_max = 64 * kKiB});
  MonotonicTime deadline = executor.now() + 1s;
  co_await Connection::negotiate(connection, deadline);
  auto metadata = connection->post(protocol::MetadataRequest(), metadata_version);
  auto fetch = connection->post(protocol::FetchRequest(), fetch_version);
  co_await Connection::reply<protocol::MetadataRequest>(connection, metadata, metadata_version, deadline);
  co_await Connection::reply<protocol::FetchRequest>(connection, fetch, fetch_version, deadline);
  connection->close();
  co_await scope.close();
}

int16_t version_of(const protocol::ApiInfo& api, uint8_t choice) {
  return static_cast<int16_t>(api.min_version + choice % (api.max_version - api.min_version + 1));
}

// The input in frames as a broker sends them: two bytes of it say how long each is. Further on, as it is.
Slice framed(ByteView input) {
  ByteWriter frames;
  for (int32_t correlation = 1; correlation <= 3 && input.size() >= 2; ++correlation) {
    size_t size = std::min<size_t>(load_be<uint16_t>(input.data()) % 4096, input.size() - 2);
    frames.be(static_cast<int32_t>(size + sizeof(correlation)));
    frames.be(correlation);
    frames.raw(input.subspan(2, size));
    input = input.subspan(2 + size);
  }
  frames.raw(input);
  return Slice::take(frames.take());
}

}  // namespace
}  // namespace varve::client

// The first bytes choose versions, and whether the rest is in frames; the rest is what a broker says to ApiVersions,
// Metadata and Fetch. Every request comes to an end.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace varve;
  if (size < 3) return 0;
  sim::World world{{.seed = 1}};
  sim::Node node(world, {.host = "client"}, nullptr);
  runtime::Executor& executor = node.process().io(0);
  int16_t metadata = client::version_of(protocol::api_info(protocol::ApiKey::kMetadata), data[0]);
  int16_t fetch = client::version_of(protocol::api_info(protocol::ApiKey::kFetch), data[1]);
  ByteView rest(data + 3, size - 3);
  Slice bytes = data[2] % 4 == 0 ? Slice::copy_of(rest) : client::framed(rest);
  sim::run_task(world, executor, client::talk(executor, std::move(bytes), metadata, fetch));
  return 0;
}
