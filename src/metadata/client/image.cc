#include "metadata/client/image.h"

namespace varve::metadata {
namespace {

// SplitMix64's finalizer: spreads every bit, integers only, the same on every broker.
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

}  // namespace

const TopicView* MetadataImage::find_topic(std::string_view name) const {
  auto found = topics_by_name.find(name);
  return found == topics_by_name.end() ? nullptr : found->second.get();
}

const TopicView* MetadataImage::find_topic(const Uuid& id) const {
  auto found = topics_by_id.find(id);
  return found == topics_by_id.end() ? nullptr : found->second.get();
}

std::optional<BrokerId> MetadataImage::owner(PartitionHandle partition, std::string_view rack) const {
  std::optional<BrokerId> best;
  uint64_t best_weight = 0;
  bool best_is_local = false;
  for (const auto& [id, broker] : brokers) {
    bool is_local = !rack.empty() && broker.rack == rack;
    uint64_t weight = mix(mix(partition.value()) ^ static_cast<uint64_t>(static_cast<uint32_t>(id.value())));
    bool is_better =
        !best || (is_local && !best_is_local) || (is_local == best_is_local && weight > best_weight);
    if (is_better) {
      best = id;
      best_weight = weight;
      best_is_local = is_local;
    }
  }
  return best;
}

}  // namespace varve::metadata
