// MetadataLog: the totally ordered log that holds every fact. One interface over its hosts: SQLite for the broker of
// one process, and the simulator's log, which many brokers share as they later will share one in etcd. A host orders
// and keeps bytes; what they mean is metadata/state's business.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "runtime/task.h"

namespace varve::metadata {

enum class LogErrc : uint8_t {
  kUnknown,      // no answer: the entry may or may not be there; its fate is told by reading only
  kUnavailable,  // a read, sync or session call got no answer; try again
  kSessionGone,  // this nonce has no session any more: nothing was appended
  kWrongLog,     // another identity or generation than at open: stop serving (invariant 6)
  kTailMoved,    // single-process hosts: the tail is not what the caller has applied: another process wrote
  kFull,         // out of space or over quota: nothing was appended
  kTrimmed,      // read below the trim mark: load a snapshot
  kLocked,       // open: another broker has this log
  kCorrupt,      // the host's own storage is damaged, or its position fell
  kTooLarge,     // entry above 512 KiB
  kSyncFailed,  // the host could not sync its storage: nothing may be assumed of it any more, not even by reading
  // it again. Every later call gives the same; the process must end (invariant 10)
};
using LogError = ErrorOf<LogErrc>;
template <class T>
using LogResult = Result<T, LogError>;

// Who a log is. The id is drawn when the log is made; the generation rises when it is restored from the bucket.
struct LogIdentity {
  Uuid id;
  LogGeneration generation{1};

  bool operator==(const LogIdentity&) const = default;
};

struct LogEntry {
  LogPosition position;
  Slice bytes;
};

struct LogPage {
  std::vector<LogEntry> entries;  // strictly rising positions
  LogPosition trimmed;            // entries at or below it may be missing: a mark above the reader's position
                                  // means that it must load a snapshot
};

// Names an entry for ever: entry (nonce, sequence) is appended at most once.
struct EntryKey {
  Nonce nonce;
  EntrySequence sequence;

  auto operator<=>(const EntryKey&) const = default;
};

// How far an entry may use up the host's space.
enum class EntryRoom : uint8_t {
  kNormal,
  // For entries that free room (fence, log start, collection): they go on in the host's reserve, when normal ones
  // get kFull already.
  kReserve,
};

// Life: made and opened before the metadata client, closed after it. Calls may come from any executor; a call
// runs on the calling task's executor and blocks none.
class MetadataLog {
 public:
  virtual ~MetadataLog() = default;

  // Opens the log, making it with `new_id` if there is none. Durable before it returns.
  virtual runtime::Task<LogResult<LogIdentity>> open(Uuid new_id) = 0;

  // Makes the session of `nonce`. It ends with end_session(), when its owner shows no life for the session time
  // (20 s), or with the process where the host lives inside it.
  virtual runtime::Task<LogResult<void>> begin_session(Nonce nonce) = 0;
  virtual runtime::Task<LogResult<void>> end_session(Nonce nonce) = 0;
  // Nonces that have a session now (linearizable).
  virtual runtime::Task<LogResult<std::vector<Nonce>>> sessions() = 0;

  // Appends `entry` under `key`, only if the key's nonce has a session and the log is the one opened.
  // If the key is there already, from an earlier try, its position is returned and nothing is added.
  // A position returned is durable. `applied` is the caller's applied position: hosts with a single writer
  // refuse with kTailMoved if the tail is another.
  virtual runtime::Task<LogResult<LogPosition>> append(EntryKey key, LogPosition applied, Slice entry,
                                                       EntryRoom room = EntryRoom::kNormal) = 0;

  // True if a successful append() means that the entry directly follows `applied`: the caller may then apply it
  // without reading it back.
  virtual bool is_single_writer() const = 0;

  // Entries after `after`, at most about `max_bytes` but at least one if there is any.
  virtual runtime::Task<LogResult<LogPage>> read(LogPosition after, size_t max_bytes) = 0;
  // The position of the newest entry, linearizable: everything acknowledged before the call is at or below it.
  virtual runtime::Task<LogResult<LogPosition>> tail() = 0;
  // Returns when an entry after `after` may be there, at `deadline`, or when the task is asked to stop.
  virtual runtime::Task<void> wait_for_entries(LogPosition after, MonotonicTime deadline) = 0;

  // Raises the trim mark to `up_to` durably, then deletes entries at or below it. The caller has a verified
  // snapshot at or above it (invariant 8's "trim above the snapshot" is planted against this).
  virtual runtime::Task<LogResult<void>> trim(LogPosition up_to) = 0;

  virtual runtime::Task<void> close() = 0;
};

// An entry's largest size, in bytes.
inline constexpr size_t kMaxEntryBytes = 512 * 1024;

}  // namespace varve::metadata
