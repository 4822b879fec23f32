// ObjectStore: where records live. One interface over a bucket, a local folder, memory and the simulator's store;
// retrying and metering are decorators over it, never flags inside one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/task.h"

namespace varve::object_store {

enum class StoreErrc : uint8_t {
  kNotFound,            // get, head: no such key
  kPreconditionFailed,  // put_if_absent: the key is there (412)
  kConflict,            // put_if_absent: a rival write is under way, nothing decided (409); try again
  kInvalidRange,        // get: the range starts at or past the end (416)
  kThrottled,           // 503 SlowDown, 429: nothing happened; back off
  kTimeout,             // no answer in time: a put or delete may or may not take effect, now or minutes later
  kUnavailable,         // connection refused or reset, 5xx: as kTimeout, the effect is unknown
  kNoSpace,             // the store is full: nothing was stored
  kDenied,              // credentials, clock skew, read-only folder
  kCorrupt,             // the answer is short or fails its checksum
  kBadRequest,          // refused for good: a bug or a wrong setting
};
using StoreError = ErrorOf<StoreErrc>;
template <class T>
using StoreResult = Result<T, StoreError>;

// Whether the same call may succeed later without anyone acting.
bool is_retriable(StoreErrc code);
// Whether a write that ended so may still have taken, or take, effect.
bool is_outcome_unknown(StoreErrc code);

// [offset, offset + size) of an object; size 0 means to the end.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct ObjectInfo {
  std::string key;
  uint64_t size = 0;
};

struct ListPage {
  std::vector<ObjectInfo> objects;  // in order of key (bytes)
  bool is_truncated = false;        // more keys follow; ask again with start_after = the last key
};

// Keys are non-empty UTF-8, at most 1,024 bytes, parts divided by '/', no part empty, "." or "..".
// Life: made before the broker, destroyed after every task that uses it. Any executor may call; a call runs on
// the calling task's executor and ends early, with kTimeout, when the task's context is asked to stop.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // The body is the concatenation of the slices; it is referenced, not copied, until the call returns.
  // Success means durable: it survives a power cut of this machine.
  virtual runtime::Task<StoreResult<void>> put(std::string key, std::vector<Slice> body) = 0;
  // As put, but only if the key is absent; of rivals exactly one succeeds.
  virtual runtime::Task<StoreResult<void>> put_if_absent(std::string key, std::vector<Slice> body) = 0;
  // All of `range`, or up to the end of the object if that comes first.
  virtual runtime::Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) = 0;
  virtual runtime::Task<StoreResult<ObjectInfo>> head(std::string key) = 0;
  // Keys that start with `prefix` and come after `start_after`, at most `max_keys` (1 to 1,000).
  virtual runtime::Task<StoreResult<ListPage>> list(std::string prefix, std::string start_after,
                                                    size_t max_keys) = 0;
  // Deletes up to 1,000 keys; absent ones count as deleted. Gives the keys that could not be deleted.
  virtual runtime::Task<StoreResult<std::vector<std::string>>> delete_many(std::vector<std::string> keys) = 0;
};

// Why a key cannot be used, or nullopt.
std::optional<std::string> key_problem(std::string_view key);

}  // namespace varve::object_store
