// FetchWaiters: fetches that wait for more bytes. Apply wakes those whose partitions changed, once the bytes over
// all partitions of the fetch suffice.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "metadata/state/state.h"
#include "runtime/completion.h"
#include "storage/fetch/fetch.h"
#include "storage/fetch/fetch_planner.h"

namespace varve::storage {

// A change costs what is new, whoever waits and however much lies before it: a look at the runs since the last
// change, and an addition for each waiter of the partition. Owned by Fetcher; core only.
class FetchWaiters {
 public:
  struct Ticket {
    uint64_t id = 0;
    runtime::Completion<runtime::Done> woken;
  };

  // `plan`: what the request would get now, without an error; less than bytes_min together.
  Ticket add(const FetchRequest& request, const PlannedFetch& plan);
  // Forgets the waiter; to be called at the end of every wait.
  void remove(uint64_t id);
  void partition_changed(const metadata::State& state, PartitionHandle partition);
  void wake_all();

  size_t size() const { return waiters_.size(); }

 private:
  // A partition of a waiter.
  struct Place {
    Offset from;
    // Where the newest run begins that was seen: it may grow. `bytes_before` are those from `from` to there.
    Offset counted_to;
    size_t bytes_before = 0;
    size_t bytes = 0;
    size_t bytes_max = 0;
  };
  struct Waiter {
    std::vector<Place> places;  // in the order of the request
    size_t bytes_sum = 0;
    size_t bytes_min = 0;
    bool is_read_committed = false;
    runtime::Completion<runtime::Done> woken;
  };
  // A place in a waiter's request. Those of waiters that are gone are dropped when they are met.
  struct Watch {
    uint64_t id;
    uint32_t place;
  };
  class Growth;

  static Place place_of(const FetchPartition& asked, const PlannedPartition& planned);
  void watch(PartitionHandle partition, Watch watch);
  static void look(Growth& growth, Waiter& waiter, Place& place);

  uint64_t next_id_ = 1;
  std::map<uint64_t, Waiter> waiters_;
  std::unordered_map<PartitionHandle, std::vector<Watch>> watches_;
};

}  // namespace varve::storage
