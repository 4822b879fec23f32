// State: what replaying the metadata log gives. Pure: no clock, randomness, I/O, pointer order or local setting
// enters apply(), so that every broker has the same state at the same position (invariant 2).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/planted_bugs.h"
#include "metadata/state/entry.h"
#include "metadata/state/outcome.h"

namespace varve::metadata {

struct BrokerIncarnation {
  BrokerId broker{};
  Nonce nonce{};
  EntrySequence last_sequence{};  // kept after the fence: it tells the fate of entries (invariant 3)
  bool is_live = true;
  FeatureLevel highest_level{};
  WallTime last_time{};
  std::vector<Endpoint> endpoints{};
  std::string rack{};
  // Of the newest beat; for the comparison of states.
  LogPosition beat_position{};
  uint64_t beat_hash = 0;
};

// A run with its offsets, as fetch plans see it.
struct StoredRun {
  ObjectId object{};
  uint64_t position = 0;
  uint32_t bytes = 0;
  Offset base_offset{};
  uint32_t records = 0;
  int64_t max_timestamp = -1;
  int64_t append_time = -1;  // ms, if is_log_append_time: then every record's timestamp
  bool is_transactional = false;
  bool is_log_append_time = false;
  bool is_marker = false;  // a transaction marker: no object, fetch writes the control batch

  Offset end_offset() const { return base_offset.plus(records); }
  // Bytes of the records from the offset on, supposing that all are of one size; 0 only if there are none.
  uint32_t bytes_from(Offset from) const;
};

struct AbortedTransaction {
  ProducerId producer_id{};
  Offset first_offset{};
};

struct PartitionView {
  PartitionHandle handle{};
  Uuid topic{};
  PartitionIndex index{};
  Offset log_start{};
  Offset high_watermark{};
  Offset last_stable{};
};

struct TopicView {
  Uuid id{};
  std::string name{};
  uint32_t life = 1;  // counts topics of this name, for the folder names of segments
  std::vector<PartitionHandle> partitions{};
  std::map<std::string, std::string> configs{};
  uint64_t configs_version = 0;  // one more with every change of the configs
};

struct CommittedOffset {
  int64_t offset = 0;
  int32_t leader_epoch = -1;
  std::string metadata{};
  int64_t commit_time = 0;  // log time, ms
  int64_t expires_at = -1;  // log time, ms; -1: by offsets_retention_ms
  bool operator==(const CommittedOffset&) const = default;
};

struct GroupMember {
  MemberDetails details{};
  std::string assignment{};
  bool operator==(const GroupMember&) const = default;
};

// A consumer group of the classic protocol, or, without a protocol type, only a name for offsets.
struct GroupView {
  std::string id{};
  uint64_t version = 0;  // drawn anew by each SaveGroup, and when a commit makes the group; never used twice
  std::string protocol_type{};
  GroupPhase phase = GroupPhase::kEmpty;
  int32_t generation = 0;
  std::optional<std::string> protocol{};
  std::string leader{};
  std::map<std::string, GroupMember> members{};
  std::map<PartitionHandle, CommittedOffset> offsets{};
  int64_t phase_since = 0;  // log time, ms, of the SaveGroup that brought the phase
  bool operator==(const GroupView&) const = default;
};

struct ExpirySearch {
  bool is_found = false;
  std::optional<std::string>
      next{};  // if nothing was found: the group to go on from; none: there are no more
};

// Everything a Fetch needs of one partition, at one log position. Runs cover [from, ...) in offset order.
struct FetchPlan {
  PartitionView partition{};
  std::vector<StoredRun> runs{};
  std::vector<AbortedTransaction> aborted{};
};

struct PendingDeletion {
  ObjectId object{};
  FenceEpoch epoch{};
  LogPosition dereferenced_at{};
  int64_t dereferenced_time = 0;  // log time, ms
  bool needs_grace = true;        // false: a deleted topic's, nobody may read it
};

struct RetainedSnapshot {
  LogPosition position{};
  uint64_t state_hash = 0;
  uint64_t bytes = 0;
};

// The chunks of a state as they were at one position, or only their hash.
struct StateCut {
  LogPosition position{};
  FenceEpoch fence_epoch{};
  uint64_t hash = 0;
  std::vector<Slice> chunks{};  // none if only the hash was asked for
};
enum class CutKind : uint8_t { kHash = 0, kChunks = 1 };

// Life: made empty or from a snapshot, then only apply() changes it. Lives on the core executor of one broker;
// not thread-safe. Its memory is a few hundred bytes a partition and about 40 a run.
class State {
 public:
  explicit State(PlantedBugs bugs = {});
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  ~State();

  // Applies the entry at `position` (strictly rising). Total: any bytes give some outcome, never an error.
  ApplyOutcome apply(LogPosition position, ByteView entry);

  LogPosition position() const;
  FeatureLevel feature_level() const;
  int64_t log_time() const;  // ms, never falls
  FenceEpoch fence_epoch() const;
  const SetLimits& limits() const;

