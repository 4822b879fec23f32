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

namespace varve::storage {

// Owned by Fetcher; core only.
class FetchWaiters {
 public:
  struct Ticket {
    uint64_t id = 0;
    runtime::Completion<runtime::Done> woken;
  };

  // `bytes_now`: what the fetch would get of each partition, in its order; less than bytes_min together.
  Ticket add(const FetchRequest& request, std::vector<size_t> bytes_now);
  // Forgets the waiter; to be called at the end of every wait.
  void remove(uint64_t id);
  void partition_changed(const metadata::State& state, PartitionHandle partition);
  void wake_all();

  size_t size() const { return waiters_.size(); }

 private:
  struct Waiter {
    FetchRequest request;
    std::vector<size_t> bytes;
    size_t bytes_sum = 0;
    runtime::Completion<runtime::Done> woken;
  };
  // A place in a waiter's request. Those of waiters that are gone are dropped when they are met.
  struct Watch {
    uint64_t id;
    uint32_t place;
  };

  void watch(PartitionHandle partition, Watch watch);

  uint64_t next_id_ = 1;
  std::map<uint64_t, Waiter> waiters_;
  std::unordered_map<PartitionHandle, std::vector<Watch>> watches_;
};

}  // namespace varve::storage
