#include "metadata/client/client_loops.h"

namespace varve::metadata {
namespace {

// Looked at in one job on the core: less than a millisecond.
constexpr uint32_t kPartitionsAtOnce = 10'000;
constexpr size_t kGroupsAtOnce = 500;

}  // namespace

using runtime::call;
using runtime::Task;

// One broker does it, for all partitions and all groups. Without it the state would grow with every producer and every
// group that ever was (invariant 11).
Task<> MetadataClient::Impl::expiry_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  while (!context.stop.stop_requested()) {
    co_await runtime::sleep_for(config.producer_expiry_interval);
    if (context.stop.stop_requested()) break;
    auto producers = co_await producer_expiry_due();
    if (producers) co_await propose_and_forget(*producers);
    auto offsets = co_await offset_expiry_due();
    if (offsets) co_await propose_and_forget(*offsets);
  }
}

Task<std::optional<ExpireProducers>> MetadataClient::Impl::producer_expiry_due() {
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

Task<std::optional<ExpireOffsets>> MetadataClient::Impl::offset_expiry_due() {
  struct Look {
    std::optional<ExpireOffsets> due;
    std::optional<std::string> next;  // none: all groups were looked at, or it is not this broker's duty
  };
  std::optional<std::string> from = "";
  while (from) {
    Look look = co_await call(runtime.core(), [this, from = *from] {
      const State& state = core.state();
      int64_t retention = static_cast<int64_t>(state.group_limits().offsets_retention_ms);
      ExpireOffsets command{state.log_time() - retention};
      if (!core.is_first_live()) return Look{};
      ExpirySearch search = state.search_idle_offset(from, kGroupsAtOnce, command.cut_off);
      return Look{search.is_found ? std::optional(command) : std::nullopt, std::move(search.next)};
    });
    if (look.due) co_return look.due;
    from = std::move(look.next);
  }
  co_return std::nullopt;
}

}  // namespace varve::metadata
