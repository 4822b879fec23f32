// What an entry of the metadata log says: a header, and commands that apply together, in order.
// Bytes: docs/formats/entry.md. Encoding is dense and deterministic; decoding is total on any input.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"

namespace varve::metadata {

// One upload of one incarnation; its key in the object store is derived (metadata/state/object_key.h).
struct ObjectId {
  Incarnation incarnation{};
  ObjectNumber number{};

  auto operator<=>(const ObjectId&) const = default;
};

struct Endpoint {
  std::string listener{};  // name of the listener, "PLAINTEXT" by default
  std::string host{};
  uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

// A batch of a run that has a producer id; the checks of idempotence split runs here.
struct ProducerBatch {
  uint32_t bytes = 0;
  uint32_t records = 0;
  ProducerId producer_id{};
  ProducerEpoch epoch{};
  Sequence first_sequence{};  // of `records` sequences, wrapping at 2^31

  bool operator==(const ProducerBatch&) const = default;
};

// One contiguous stretch of a partition's batches inside one object, before it has offsets.
struct Run {
  uint32_t index = 0;  // place in the object's directory; a run commits at most once (invariant 9)
  PartitionHandle partition{};
  uint64_t position = 0;  // bytes from the start of the object
  uint32_t bytes = 0;
  uint32_t records = 0;
  int64_t max_timestamp = -1;  // ms; of all batches, so an upper bound for a part of a split run
  bool is_transactional = false;
  bool is_log_append_time = false;  // the partition's topic stamps append time
  // Empty: no batch has a producer id. Otherwise every batch of the run, in order; bytes and records add up.
  std::vector<ProducerBatch> producers{};

