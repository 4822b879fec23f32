#include "sim/metadata_log.h"

#include <algorithm>

namespace varve::sim {

using metadata::EntryKey;
using metadata::LogErrc;
using metadata::LogIdentity;
using metadata::LogPage;
using metadata::LogResult;
using runtime::Completion;
using runtime::Done;
using runtime::Task;

namespace {

constexpr Duration kLease = 20s;
constexpr Duration kKeepAliveEvery = 6s;
constexpr Duration kWatchMissedMax = 10s;

std::unexpected<metadata::LogError> stepped_back() {
  return fail(LogErrc::kCorrupt, "the log's revision fell: an older backup was restored");
}

}  // namespace

LogFaults LogFaults::all(uint32_t per_mille) {
  RequestFaults each{
      .request_lost = per_mille, .reply_lost = per_mille, .lands_late = per_mille, .slow = per_mille};
  return {.append = each,
          .read = each,
          .trim = each,
          .other = each,
          .lease_lost = per_mille / 4,
          .keep_alive_lost = per_mille * 4,
          .watch_missed = per_mille,
          .watch_broken = per_mille,
          .read_compacted = per_mille,
          .trim_without_deletes = 100,
          .lag_max = 300ms};
}

// What the host knows of a client.
struct SimMetadataLog::Hold {
  Process& process;
  std::optional<LogIdentity> identity;
  uint64_t highest_revision = 0;
  bool is_closed = false;

  bool can_send() const { return process.is_alive() && !is_closed; }
};

// Turns calls into requests: what a program links against.
class SimMetadataLog::Client final : public metadata::MetadataLog {
 public:
  Client(SimMetadataLog& log, Process& process) : log_(log), hold_(std::make_shared<Hold>(process)) {}
  ~Client() override { hold_->is_closed = true; }

  Task<LogResult<LogIdentity>> open(Uuid new_id) override {
    auto effect = [&log = log_, hold = hold_, new_id] { return log.apply_open(*hold, new_id); };
    auto identity = co_await ask<LogIdentity>("log.open", Kind::kOther, std::move(effect));
    if (identity) hold_->identity = *identity;
    co_return identity;
  }

  Task<LogResult<void>> begin_session(Nonce nonce) override {
    MonotonicTime now = log_.world_.now();
    auto effect = [&log = log_, hold = hold_, nonce, now] { return log.apply_begin(hold, nonce, now); };
    co_return co_await ask<void>("log.begin_session", Kind::kOther, std::move(effect));
  }

  Task<LogResult<void>> end_session(Nonce nonce) override {
    auto effect = [&log = log_, nonce]() -> LogResult<void> {
      log.sessions_.erase(nonce);
      return {};
    };
    co_return co_await ask<void>("log.end_session", Kind::kOther, std::move(effect));
  }

  Task<LogResult<std::vector<Nonce>>> sessions() override {
    auto effect = [&log = log_, hold = hold_] { return log.apply_sessions(*hold); };
    co_return co_await ask<std::vector<Nonce>>("log.sessions", Kind::kRead, std::move(effect));
  }

  Task<LogResult<LogPosition>> append(EntryKey key, LogPosition, Slice entry,
                                      metadata::EntryRoom room) override {
    CHECK(hold_->identity, "append before open");
    if (entry.size() > metadata::kMaxEntryBytes) co_return fail(LogErrc::kTooLarge, "entry above 512 KiB");
    // Copied, for it may arrive when the caller's bytes are long gone.
    auto effect = [&log = log_, hold = hold_, key, bytes = Slice::copy_of(entry.view()), room] {
      return log.apply_append(*hold, key, bytes, room);
    };
    co_return co_await ask<LogPosition>("log.append", Kind::kAppend, std::move(effect));
  }

  bool is_single_writer() const override { return false; }

  Task<LogResult<LogPage>> read(LogPosition after, size_t max_bytes) override {
    auto effect = [&log = log_, after, max_bytes] { return log.apply_read(after, max_bytes); };
    co_return co_await ask<LogPage>("log.read", Kind::kRead, std::move(effect));
  }

