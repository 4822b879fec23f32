// What apply answers to the proposer of an entry. Only the proposer looks at it; it is not part of the state.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace varve::metadata {

enum class BatchVerdict : uint8_t {
  kAccepted,
  kDuplicate,         // stored before under `base_offset`: success for the producer
  kUnknownPartition,  // deleted, or made again under another handle
  kOutOfOrder,        // sequence gap, or a start other than 0 by an unknown producer
  kStaleEpoch,        // older producer epoch
  kInvalidTxnState,   // transactional without an open transaction
  kObjectFenced,      // the object's epoch is below the GC fence; upload again
  kAlreadyCommitted,  // this run of this object was committed by an earlier entry
  kBadRun,            // the run contradicts itself or its object (a bug of the proposer)
};

struct BatchOutcome {
  BatchVerdict verdict = BatchVerdict::kBadRun;
  Offset base_offset{-1};
  Offset log_start{0};
  int64_t append_time = -1;  // ms; set on LogAppendTime runs
};

// For a run without producers one outcome stands for the whole run; otherwise one a producer batch.
struct RunOutcome {
  uint32_t index = 0;
  std::vector<BatchOutcome> batches{};
};

enum class CommandVerdict : uint8_t {
  kDone,
  kRefused,       // by a rule of state; `detail` names it
  kTopicExists,   // CreateTopic
  kUnknownTopic,  // by id or partition handle
  kOverLimit,     // partitions_max, kGroupsMax
  kLevelRefused,  // RegisterBroker below the level, RaiseFeatureLevel not allowed by a live broker
  kStaleConfigs,  // AlterTopicConfigs: the topic's configs have changed since
  // Of groups, in the order in which they are judged:
  kNotCoordinator,       // another broker owns the group here
  kStaleGroup,           // it builds on another version of the group
  kUnknownGroup,         // DeleteOffsets, DeleteGroup
  kUnknownMember,        // CommitOffsets
  kIllegalGeneration,    // CommitOffsets
  kFencedInstance,       // CommitOffsets: the instance id is another member's
  kRebalanceInProgress,  // CommitOffsets: the group waits for its leader's assignment
  kNonEmptyGroup,        // DeleteGroup
};

struct CommandOutcome {
  CommandVerdict verdict = CommandVerdict::kDone;
  std::string_view detail{};       // kRefused: the rule, a literal such as "fence_not_raised"
  std::vector<RunOutcome> runs{};  // CommitObject
  ProducerId first_producer_id{};  // AllocateProducerIds
  Incarnation incarnation{};       // RegisterBroker
  // Of the group in state after a command about it, whatever the verdict; 0: there is none. Not told by a broker that is
  // not its owner (kNotCoordinator).
  uint64_t group_version = 0;
  std::vector<uint32_t> unknown_partitions{};  // CommitOffsets: indexes of offsets whose partition is gone
};

enum class EntryVerdict : uint8_t {
  kApplied,
  kMalformed,          // not decodable: a counted no-op
  kAboveFeatureLevel,  // grammar above the level in state: a counted no-op
  kUnknownIncarnation,
  kFenced,    // the sender's incarnation is not live
  kRepeated,  // sequence at or below the last applied
  kGap,       // sequence above last + 1
  kBadRegistration,
};

// What a Beat says: this hash at this position; at position 0 nothing, it asks for that of others at its entry's.
struct NamedHash {
  LogPosition position{};
  uint64_t hash = 0;
};

struct ApplyOutcome {
  EntryVerdict verdict = EntryVerdict::kApplied;
  // Who sent the entry, if it was decodable: how a proposer knows its own.
  Nonce nonce{};
  EntrySequence sequence{};
  // Incarnations that stopped being live by this entry.
  std::vector<Incarnation> fenced{};
  std::vector<CommandOutcome> commands{};  // one each, only if kApplied
  std::vector<NamedHash> beats{};          // of the sender, that were applied, in their order
  bool has_snapshot = false;               // a SnapshotTaken was done: it is state.snapshots().back()
  // It says more than duties (is_duty()), or cannot be read: somebody has worked.
  bool has_work = false;
  bool has_broker_change = false;  // a registration or a fence took effect: groups may have other owners
  // Not of one entry: a snapshot took the place of the state, and anything may have changed.
  bool is_reload = false;
  // Partitions with new readable records, a new log start, or gone: whose waiting fetches look again.
  std::vector<PartitionHandle> changed_partitions{};
};

}  // namespace varve::metadata