  bool operator==(const Run&) const = default;
};

// --- Commands. Numbers are stored: never reuse one. ---

// Makes the sender's nonce an incarnation of `broker` and fences all earlier ones of that id (invariant 4).
// Only as the first and only command of an entry with incarnation 0 and sequence 1.
struct RegisterBroker {
  BrokerId broker{};
  FeatureLevel highest_level{};
  std::vector<Endpoint> endpoints{};
  std::string rack{};
  bool operator==(const RegisterBroker&) const = default;
};
struct FenceBroker {
  Incarnation incarnation{};
  bool operator==(const FenceBroker&) const = default;
};
// Proof of life of an idle broker, and its state hash at the position of an earlier beat, for the comparison of states.
// At position 0 it says nothing of its own: it asks every other live broker for a beat about this one's position.
struct Beat {
  LogPosition applied{};
  uint64_t state_hash = 0;
  bool operator==(const Beat&) const = default;
};
struct RaiseFeatureLevel {
  FeatureLevel level{};
  bool operator==(const RaiseFeatureLevel&) const = default;
};
// Limits that apply uses must be the same on every broker, so they are entries. Refused outside 1..255 batches,
// 1..kPartitionsHardMax partitions.
struct SetLimits {
  uint32_t producer_batches_kept = 5;  // per (producer id, partition); KIP-1269 names the setting
  uint32_t partitions_max = 1'000'000;
  uint64_t producer_expiry_ms = 86'400'000;  // ExpireProducers may not cut closer to log time than this
  bool operator==(const SetLimits&) const = default;
};
struct CreateTopic {
  Uuid id{};
  std::string name{};
  uint32_t partitions = 0;
  std::map<std::string, std::string> configs{};  // validated by the proposer; data to apply
  bool operator==(const CreateTopic&) const = default;
};
struct DeleteTopic {
  Uuid id{};
  bool operator==(const DeleteTopic&) const = default;
};
// References runs of an uploaded object. The object may be of an earlier incarnation of the same broker.
struct CommitObject {
  ObjectId object{};
  FenceEpoch epoch{};  // current when the upload began; part of the key
  uint64_t bytes = 0;
  uint32_t crc = 0;         // CRC-32C of the whole object
  uint32_t run_count = 0;   // in the object's directory, committed here or not; at most kRunsPerObjectMax
  std::vector<Run> runs{};  // index rising
  bool operator==(const CommitObject&) const = default;
};
// From here on no entry can reference an object of an epoch below `epoch` (invariant 7).
struct AdvanceGcFence {
  FenceEpoch epoch{};
  bool operator==(const AdvanceGcFence&) const = default;
};
// The store has confirmed the deletion of these pending objects.
struct ObjectsDeleted {
  std::vector<ObjectId> objects{};
  bool operator==(const ObjectsDeleted&) const = default;
};
// Gives the proposer the producer ids [first, first + count); first is in the result.
struct AllocateProducerIds {
  uint32_t count = 1000;
  bool operator==(const AllocateProducerIds&) const = default;
};
// Forgets producers whose last batch is older than `idle_since` (log time, ms). Refused if that is later than
// log time minus producer_expiry_ms.
struct ExpireProducers {
  int64_t idle_since = 0;
  bool operator==(const ExpireProducers&) const = default;
};
// Raises a partition's log start (DeleteRecords, retention); runs wholly below it are dereferenced.
struct SetLogStart {
  PartitionHandle partition{};
  Offset log_start{};
  bool operator==(const SetLogStart&) const = default;
};
// A snapshot of the state at `position` is in the object store, read back and verified.
struct SnapshotTaken {
  LogPosition position{};
  // The snapshot whose chunks it reuses; refused if that is not retained any more, since its chunks may be gone.
  // 0: it reuses none.
  LogPosition predecessor{};
  uint64_t state_hash = 0;
  uint64_t bytes = 0;  // of manifest and chunks
  bool operator==(const SnapshotTaken&) const = default;
};

// Raises the number of a topic's partitions to `total` (CreatePartitions); it never falls.
struct AddPartitions {
  Uuid topic{};
  uint32_t total = 0;
  bool operator==(const AddPartitions&) const = default;
};
// Sets the topic's configs that are named; no value: removes it. The proposer has validated names and values, and what
// they are together with the others.
struct AlterTopicConfigs {
  Uuid topic{};
  uint64_t version = 0;  // of the topic's configs in state that it builds on (TopicView)
  std::map<std::string, std::optional<std::string>> changes{};
  bool operator==(const AlterTopicConfigs&) const = default;
};

// --- Consumer groups. Only the broker that owns a group changes it: the one that rendezvous hashing gives for its id
// among the live ones where the entry applies (State::group_owner). Bytes that clients send are data. In `owners` the
// sender tells State::owners_version() as it was when it judged what was asked of it. ---

enum class GroupPhase : uint8_t {
  kEmpty = 0,
  kPreparingRebalance = 1,
  kCompletingRebalance = 2,
  kStable = 3
};
inline constexpr uint8_t kGroupPhases = 4;

struct GroupProtocol {
  std::string name{};
  std::string metadata{};  // bytes as the client sent them
  bool operator==(const GroupProtocol&) const = default;
};
struct MemberDetails {
  std::optional<std::string> instance_id{};  // a static member's (KIP-345)
  std::string client_id{};
  std::string client_host{};
  uint32_t session_timeout_ms = 0;
  uint32_t rebalance_timeout_ms = 0;
  std::vector<GroupProtocol> protocols{};  // as the client prefers them
  bool operator==(const MemberDetails&) const = default;
};
struct SavedMember {
  std::string id{};
  std::optional<MemberDetails> details{};   // none: as in state, where the member must be
  std::optional<std::string> assignment{};  // none: as in state, else empty
  bool operator==(const SavedMember&) const = default;
};
// Replaces the membership of a classic group, or makes the group; members that are not listed go, offsets stay.
struct SaveGroup {
  std::string group{};
  uint64_t version = 0;  // of the group in state that it builds on (GroupView); 0: there is none
  std::string protocol_type{};
  GroupPhase phase = GroupPhase::kEmpty;
  int32_t generation = 0;
  std::optional<std::string> protocol{};
  std::string leader{};
  std::vector<SavedMember> members{};  // ids rising
  uint64_t owners = 0;
  bool operator==(const SaveGroup&) const = default;
};
struct OffsetCommit {
  PartitionHandle partition{};
  int64_t offset = 0;
  int32_t leader_epoch = -1;
  std::string metadata{};
  bool operator==(const OffsetCommit&) const = default;
};
// OffsetCommit, judged as Kafka judges one of a classic group. A group that is not there is made, without a protocol
// type, by a commit without a generation.
struct CommitOffsets {
  std::string group{};
  int32_t generation = -1;
  std::string member{};
  std::optional<std::string> instance_id{};
  int64_t expires_at = -1;  // log time, ms; -1: by SetGroupLimits
  std::vector<OffsetCommit> offsets{};
  uint64_t owners = 0;
  bool operator==(const CommitOffsets&) const = default;
};
// Partitions without an offset are passed over.
struct DeleteOffsets {
  std::string group{};
  uint64_t version = 0;
  std::vector<PartitionHandle> partitions{};
  uint64_t owners = 0;
  bool operator==(const DeleteOffsets&) const = default;
};
// Only in phase kEmpty.
struct DeleteGroup {
  std::string group{};
  uint64_t version = 0;
  uint64_t owners = 0;
  bool operator==(const DeleteGroup&) const = default;
};
struct SetGroupLimits {
  uint64_t offsets_retention_ms = 604'800'000;  // ExpireOffsets may not cut closer to log time than this
  bool operator==(const SetGroupLimits&) const = default;
};
// Forgets offsets of groups without members: those whose expires_at has come; without one, those that were committed
// before `cut_off` (log time, ms), in a group with a protocol type only if it was empty before it, too. A group that is
// left with neither members nor offsets is forgotten. Refused if the cut-off is later than log time minus
// offsets_retention_ms.
struct ExpireOffsets {
  int64_t cut_off = 0;
  bool operator==(const ExpireOffsets&) const = default;
};

using Command =
    std::variant<RegisterBroker, FenceBroker, Beat, RaiseFeatureLevel, SetLimits, CreateTopic, DeleteTopic,
                 CommitObject, AdvanceGcFence, ObjectsDeleted, AllocateProducerIds, ExpireProducers,
                 SetLogStart, SnapshotTaken, AddPartitions, AlterTopicConfigs, SaveGroup, CommitOffsets,
                 DeleteOffsets, DeleteGroup, SetGroupLimits, ExpireOffsets>;

// The number of each command in the bytes of an entry.
enum class CommandKind : uint8_t {
  kRegisterBroker = 1,
  kFenceBroker = 2,
  kBeat = 3,
  kRaiseFeatureLevel = 4,
  kSetLimits = 5,
  kCreateTopic = 6,
  kDeleteTopic = 7,
  kCommitObject = 8,
  kAdvanceGcFence = 9,
  kObjectsDeleted = 10,
  kAllocateProducerIds = 11,
  kExpireProducers = 12,
  kSetLogStart = 13,
  kSnapshotTaken = 14,
  kAddPartitions = 15,
  kAlterTopicConfigs = 16,
  kSaveGroup = 17,
  kCommitOffsets = 18,
  kDeleteOffsets = 19,
  kDeleteGroup = 20,
  kSetGroupLimits = 21,
  kExpireOffsets = 22,
};
CommandKind kind_of(const Command& command);
// "CommitObject"; for tools and logs.
std::string_view name_of(CommandKind kind);
// Whether brokers say it for the cluster, and never for a client: while it is idle they say nothing else, and where
// clients have to wait these go first.
bool is_duty(const Command& command);

// The highest feature level whose grammar this binary knows. A State whose feature_level() is above it must not
// be applied to further: the broker halts (invariant 2).
inline constexpr FeatureLevel kHighestFeatureLevel{1};
// That of the first grammar, in which registrations are written: any program reads them, whatever the cluster's level.
inline constexpr FeatureLevel kFirstFeatureLevel{1};

// Bounds of what apply accepts whatever the limits in state are, so that no entry can make a broker reserve
// memory that no object holds.
inline constexpr uint32_t kRunsPerObjectMax = 1 << 16;
inline constexpr uint64_t kObjectBytesMax = uint64_t{1} << 48;
inline constexpr uint32_t kPartitionsHardMax = 10'000'000;
inline constexpr size_t kGroupsMax = 100'000;
inline constexpr size_t kGroupIdBytesMax = 32'767;

struct Entry {
  Nonce nonce{};
  Incarnation incarnation{};  // 0 in a registration
  EntrySequence sequence{};
  FeatureLevel level{1};  // the grammar the entry needs
  uint16_t shard = 0;     // reserved: one log has one shard
  WallTime time{};        // the proposer's clock, ms
  std::vector<Command> commands{};
  bool operator==(const Entry&) const = default;
};

enum class EntryErrc : uint8_t { kMalformed, kBadChecksum, kUnknownVersion };
using EntryError = ErrorOf<EntryErrc>;

// Takes at most kEntryFrameBytesMax plus the encoded_size_bound() of each command.
std::vector<uint8_t> encode_entry(const Entry& entry);
// Errors: kUnknownVersion also for an entry above kHighestFeatureLevel.
Result<Entry, EntryError> decode_entry(ByteView bytes);
// All but the commands: enough to judge an entry whose grammar this binary does not know.
Result<Entry, EntryError> decode_entry_header(ByteView bytes);
// An upper bound of what `command` adds to an entry, in bytes; close for a commit; takes time per run.
size_t encoded_size_bound(const Command& command);
// What an entry takes beside its commands, at most.
inline constexpr size_t kEntryFrameBytesMax = 64;

}  // namespace varve::metadata
