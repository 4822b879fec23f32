#include <benchmark/benchmark.h>

#include "protocol/frame.h"
#include "protocol/messages/fetch.h"
#include "protocol/messages/produce.h"

namespace varve::protocol {
namespace {

// state.range(0): partitions of one request, 10 to a topic, each with a batch of 1 KiB.
void decode_produce(benchmark::State& state) {
  ProduceRequest request;
  const Slice batch = Slice::take(std::vector<uint8_t>(1024));
  for (int64_t i = 0; i < state.range(0); ++i) {
    if (i % 10 == 0) request.topic_data.emplace_back().name = "a-topic-of-usual-length";
    auto& partition = request.topic_data.back().partition_data.emplace_back();
    partition.index = PartitionIndex(static_cast<int32_t>(i % 10));
    partition.records = batch;
  }
  const Slice bytes = encode_message(request, 11);
  for (auto _ : state) {
    auto decoded = decode_message<ProduceRequest>(bytes, 11);
    benchmark::DoNotOptimize(decoded);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(decode_produce)->Arg(1)->Arg(100)->Arg(1000);

// The same for a response with 64 KiB a partition, which must not be copied.
void encode_fetch(benchmark::State& state) {
  FetchResponse response;
  const Slice batch = Slice::take(std::vector<uint8_t>(64 << 10));
  for (int64_t i = 0; i < state.range(0); ++i) {
    if (i % 10 == 0) response.responses.emplace_back().topic = "a-topic-of-usual-length";
    auto& partition = response.responses.back().partitions.emplace_back();
    partition.partition_index = PartitionIndex(static_cast<int32_t>(i % 10));
    partition.records = batch;
  }
  for (auto _ : state) {
    auto frame = response_frame(response, 12, 1);
    benchmark::DoNotOptimize(frame);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(encode_fetch)->Arg(1)->Arg(100)->Arg(1000);

}  // namespace
}  // namespace varve::protocol
