#include "metadata/client/client_loops.h"

namespace varve::metadata {
namespace {

// Looked at in one job on the core: less than a millisecond.
constexpr uint32_t kPartitionsAtOnce = 10'000;

}  // namespace

using runtime::call;
using runtime::Task;

// One broker does it, for all partitions at once. Without it the state would grow with every producer that ever was
// (invariant 11).
Task<> MetadataClient::Impl::expiry_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  while (!context.stop.stop_requested()) {
    co_await runtime::sleep_for(config.producer_expiry_interval);
    if (context.stop.stop_requested()) break;
    auto due = co_await expiry_due();
    if (due) co_await propose_and_forget(*due);
  }
}

Task<std::optional<ExpireProducers>> MetadataClient::Impl::expiry_due() {
  struct Range {
    bool is_duty = false;
    ExpireProducers command;
    PartitionHandle end;
  };
  Range range = co_await call(runtime.core(), [this] {
    const State& state = core.state();
    int64_t idle_since = state.log_time() - static_cast<int64_t>(state.limits().producer_expiry_ms);
    return Range{core.is_first_live(), {idle_since}, state.next_partition()};
  });
  if (!range.is_duty) co_return std::nullopt;
  for (uint32_t from = 0; from < range.end.value(); from += kPartitionsAtOnce) {
    PartitionHandle to(std::min(range.end.value(), from + kPartitionsAtOnce));
    bool is_found = co_await call(runtime.core(), [this, from, to, idle_since = range.command.idle_since] {
      return core.state().has_idle_producer(PartitionHandle(from), to, idle_since);
    });
    if (is_found) co_return range.command;
  }
  co_return std::nullopt;
}

}  // namespace varve::metadata