  Task<LogResult<LogPosition>> tail() override {
    auto effect = [&log = log_, hold = hold_] { return log.apply_tail(*hold); };
    co_return co_await ask<LogPosition>("log.tail", Kind::kRead, std::move(effect));
  }

  Task<void> wait_for_entries(LogPosition after, MonotonicTime deadline) override {
    Completion<Done> woken;
    log_.add_waiter(after, woken);
    co_await runtime::wait_until(woken, deadline, Done{});
  }

  Task<LogResult<void>> trim(LogPosition up_to) override {
    auto effect = [&log = log_, hold = hold_, up_to] { return log.apply_trim(*hold, up_to); };
    co_return co_await ask<void>("log.trim", Kind::kTrim, std::move(effect));
  }

  Task<void> close() override {
    hold_->is_closed = true;
    co_return;
  }

 private:
  enum class Kind : uint8_t { kAppend, kRead, kTrim, kOther };

  template <class T>
  Task<LogResult<T>> ask(std::string_view name, Kind kind, std::function<LogResult<T>()> effect) {
    const LogFaults& faults = log_.faults_;
    LogErrc lost = kind == Kind::kAppend ? LogErrc::kUnknown : LogErrc::kUnavailable;
    ServiceRequest<LogResult<T>> request{
        .fault_prefix = name,
        .host = hold_->process.node().host(),
        .faults = kind == Kind::kAppend ? faults.append
                  : kind == Kind::kRead ? faults.read
                  : kind == Kind::kTrim ? faults.trim
                                        : faults.other,
        .is_write = kind != Kind::kRead,
        .effect = std::move(effect),
        .no_answer = fail(lost, "no answer"),
        .throttled = fail(lost, "too many requests"),
    };
    Completion<LogResult<T>> reply;
    log_.submit(std::move(request), reply);
    LogResult<T> stopped = fail(lost, "stopped before an answer came");
    co_return co_await runtime::wait_until(reply, MonotonicTime::never(), std::move(stopped));
  }

