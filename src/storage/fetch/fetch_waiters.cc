#include "storage/fetch/fetch_waiters.h"

#include <bit>

#include "storage/fetch/fetch_planner.h"

namespace varve::storage {

FetchWaiters::Ticket FetchWaiters::add(const FetchRequest& request, std::vector<size_t> bytes_now) {
  Ticket ticket{.id = next_id_++, .woken = {}};
  for (uint32_t place = 0; place < request.partitions.size(); ++place) {
    watch(request.partitions[place].partition, {ticket.id, place});
  }
  size_t sum = 0;
  for (size_t bytes : bytes_now) sum += bytes;
  waiters_.emplace(ticket.id, Waiter{request, std::move(bytes_now), sum, ticket.woken});
  return ticket;
}

void FetchWaiters::watch(PartitionHandle partition, Watch watch) {
  std::vector<Watch>& list = watches_[partition];
  // A partition that never changes collects watches of fetches that have ended.
  if (list.size() >= 16 && std::has_single_bit(list.size())) {
    std::erase_if(list, [this](const Watch& old) { return !waiters_.contains(old.id); });
  }
  list.push_back(watch);
}

void FetchWaiters::remove(uint64_t id) {
  waiters_.erase(id);
  if (waiters_.empty()) watches_.clear();
}

void FetchWaiters::partition_changed(const metadata::State& state, PartitionHandle partition) {
  auto found = watches_.find(partition);
  if (found == watches_.end()) return;
  std::erase_if(found->second, [&](const Watch& watch) {
    auto at = waiters_.find(watch.id);
    if (at == waiters_.end()) return true;
    Waiter& waiter = at->second;
    auto bytes =
        bytes_available(state, waiter.request.partitions[watch.place], waiter.request.is_read_committed);
    if (bytes) {
      waiter.bytes_sum += *bytes - waiter.bytes[watch.place];
      waiter.bytes[watch.place] = *bytes;
    }
    if (!bytes || waiter.bytes_sum >= waiter.request.bytes_min) waiter.woken.set(runtime::Done{});
    return false;
  });
  if (found->second.empty()) watches_.erase(found);
}

void FetchWaiters::wake_all() {
  for (const auto& [id, waiter] : waiters_) waiter.woken.set(runtime::Done{});
}

}  // namespace varve::storage
