// Consumer groups by id, in buckets that are also the unit of snapshots.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "metadata/state/chunk_changes.h"
#include "metadata/state/state.h"

namespace varve::metadata {

// Where the group whose id has this hash64() lies.
inline size_t bucket_of(uint64_t id_hash) { return id_hash >> 56; }
static_assert(kGroupBuckets == 256);

// Which offsets of groups without members are to be forgotten.
struct OffsetExpiry {
  int64_t cut_off = 0;
  int64_t log_time = 0;

  bool concerns(const GroupView& group) const {
    return group.phase == GroupPhase::kEmpty && group.members.empty();
  }
  bool is_expired(const GroupView& group, const CommittedOffset& offset) const;
  // Whether it would take anything of a group, or the group.
  bool is_due(const GroupView& group) const;
};

// Groups are nodes and stay where they are. Owned by one state; not thread-safe.
class GroupTable {
 public:
  using ById = std::map<std::string, GroupView, std::less<>>;
  using Bucket = std::map<std::string_view, const GroupView*>;

  explicit GroupTable(ChunkChanges& changes) : changes_(&changes) {}

  GroupView* find(std::string_view id);
  const GroupView* find(std::string_view id) const;
  const ById& all() const { return all_; }
  const Bucket& bucket(size_t number) const { return buckets_[number]; }
  // The newest version that was given to a group.
  uint64_t newest_version() const { return newest_version_; }

  // Before the group of this id changes, comes or goes.
  void before_change(uint64_t id_hash) { changes_->touch({ChunkKind::kGroups, bucket_of(id_hash)}); }
  // With no version yet. The id must not be known; `id_hash` is its hash64().
  GroupView& add(std::string_view id, uint64_t id_hash);
  void renew_version(GroupView& group) { group.version = ++newest_version_; }
  void remove(const GroupView& group);

  // Handles rising.
  void drop_offsets(const std::vector<PartitionHandle>& partitions);
  void expire_offsets(const OffsetExpiry& expiry);
  // As State::search_idle_offset().
  ExpirySearch search_idle_offset(std::string_view from, size_t groups_max, const OffsetExpiry& expiry) const;

  // From a snapshot.
  void restore_newest_version(uint64_t version) { newest_version_ = version; }
  // False if the id is known.
  bool restore(GroupView group);

 private:
  ChunkChanges* changes_;
  ById all_;
  std::array<Bucket, kGroupBuckets> buckets_;  // keys and values point into all_
  uint64_t newest_version_ = 0;
};

}  // namespace varve::metadata