  SimMetadataLog& log_;
  std::shared_ptr<Hold> hold_;
};

std::unique_ptr<metadata::MetadataLog> SimMetadataLog::client(Process& process) {
  return std::make_unique<Client>(*this, process);
}

bool SimMetadataLog::draw(uint32_t per_mille, std::string_view fault) {
  if (per_mille == 0 || !world_.random().chance(per_mille, 1000)) return false;
  world_.happened(fault);
  return true;
}

bool SimMetadataLog::sees_no_step_back(Hold& hold) const {
  if (revision_ < hold.highest_revision) return false;
  hold.highest_revision = revision_;
  return true;
}

LogResult<LogIdentity> SimMetadataLog::apply_open(Hold& hold, Uuid new_id) {
  if (!sees_no_step_back(hold)) return stepped_back();
  if (!identity_) identity_ = LogIdentity{new_id, LogGeneration(1)};
  return *identity_;
}

LogResult<void> SimMetadataLog::apply_begin(const std::shared_ptr<Hold>& hold, Nonce nonce,
                                            MonotonicTime asked_at) {
  if (!sees_no_step_back(*hold)) return stepped_back();
  // The lease was granted when the client asked; a request that comes when it has run out makes no session.
  MonotonicTime lease_end = hold->can_send() ? world_.now() + kLease : asked_at + kLease;
  if (asked_at + kLease <= world_.now()) return fail(LogErrc::kUnavailable, "the lease has run out");
  ++revision_;
  bool is_new = !sessions_.contains(nonce);
  sessions_.insert_or_assign(nonce, Session{hold, lease_end});
  if (is_new) {
    schedule_keep_alive(nonce);
    schedule_expiry(nonce, lease_end);
  }
  return {};
}

void SimMetadataLog::schedule_keep_alive(Nonce nonce) {
  world_.after(kKeepAliveEvery, [this, nonce] { keep_alive(nonce); });
}

void SimMetadataLog::keep_alive(Nonce nonce) {
  auto found = sessions_.find(nonce);
  if (found == sessions_.end() || !found->second.holder->can_send()) return;
  if (draw(faults_.lease_lost, "log.session.lease_lost")) {
    sessions_.erase(found);
    return;
  }
  Process& process = found->second.holder->process;
  bool is_sent = process.is_running() && can_reach(process.node().host());
  if (is_sent && !draw(faults_.keep_alive_lost, "log.session.keep_alive_lost")) {
    found->second.lease_end = world_.now() + kLease;
  }
  schedule_keep_alive(nonce);
}

void SimMetadataLog::schedule_expiry(Nonce nonce, MonotonicTime when) {
  world_.at(when, [this, nonce] {
    auto found = sessions_.find(nonce);
    if (found == sessions_.end()) return;
    if (found->second.lease_end > world_.now()) {
      schedule_expiry(nonce, found->second.lease_end);
    } else {
      expire_session(nonce);
    }
  });
}

void SimMetadataLog::expire_session(Nonce nonce) {
  auto found = sessions_.find(nonce);
  if (found == sessions_.end()) return;
  Process& process = found->second.holder->process;
  world_.happened(process.is_alive() ? "log.session.expired_alive" : "log.session.expired_dead");
  world_.trace("log: session {} of {} expires", nonce, process.node().host());
  sessions_.erase(found);
  ++revision_;
}

std::vector<Nonce> SimMetadataLog::sessions() const {
  std::vector<Nonce> nonces;
  for (const auto& [nonce, session] : sessions_) nonces.push_back(nonce);
  return nonces;
}

LogResult<std::vector<Nonce>> SimMetadataLog::apply_sessions(Hold& hold) {
  if (!sees_no_step_back(hold)) return stepped_back();
  return sessions();
}

LogResult<LogPosition> SimMetadataLog::apply_append(Hold& hold, const EntryKey& key, const Slice& entry,
                                                    metadata::EntryRoom room) {
  if (!sees_no_step_back(hold)) return stepped_back();
  if (hold.identity != identity_) return fail(LogErrc::kWrongLog, "another generation of the log");
  if (auto found = keys_.find(key); found != keys_.end()) {
    world_.happened("log.append.already_there");
    return found->second;
  }
  const std::string& host = hold.process.node().host();
  if (!sessions_.contains(key.nonce)) {
    world_.happened("log.append.session_gone");
    world_.trace("log: {} appends {}/{}, but its session is gone", host, key.nonce, key.sequence);
    return fail(LogErrc::kSessionGone, "the session has ended");
  }
  if (is_full_ && room == metadata::EntryRoom::kNormal) {
    world_.happened("log.append.full");
    return fail(LogErrc::kFull, "quota used up");
  }
  // Revisions between belong to sessions, marks and other writers.
  revision_ += 1 + world_.random().below(3);
  LogPosition position(revision_);
  records_.push_back(
      {.position = position, .key = key, .bytes = entry, .host = host, .committed_at = world_.now()});
  keys_.emplace(key, position);
  hold.highest_revision = revision_;
  world_.trace("log: {} appends {}/{} at {}, {} bytes", host, key.nonce, key.sequence, position,
               entry.size());
  wake_waiters();
  return position;
}

MonotonicTime SimMetadataLog::draw_view() {
  Duration lag(world_.random().between(0, faults_.lag_max.count()));
  return MonotonicTime(std::max(Duration{0}, world_.now().since_zero() - lag));
}

LogResult<LogPage> SimMetadataLog::apply_read(LogPosition after, size_t max_bytes) {
  if (draw(faults_.read_compacted, "log.read.compacted")) {
    return fail(LogErrc::kUnavailable, "the revision has been compacted");
  }
  MonotonicTime view = draw_view();
  LogPage page;
  for (const Mark& mark : marks_) {
    if (mark.raised_at <= view) page.trimmed = mark.up_to;
  }
  // Both ways of telling are in the contract; a reader must know both.
  if (page.trimmed > after && world_.random().chance(1, 2)) return fail(LogErrc::kTrimmed, "trimmed");
  auto at = std::ranges::upper_bound(records_, after, {}, &Record::position);
  size_t bytes = 0;
  for (; at != records_.end() && at->committed_at <= view; ++at) {
    if (at->deleted_at <= view) continue;
    bytes += at->bytes.size();
    if (!page.entries.empty() && bytes > max_bytes) break;
    page.entries.push_back({at->position, at->bytes});
  }
  if (page.entries.empty() && after < tail()) world_.happened("log.read.stale");
  return page;
}

LogResult<LogPosition> SimMetadataLog::apply_tail(Hold& hold) {
  if (!sees_no_step_back(hold)) return stepped_back();
  if (hold.identity != identity_) return fail(LogErrc::kWrongLog, "another generation of the log");
  return tail();
}

LogResult<void> SimMetadataLog::apply_trim(Hold& hold, LogPosition up_to) {
  if (!sees_no_step_back(hold)) return stepped_back();
  if (hold.identity != identity_) return fail(LogErrc::kWrongLog, "another generation of the log");
  if (up_to > trim_mark()) {
    marks_.push_back({world_.now(), up_to});
    world_.trace("log: {} trims up to {}", hold.process.node().host(), up_to);
  }
  if (!draw(faults_.trim_without_deletes, "log.trim.without_deletes")) {
    world_.after(times_.one_way.draw(world_.random()), [this, up_to] { delete_up_to(up_to); });
  }
  return {};
}

void SimMetadataLog::delete_up_to(LogPosition up_to) {
  for (Record& record : records_) {
    if (record.position > up_to) break;
    if (record.deleted_at != MonotonicTime::never()) continue;
    record.deleted_at = world_.now();
    keys_.erase(record.key);
  }
}

void SimMetadataLog::add_waiter(LogPosition after, const Completion<Done>& woken) {
  auto wake_after = [&](Duration delay) { world_.after(delay, [woken] { woken.set(Done{}); }); };
  Duration soon = times_.one_way.draw(world_.random());
  if (draw(faults_.watch_missed, "log.watch.missed")) {
    wake_after(Duration(world_.random().between(0, kWatchMissedMax.count())));
  } else if (tail() > after || draw(faults_.watch_broken, "log.watch.broken")) {
    wake_after(soon);
  } else {
    waiters_.push_back({after, woken});
  }
}

void SimMetadataLog::wake_waiters() {
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    if (at->after >= tail()) {
      ++at;
      continue;
    }
    Duration soon = times_.one_way.draw(world_.random());
    world_.after(soon + Duration(world_.random().between(0, faults_.lag_max.count())),
                 [woken = at->woken] { woken.set(Done{}); });
    at = waiters_.erase(at);
  }
}

void SimMetadataLog::roll_back(LogPosition to) {
  auto cut = std::ranges::upper_bound(records_, to, {}, &Record::position);
  if (cut == records_.end()) return;
  world_.happened("log.rolled_back");
  world_.trace("log: rolled back to {}", to);
  MonotonicTime cut_at = cut->committed_at;
  records_.erase(cut, records_.end());
  std::erase_if(marks_, [&](const Mark& mark) { return mark.raised_at >= cut_at; });
  keys_.clear();
  for (Record& record : records_) {
    if (record.deleted_at >= cut_at) record.deleted_at = MonotonicTime::never();
    if (record.deleted_at == MonotonicTime::never()) keys_.emplace(record.key, record.position);
  }
  revision_ = to.value();
}

void SimMetadataLog::raise_generation() {
  CHECK(identity_, "no log yet");
  ++identity_->generation;
  world_.happened("log.generation_raised");
}

}  // namespace varve::sim
