// SequentialReaders: which partitions are read from one place on, so that what comes next is worth reading ahead.
#pragma once

#include <unordered_map>

#include "base/ids.h"

namespace varve::storage {

// A guess from the last fetch of each partition; of two readers that take turns neither is seen. Core only.
class SequentialReaders {
 public:
  // Whether a fetch from `offset` goes on where the last one was.
  bool goes_on(PartitionHandle partition, Offset offset) const {
    auto last = last_.find(partition);
    return last != last_.end() && offset > last->second.from && offset <= last->second.to;
  }
  void note(PartitionHandle partition, Offset from, Offset to) {
    if (last_.size() >= kPartitionsMax && !last_.contains(partition)) last_.clear();
    last_[partition] = {from, to};
  }

 private:
  static constexpr size_t kPartitionsMax = 10'000;

  struct Stretch {
    Offset from;
    Offset to;
  };
  std::unordered_map<PartitionHandle, Stretch> last_;
};

}  // namespace varve::storage
