#include "sim/checkers/stillness.h"

#include <utility>

namespace varve::sim {

bool Stillness::is_reached(const metadata::State& state, MonotonicTime now) {
  if (state.position() != position_ || records_ == UINT64_MAX) {
    position_ = state.position();
    uint64_t records = 0;
    for (const auto& [id, topic] : state.topics()) {
      for (PartitionHandle handle : topic.partitions) {
        records += static_cast<uint64_t>(state.partition(handle)->high_watermark.value());
      }
    }
    if (std::exchange(records_, records) != records) since_ = now;
  }
  return now - since_ >= span_;
}

}  // namespace varve::sim
