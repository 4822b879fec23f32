// SimMetadataLog: the metadata log of a simulated world, with etcd's semantics.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "metadata/log/metadata_log.h"
#include "sim/node.h"
#include "sim/service.h"

namespace varve::sim {

// Per mille of the calls that meet it, beside what RequestFaults has. All zero: no lag, nothing lost.
struct LogFaults {
  RequestFaults append{};  // what is lost or late is kUnknown to the caller
  RequestFaults read{};
  RequestFaults trim{};               // no answer is kUnavailable
  RequestFaults other{};              // open, begin_session, end_session: as trim
  uint32_t lease_lost = 0;            // of the keep-alives (one in 6 s): the session is gone at once
  uint32_t keep_alive_lost = 0;       // of the keep-alives: as if it had not been sent
  uint32_t watch_missed = 0;          // of the waits: not woken before the deadline
  uint32_t watch_broken = 0;          // of the waits: ends at once
  uint32_t read_compacted = 0;        // of the reads: fails once, as after somebody else's compaction
  uint32_t trim_without_deletes = 0;  // of the trims: the mark rises, nothing is deleted
  Duration lag_max{0};                // reads and waits see the log as it was up to so long ago

  static LogFaults all(uint32_t per_mille);
};

// One log shared by all nodes; each process has its own client. Appends, tail() and sessions() are linearizable;
// read() and wait_for_entries() may be stale. Positions are revisions, so they rise with gaps.
// Life: made after the world, destroyed before it and after all clients' tasks.
class SimMetadataLog : public Service {
 public:
  // As committed; `deleted_at` is the time of the trim that removed it.
  struct Record {
    LogPosition position;
    metadata::EntryKey key;
    Slice bytes;
    std::string host;
    MonotonicTime committed_at;
    MonotonicTime deleted_at = MonotonicTime::never();
  };

  explicit SimMetadataLog(World& world, ServiceTimes times = default_times()) : Service(world, times) {}
  // A request may arrive up to 30 s after its caller has given up.
  static ServiceTimes default_times() { return {.slow_max = 5s, .timeout_max = 5s, .late_max = 30s}; }

  // The hold of a process on the log; its sessions are kept alive while the process runs.
  std::unique_ptr<metadata::MetadataLog> client(Process& process);

  void set_faults(const LogFaults& faults) { faults_ = faults; }
  // Appends are refused with kFull, but for entries that may use the reserve: the host's quota is used up.
  void set_full(bool is_full) override { is_full_ = is_full; }

  // For checkers: everything ever committed and not rolled back, in order.
  const std::vector<Record>& records() const { return records_; }
  LogPosition tail() const { return records_.empty() ? LogPosition() : records_.back().position; }
  LogPosition trim_mark() const { return marks_.empty() ? LogPosition() : marks_.back().up_to; }
  std::vector<Nonce> sessions() const;

  // An older backup is restored: entries after `to` never were, and the next ones take their positions.
  void roll_back(LogPosition to);
  // The log was restored from the bucket: clients of the generation before must not append.
  void raise_generation();
  // Ends a session as an operator or a long partition would.
  void expire_session(Nonce nonce);

 private:
  class Client;
  struct Hold;
  struct Session {
    std::shared_ptr<Hold> holder;
    MonotonicTime lease_end;
  };
  struct Mark {
    MonotonicTime raised_at;
    LogPosition up_to;
  };
  struct Waiter {
    LogPosition after;
    runtime::Completion<runtime::Done> woken;
  };

  using Position = metadata::LogResult<LogPosition>;

  metadata::LogResult<metadata::LogIdentity> apply_open(Hold& hold, Uuid new_id);
  metadata::LogResult<void> apply_begin(const std::shared_ptr<Hold>& hold, Nonce nonce,
                                        MonotonicTime asked_at);
  Position apply_append(Hold& hold, const metadata::EntryKey& key, const Slice& entry,
                        metadata::EntryRoom room);
  metadata::LogResult<metadata::LogPage> apply_read(LogPosition after, size_t max_bytes);
  metadata::LogResult<std::vector<Nonce>> apply_sessions(Hold& hold);
  metadata::LogResult<void> apply_trim(Hold& hold, LogPosition up_to);
  Position apply_tail(Hold& hold);
  void delete_up_to(LogPosition up_to);
  void add_waiter(LogPosition after, const runtime::Completion<runtime::Done>& woken);
  void wake_waiters();

  void schedule_keep_alive(Nonce nonce);
  void keep_alive(Nonce nonce);
  void schedule_expiry(Nonce nonce, MonotonicTime when);

  // False if the host's revision is below one that this client saw before.
  bool sees_no_step_back(Hold& hold) const;
  // The moment up to which a stale reader sees.
  MonotonicTime draw_view();
  bool draw(uint32_t per_mille, std::string_view fault);

  LogFaults faults_;
  bool is_full_ = false;
  std::optional<metadata::LogIdentity> identity_;
  uint64_t revision_ = 0;
  std::vector<Record> records_;
  std::map<metadata::EntryKey, LogPosition> keys_;  // of entries not deleted
  std::vector<Mark> marks_;
  std::map<Nonce, Session> sessions_;
  std::list<Waiter> waiters_;
};

}  // namespace varve::sim
