// What ingest keeps of a batch from its arrival to its verdict. All of it lives on the core.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "metadata/state/entry.h"
#include "storage/format/wal_object.h"
#include "storage/ingest/append.h"

namespace varve::storage {

struct PendingRun;
struct SealedObject;

// One submitted request: replies when all its batches have a result.
struct PendingRequest {
  AppendResults results;
  size_t open = 0;
  std::move_only_function<void(AppendResults)> reply;

  void set_result(uint32_t slot, const AppendResult& result) {
    results[slot] = result;
    if (--open == 0) reply(std::move(results));
  }
};

// Order is kept within a chain: the batches of a producer id, or of a connection for those without one, in one
// partition (invariant 9).
struct ChainKey {
  PartitionHandle partition;
  bool is_producer = false;
  int64_t id = 0;  // producer id or connection

  auto operator<=>(const ChainKey&) const = default;
};
struct ChainKeyHash {
  size_t operator()(const ChainKey& key) const noexcept {
    uint64_t value = static_cast<uint64_t>(key.id) * 2 + (key.is_producer ? 1 : 0);
    value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15 + key.partition.value();
    return static_cast<size_t>((value ^ (value >> 29)) * 0xbf58476d1ce4e5b9);
  }
};

struct Chain;

// The part of a batch that stays with its bookkeeping; its bytes are in an IncomingBatch, then in a WalRun.
struct PendingBatch {
  Chain* chain = nullptr;
  std::shared_ptr<PendingRequest> request;  // null: its result was given early
  uint32_t slot = 0;                        // in the request
  uint32_t records = 0;
  size_t charge = 0;  // of the memory budget
  MonotonicTime arrived;
  MonotonicTime held_until;  // if held
  bool is_early = false;     // acknowledged from the buffer: it must not be dropped
};

struct IncomingBatch {
  PendingBatch pending;
  AppendBatch batch;
  bool is_copied = true;  // into the object, see WalBatch
};

struct Chain {
  ChainKey key;
  uint64_t serial = 0;             // in order of making; makes sets of chains deterministic
  size_t open = 0;                 // batches without a verdict
  PendingRun* last_run = nullptr;  // the newest unsettled run with a batch of this chain
  uint64_t last_seal = 0;          // the seal that made last_run
  bool is_failing = false;         // while a failure is spread

  // What the next batch of a producer should be, once one was let through; until then cluster state says it.
  struct Expected {
    ProducerEpoch epoch;
    Sequence sequence;
  };
  std::optional<Expected> expected;
  std::vector<IncomingBatch> held;                    // beyond a gap, by epoch and sequence
  MonotonicTime held_until = MonotonicTime::never();  // of the one that arrived first
};

// Batches of one partition in one object that commit together.
struct PendingRun {
  enum class Step : uint8_t {
    kSealed,    // its object is not uploaded
    kUploaded,  // and waits for `waits_for`, or for another try
    kReady,     // to be proposed
    kProposed,
    kSettled,
  };

  uint64_t serial = 0;  // in order of sealing
  Step step = Step::kSealed;
  SealedObject* object = nullptr;
  std::shared_ptr<WalRun> data;  // not changed any more; until settled, another upload may need it
  std::vector<PendingBatch> batches;
  size_t charge = 0;
  bool is_early = false;
  bool was_fenced = false;  // its object was refused once for its epoch
  metadata::Run commit;     // from the upload on
  MonotonicTime uploaded;

  // The run that must settle first, in which every chain of this one has its previous batch.
  PendingRun* waits_for = nullptr;
  std::vector<PendingRun*> waited_for_by;
};

struct SealedObject {
  enum class Step : uint8_t { kQueued, kUploading, kUploaded };

  uint64_t serial = 0;  // in order of sealing
  Step step = Step::kQueued;
  std::vector<std::unique_ptr<PendingRun>> runs;  // as they lie in the object
  size_t unsettled = 0;
  MonotonicTime not_before;  // of the upload
  MonotonicTime started;     // the upload
  metadata::ObjectId id;
  FenceEpoch epoch;
  uint64_t bytes = 0;
  uint32_t crc = 0;
  uint32_t run_count = 0;
  size_t release_after_upload = 0;  // charges of runs that failed meanwhile
};

}  // namespace varve::storage
