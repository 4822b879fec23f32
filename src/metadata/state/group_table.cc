#include "metadata/state/group_table.h"

#include <algorithm>

#include "base/hash.h"

namespace varve::metadata {

bool OffsetExpiry::is_expired(const GroupView& group, const CommittedOffset& offset) const {
  if (offset.expires_at >= 0) return offset.expires_at <= log_time;
  int64_t since = offset.commit_time;
  if (!group.protocol_type.empty()) since = std::max(since, group.phase_since);
  return since < cut_off;
}

bool OffsetExpiry::is_due(const GroupView& group) const {
  if (!concerns(group)) return false;
  return group.offsets.empty() ||
         std::ranges::any_of(group.offsets, [&](const auto& one) { return is_expired(group, one.second); });
}

GroupView* GroupTable::find(std::string_view id) {
  auto at = all_.find(id);
  return at == all_.end() ? nullptr : &at->second;
}

const GroupView* GroupTable::find(std::string_view id) const {
  auto at = all_.find(id);
  return at == all_.end() ? nullptr : &at->second;
}

GroupView& GroupTable::add(std::string_view id, uint64_t id_hash) {
  before_change(id_hash);
  auto [at, is_new] = all_.try_emplace(std::string(id));
  CHECK(is_new, "group {}", id);
  at->second.id = id;
  buckets_[bucket_of(id_hash)].emplace(at->first, &at->second);
  return at->second;
}

void GroupTable::remove(const GroupView& group) {
  uint64_t id_hash = hash64(group.id);
  before_change(id_hash);
  buckets_[bucket_of(id_hash)].erase(group.id);
  all_.erase(all_.find(group.id));
}

void GroupTable::drop_offsets(const std::vector<PartitionHandle>& partitions) {
  auto is_dropped = [&](const auto& offset) { return std::ranges::binary_search(partitions, offset.first); };
  for (auto& [id, group] : all_) {
    // Most groups have nothing between the first and the last of them.
    auto from = group.offsets.lower_bound(partitions.front());
    auto to = group.offsets.upper_bound(partitions.back());
    if (std::none_of(from, to, is_dropped)) continue;
    before_change(hash64(id));
    std::erase_if(group.offsets, is_dropped);
  }
}

void GroupTable::expire_offsets(const OffsetExpiry& expiry) {
  for (auto at = all_.begin(); at != all_.end();) {
    GroupView& group = (at++)->second;
    if (!expiry.is_due(group)) continue;
    before_change(hash64(group.id));
    std::erase_if(group.offsets, [&](const auto& one) { return expiry.is_expired(group, one.second); });
    if (group.offsets.empty()) remove(group);
  }
}

ExpirySearch GroupTable::search_idle_offset(std::string_view from, size_t groups_max,
                                            const OffsetExpiry& expiry) const {
  ExpirySearch search;
  auto at = all_.lower_bound(from);
  for (size_t i = 0; i < groups_max && at != all_.end() && !search.is_found; ++i, ++at) {
    search.is_found = expiry.is_due(at->second);
  }
  if (!search.is_found && at != all_.end()) search.next = at->first;
  return search;
}

bool GroupTable::restore(GroupView group) {
  auto [at, is_new] = all_.try_emplace(group.id);
  if (!is_new) return false;
  buckets_[bucket_of(hash64(group.id))].emplace(at->first, &at->second);
  at->second = std::move(group);
  return true;
}

}  // namespace varve::metadata
