#include "storage/fetch/fetch_waiters.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace varve::storage {
namespace {

// Of one look. Whoever is further behind has waited for more than any fetch may ask for.
constexpr uint64_t kCountedBytesMax = uint64_t{1} << 31;

}  // namespace

// What came to one partition, counted once for all who have seen the same.
class FetchWaiters::Growth {
 public:
  struct Counted {
    bool is_read_committed;
    Offset from;
    Offset last_from;       // where the last run begins, or `from`
    size_t bytes = 0;       // of all runs but the last
    size_t last_bytes = 0;  // of that
  };

  Growth(const metadata::State& state, PartitionHandle partition)
      : state_(state), partition_(partition), view_(state.partition(partition)) {}

  // Nothing: the partition was deleted.
  const std::optional<metadata::PartitionView>& view() const { return view_; }

  Counted since(Offset from, bool is_read_committed) {
    auto known = std::find_if(counted_.begin(), counted_.end(), [&](const Counted& counted) {
      return counted.from == from && counted.is_read_committed == is_read_committed;
    });
    if (known != counted_.end()) return *known;
    Counted counted{.is_read_committed = is_read_committed, .from = from, .last_from = from};
    auto plan = state_.plan_fetch(partition_, from, kCountedBytesMax, is_read_committed);
    if (plan) {
      for (const metadata::StoredRun& run : plan->runs) {
        counted.bytes += std::exchange(counted.last_bytes, run.bytes_from(from));
        counted.last_from = std::max(from, run.base_offset);
      }
    }
    return counted_.emplace_back(counted);
  }

 private:
  const metadata::State& state_;
  const PartitionHandle partition_;
  const std::optional<metadata::PartitionView> view_;
  std::vector<Counted> counted_;
};

FetchWaiters::Ticket FetchWaiters::add(const FetchRequest& request, const PlannedFetch& plan) {
  Ticket ticket{.id = next_id_++, .woken = {}};
  Waiter& waiter = waiters_[ticket.id];
  waiter.bytes_min = request.bytes_min;
  waiter.is_read_committed = request.is_read_committed;
  waiter.woken = ticket.woken;
  waiter.places.reserve(request.partitions.size());
  for (uint32_t i = 0; i < request.partitions.size(); ++i) {
    const FetchPartition& asked = request.partitions[i];
    const PlannedPartition& planned = plan.partitions[i];
    waiter.places.push_back(place_of(asked, planned));
    waiter.bytes_sum += planned.bytes_estimate;
    watch(asked.partition, {ticket.id, i});
  }
  return ticket;
}

FetchWaiters::Place FetchWaiters::place_of(const FetchPartition& asked, const PlannedPartition& planned) {
  Place place{.from = asked.offset,
              .counted_to = asked.offset,
              .bytes = planned.bytes_estimate,
              .bytes_max = asked.bytes_max};
  size_t last_bytes = 0;
  for (const auto* runs : {&planned.runs, &planned.read_ahead}) {
    for (const PlannedRun& planned_run : *runs) {
      place.bytes_before += std::exchange(last_bytes, planned_run.run.bytes_from(asked.offset));
      place.counted_to = std::max(asked.offset, planned_run.run.base_offset);
    }
  }
  return place;
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
  Growth growth(state, partition);
  std::erase_if(found->second, [&](const Watch& watch) {
    auto at = waiters_.find(watch.id);
    if (at == waiters_.end()) return true;
    look(growth, at->second, at->second.places[watch.place]);
    return false;
  });
  if (found->second.empty()) watches_.erase(found);
}

void FetchWaiters::look(Growth& growth, Waiter& waiter, Place& place) {
  const auto& view = growth.view();
  // Deleted, or its start has passed the reader: an answer at once.
  if (!view || place.from < view->log_start) {
    waiter.woken.set(runtime::Done{});
    return;
  }
  Growth::Counted counted = growth.since(place.counted_to, waiter.is_read_committed);
  place.counted_to = counted.last_from;
  place.bytes_before += counted.bytes;
  size_t bytes = std::min(place.bytes_before + counted.last_bytes, place.bytes_max);
  waiter.bytes_sum += bytes - place.bytes;
  place.bytes = bytes;
  if (waiter.bytes_sum >= waiter.bytes_min) waiter.woken.set(runtime::Done{});
}

void FetchWaiters::wake_all() {
  for (const auto& [id, waiter] : waiters_) waiter.woken.set(runtime::Done{});
}

}  // namespace varve::storage