  // Incarnations, live or fenced, by number. The newest of a broker id is its current one.
  const std::map<Incarnation, BrokerIncarnation>& incarnations() const;
  std::optional<Incarnation> live_incarnation(BrokerId broker) const;
  const std::map<BrokerId, Incarnation>& live_brokers() const;
  std::optional<Incarnation> incarnation_of(Nonce nonce) const;

  // Topics by id; by name only the living one. Pointers are valid until the next apply().
  const std::map<Uuid, TopicView>& topics() const;
  const TopicView* find_topic(std::string_view name) const;
  const TopicView* find_topic(Uuid id) const;
  // Rises with every change of topics, partitions, configs or live brokers: when to publish a new image.
  uint64_t image_version() const;

  // Consumer groups by id. Pointers are valid until the next apply().
  const std::map<std::string, GroupView, std::less<>>& groups() const;
  const GroupView* find_group(std::string_view id) const;
  // The live broker that may change the group, and that FindCoordinator names; nullopt: no broker lives.
  std::optional<BrokerId> group_owner(std::string_view id) const;
  // Rises with every broker that is registered or fenced: while it is the same, so is the owner of every group.
  uint64_t owners_version() const;
  const SetGroupLimits& group_limits() const;
  // Whether ExpireOffsets would do anything, as far as `groups_max` groups from the id `from` on tell.
  ExpirySearch search_idle_offset(std::string_view from, size_t groups_max, int64_t cut_off) const;

  std::optional<PartitionView> partition(PartitionHandle handle) const;
  // Bytes of the batches that can be read from a partition, of one cut by the log start by its share of records; walks
  // the runs. nullopt: no such partition.
  std::optional<uint64_t> stored_bytes(PartitionHandle handle) const;
  // Runs that hold offsets from `from` on, up to about `max_bytes` (at least one run if there is any), only
  // below the last stable offset if `committed_only`. None if `from` is below the log start or not below the end.
  // nullopt: no such partition.
  std::optional<FetchPlan> plan_fetch(PartitionHandle handle, Offset from, uint64_t max_bytes,
                                      bool committed_only) const;
  // The runs that may hold the first record with timestamp >= `timestamp`, in offset order, at most `max_runs`
  // starting at `from`; runs between them that cannot are left out. Empty: none. nullopt: no such partition.
  std::optional<FetchPlan> plan_time_lookup(PartitionHandle handle, int64_t timestamp, Offset from,
                                            size_t max_runs) const;
  // The run with the largest max_timestamp (ListOffsets -3), the first of equals, if any. A run split at refused
  // batches has only an upper bound: if its records end below it, plan_time_lookup tells who may have more.
  std::optional<FetchPlan> plan_max_timestamp(PartitionHandle handle) const;

  // The next sequence expected from a producer on a partition, 0 under an epoch newer than the one known; nullopt
  // if it is unknown there or `epoch` is older. Used by ingest to hold a gap for a moment.
  std::optional<Sequence> next_sequence(PartitionHandle handle, ProducerId producer,
                                        ProducerEpoch epoch) const;

  // Whether a producer's last batch on a partition of [from, to) is older than `idle_since` (log time, ms). Walks all
  // of them.
  bool has_idle_producer(PartitionHandle from, PartitionHandle to, int64_t idle_since) const;
  PartitionHandle next_partition() const;  // all handles given so far are below it

  // Whether any live reference or pending deletion names the object (the sweep leaves those alone).
  bool knows_object(ObjectId object) const;
  std::optional<FenceEpoch> object_epoch(ObjectId object) const;
  // Pending objects that may be deleted now by the rules of invariant 7, oldest first, at most `max`.
  std::vector<PendingDeletion> deletable(size_t max) const;
  size_t pending_deletions() const;

  const std::vector<RetainedSnapshot>& snapshots() const;  // oldest first, at most 3 newest are retained
  // Entries at or below may be trimmed: the oldest retained snapshot, once three are retained.
  LogPosition trimmable() const;

  // Counts of no-ops and refusals by cause since this State was made (not part of the state or its hash):
  // "entry.gap", "batch.duplicate", "command.topic_exists"... Every cause is there, with 0 if it never came.
  const std::map<std::string, uint64_t>& refusal_counts() const;

  // Sum of the chunk hashes: the same on every broker at the same position.
  uint64_t hash() const;

  // The state cut into chunks (docs/formats/snapshot.md), in their order. A chunk's bytes depend only on the state.
  std::vector<Slice> to_chunks() const;
  // The same bit by bit, so that nothing waits long for it: begin_cut() takes the state as it is, and apply() may go
  // on while step_cut() encodes. CHECKs that there is one cut at a time.
  void begin_cut(CutKind kind);
  bool has_cut() const;
  // Encodes at least one chunk more, and until it has made `bytes`; true: complete.
  bool step_cut(size_t bytes);
  // The complete cut, which is over with that.
  StateCut end_cut();
  void drop_cut();
  static Result<State, EntryError> from_chunks(const std::vector<Slice>& chunks, PlantedBugs bugs = {});

  // Whose broker holds this State: nothing reads it but the planted bug apply_reads_local_broker.
  void set_local_broker(BrokerId broker);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::metadata
