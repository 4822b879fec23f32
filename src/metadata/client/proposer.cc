#include "metadata/client/proposer.h"

#include <algorithm>
#include <iterator>

namespace varve::metadata {
namespace {

// Commands that free room in the log or the store go on when it is full. All duties do, or lead to one that does: a
// snapshot begins with a beat.
bool frees_room(const Command& command) {
  return is_duty(command) || std::holds_alternative<SetLogStart>(command) ||
         std::holds_alternative<DeleteTopic>(command);
}

bool is_offset_commit(const Command& command) { return std::holds_alternative<CommitOffsets>(command); }

}  // namespace

void Proposer::propose(std::vector<Command> commands, runtime::Completion<ProposeResult> completion) {
  if (is_stopped_) {
    completion.set(fail(ProposeErrc::kStopping, "this broker is stopping"));
    return;
  }
  size_t bytes = 0;
  for (const Command& command : commands) bytes += encoded_size_bound(command);
  if (bytes + kEntryFrameBytesMax > kMaxEntryBytes) {
    completion.set(
        fail(ProposeErrc::kRejected, fmt::format("{} bytes of commands do not fit into one entry", bytes)));
    return;
  }
  size_t waiting_max = proposals_waiting_max_;
  if (std::ranges::all_of(commands, is_duty)) waiting_max *= 2;
  if (queue_.size() >= waiting_max) {
    completion.set(
        fail(ProposeErrc::kFull, fmt::format("{} proposals wait for the log already", queue_.size())));
    return;
  }
  queue_.push_back(Proposal{std::move(commands), std::move(completion), bytes});
  wake();
}

void Proposer::registered(Nonce nonce, Incarnation incarnation) {
  requeue_in_flight();
  nonce_ = nonce;
  incarnation_ = incarnation;
  last_sequence_ = EntrySequence(1);  // the registration itself
  is_registered_ = true;
  wake();
}

void Proposer::fenced() { is_registered_ = false; }

std::optional<Proposer::Outgoing> Proposer::outgoing(FeatureLevel level, WallTime now) {
  if (!is_registered_ || is_stopped_) return std::nullopt;
  if (in_flight_) return Outgoing{in_flight_->key, in_flight_->bytes, in_flight_->room};
  if (queue_.empty()) return std::nullopt;

  InFlight next;
  Entry entry;
  entry.nonce = nonce_;
  entry.incarnation = incarnation_;
  entry.sequence = last_sequence_.plus(1);
  entry.level = level;
  entry.time = now;
  size_t bytes = kEntryFrameBytesMax;
  next.room = EntryRoom::kReserve;
  while (!queue_.empty() && bytes + queue_.front().bytes <= kMaxEntryBytes) {
    bool is_freeing = std::ranges::all_of(queue_.front().commands, frees_room);
    if (!is_freeing && is_full_ && !next.proposals.empty() && next.room == EntryRoom::kReserve) break;
    if (!is_freeing) next.room = EntryRoom::kNormal;
    bytes += queue_.front().bytes;
    next.proposals.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  for (const Proposal& proposal : next.proposals) {
    entry.commands.insert(entry.commands.end(), proposal.commands.begin(), proposal.commands.end());
  }
  next.key = EntryKey{nonce_, entry.sequence};
  next.bytes = Slice::take(encode_entry(entry));
  last_sequence_ = entry.sequence;
  in_flight_ = std::move(next);
  return Outgoing{in_flight_->key, in_flight_->bytes, in_flight_->room};
}

void Proposer::refused_as_full(const EntryKey& key, const std::string& message) {
  if (!in_flight_ || in_flight_->key != key) return;
  if (in_flight_->may_have_landed) {
    // Nothing can follow it before its fate is known, not even what frees room: so it may use the reserve.
    in_flight_->room = EntryRoom::kReserve;
    return;
  }
  is_full_ = true;
  InFlight refused = std::move(*in_flight_);
  in_flight_.reset();
  // It is certain that nothing was appended, so its sequence number is free again.
  last_sequence_ = EntrySequence(last_sequence_.value() - 1);
  for (auto proposal = refused.proposals.rbegin(); proposal != refused.proposals.rend(); ++proposal) {
    if (std::ranges::all_of(proposal->commands, frees_room)) {
      queue_.push_front(std::move(*proposal));
    } else {
      proposal->completion.set(fail(ProposeErrc::kFull, message));
    }
  }
  wake();
}

void Proposer::outcome_unknown(const EntryKey& key) {
  if (!in_flight_ || in_flight_->key != key) return;
  if (bugs_.lost_reply_read_as_failure) {
    requeue_in_flight();
    wake();
    return;
  }
  in_flight_->may_have_landed = true;
}

void Proposer::appended(const EntryKey& key) {
  if (in_flight_ && in_flight_->key == key) in_flight_->may_have_landed = true;
}

void Proposer::applied(const ApplyOutcome& outcome) {
  if (!in_flight_ || outcome.nonce != in_flight_->key.nonce || outcome.sequence != in_flight_->key.sequence)
    return;
  // A second copy of an entry cannot be ours to answer: the first one resolved the promises.
  if (outcome.verdict == EntryVerdict::kRepeated) return;
  InFlight landed = std::move(*in_flight_);
  in_flight_.reset();
  if (landed.room == EntryRoom::kNormal) is_full_ = false;
  if (outcome.verdict != EntryVerdict::kApplied) {
    for (Proposal& proposal : landed.proposals) {
      proposal.completion.set(
          fail(ProposeErrc::kRejected,
               fmt::format("the entry was refused in apply (cause {})", static_cast<int>(outcome.verdict))));
    }
    wake();
    return;
  }
  auto first = outcome.commands.begin();
  for (Proposal& proposal : landed.proposals) {
    auto last = std::next(first, static_cast<ptrdiff_t>(proposal.commands.size()));
    proposal.completion.set(std::vector<CommandOutcome>(first, last));
    first = last;
  }
  wake();
}

void Proposer::reloaded(std::optional<EntrySequence> last_sequence) {
  if (!in_flight_) return;
  bool has_landed = last_sequence && in_flight_->key.sequence <= *last_sequence;
  if (!has_landed) return;
  for (Proposal& proposal : in_flight_->proposals) {
    proposal.completion.set(
        fail(ProposeErrc::kUnknown, "the entry was applied before the snapshot that this broker reloaded"));
  }
  in_flight_.reset();
  wake();
}

void Proposer::stop() {
  is_stopped_ = true;
  if (in_flight_) {
    for (Proposal& proposal : in_flight_->proposals) {
      proposal.completion.set(
          fail(ProposeErrc::kUnknown, "this broker stopped before the entry's fate was known"));
    }
    in_flight_.reset();
  }
  for (Proposal& proposal : queue_) {
    proposal.completion.set(fail(ProposeErrc::kStopping, "this broker is stopping"));
  }
  queue_.clear();
  wake();
}

runtime::Completion<runtime::Done> Proposer::work() {
  waiter_.emplace();
  if (is_stopped_ || (is_registered_ && (!queue_.empty() || in_flight_))) waiter_->set(runtime::Done{});
  return *waiter_;
}

bool Proposer::may_wait() const {
  if (is_stopped_ || !is_registered_ || in_flight_) return false;
  size_t bytes = kEntryFrameBytesMax;
  for (const Proposal& proposal : queue_) {
    if (!std::ranges::all_of(proposal.commands, is_offset_commit)) return false;
    bytes += proposal.bytes;
  }
  return bytes <= kMaxEntryBytes;
}

runtime::Completion<runtime::Done> Proposer::work_that_cannot_wait() {
  impatient_waiter_.emplace();
  if (!may_wait()) impatient_waiter_->set(runtime::Done{});
  return *impatient_waiter_;
}

void Proposer::wake() {
  if (waiter_) waiter_->set(runtime::Done{});
  if (impatient_waiter_ && !may_wait()) {
    impatient_waiter_->set(runtime::Done{});
    impatient_waiter_.reset();
  }
}

void Proposer::requeue_in_flight() {
  if (!in_flight_) return;
  for (auto proposal = in_flight_->proposals.rbegin(); proposal != in_flight_->proposals.rend(); ++proposal) {
    queue_.push_front(std::move(*proposal));
  }
  in_flight_.reset();
}

}  // namespace varve::metadata
