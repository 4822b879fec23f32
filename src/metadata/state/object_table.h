// The objects that runs refer to, and those that wait for their deletion (invariants 7 and 9).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "metadata/state/chunk_changes.h"
#include "metadata/state/entry.h"
#include "metadata/state/state.h"

namespace varve::metadata {

// When a reference went: what a pending deletion waits from.
struct DereferenceMoment {
  LogPosition position;
  int64_t log_time = 0;
};

struct Object {
  ObjectId id;
  FenceEpoch epoch;
  uint64_t bytes = 0;
  uint32_t crc = 0;
  uint32_t run_count = 0;
  uint32_t resolved = 0;    // runs that some entry has decided
  uint32_t references = 0;  // stored runs; 0: pending
  // A run of it went below a log start: somebody may be reading it, whatever removes the last reference.
  bool may_have_readers = false;
  bool needs_grace = false;  // while pending
  DereferenceMoment dereferenced;
  std::vector<uint64_t> resolved_bits;  // only while some runs are resolved and some are not

  bool is_pending() const { return references == 0; }
  bool is_resolved(uint32_t index) const;
  bool says_the_same(const CommitObject& command) const;
};

// Nodes are stable: runs point to them. An object is made by its first run that an entry decides, and forgotten
// when its deletion is confirmed. Owned by one state; not thread-safe.
class ObjectTable {
 public:
  explicit ObjectTable(ChunkChanges& changes) : changes_(&changes) {}

  Object* find(ObjectId id);
  const Object* find(ObjectId id) const;
  // The object that `command` names, made if it is not known; a new one is pending from `now` on.
  Object& find_or_add(const CommitObject& command, DereferenceMoment now);
  // Its run `index` is decided and never will be again.
  void resolve(Object& object, uint32_t index);

  void add_reference(Object& object);
  // `is_readable`: fetches planned before may still read it.
  void remove_reference(Object& object, DereferenceMoment now, bool is_readable);

  // Forgets a pending object.
  void forget(Object& object);
  // From a snapshot, before its runs: false if the id is known.
  bool restore(Object object);
  void restore_reference(Object& object) { ++object.references; }
  // After all runs: false if an object has no reference and no moment when it lost the last, or both.
  bool finish_restore();

  using ById = std::map<ObjectId, Object>;
  using Pending = std::map<std::pair<LogPosition, ObjectId>, Object*>;
  const ById& by_id() const { return by_id_; }
  const Pending& pending() const { return pending_; }  // oldest first

 private:
  // Of an object that was touched.
  void make_pending(Object& object, DereferenceMoment now, bool needs_grace);
  // Before the object changes.
  void touch(const ObjectId& id);

  ChunkChanges* changes_;
  ById by_id_;
  Pending pending_;
};

ChunkKey chunk_of(const ObjectId& id);

}  // namespace varve::metadata
