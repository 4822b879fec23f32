// The comparison of states: beats, the hashes they name, and the snapshots that are cut where every broker notes its
// hash.
#include "metadata/client/client_core.h"

namespace varve::metadata {
namespace {

// Enough for every broker's beats of some minutes.
constexpr size_t kBeatHashesKept = 256;
// Of asks without an answer; each comes with a snapshot that a broker is about to take.
constexpr size_t kAskedKept = 64;
// What a cut encodes before others have their turn on the core: about a millisecond.
constexpr size_t kCutStepBytes = 256 * 1024;

}  // namespace

std::vector<LogPosition> retained_positions(const State& state) {
  std::vector<LogPosition> positions;
  for (const RetainedSnapshot& snapshot : state.snapshots()) positions.push_back(snapshot.position);
  return positions;
}

void ClientCore::note_beat(LogPosition position, const ApplyOutcome& outcome) {
  if (!outcome.has_beat) return;
  Incarnation sender = *state_.incarnation_of(outcome.nonce);
  const BrokerIncarnation& broker = state_.incarnations().at(sender);
  bool is_ask = broker.beat_position == LogPosition();
  bool is_own = broker.broker == broker_;
  if (!is_own && !is_ask && broker.beat_position == snapshot_at_) answers_.emplace(sender, broker.beat_hash);
  compare_hashes();
  begin_cut_at(position, is_ask && !is_own, is_ask && sender == incarnation());
}

// While a large state is being hashed or cut for an earlier beat, this one may go without: it is one of many. One that
// asks must not.
void ClientCore::begin_cut_at(LogPosition position, bool is_asked, bool is_own_ask) {
  bool is_for_snapshot = is_own_ask && snapshot_wanted_.has_value();
  if (state_.has_cut()) {
    if (state_.step_cut(kCutStepBytes)) {
      end_cut();
    } else if (is_snapshot_cut_ || !(is_asked || is_for_snapshot)) {
      return;
    } else {
      state_.drop_cut();
    }
  }
  if (is_asked) asked_at_.push_back(position);
  if (asked_at_.size() > kAskedKept) asked_at_.pop_front();
  state_.begin_cut(is_for_snapshot ? CutKind::kChunks : CutKind::kHash);
  is_snapshot_cut_ = is_for_snapshot;
  if (is_for_snapshot) {
    snapshot_at_ = position;
    answers_.clear();
  }
  if (state_.step_cut(kCutStepBytes)) {
    end_cut();
  } else if (cut_waiter_) {
    cut_waiter_->set(runtime::Done{});
  }
}

runtime::Completion<runtime::Done> ClientCore::cut_wanted() {
  cut_waiter_.emplace();
  if (state_.has_cut()) cut_waiter_->set(runtime::Done{});
  return *cut_waiter_;
}

bool ClientCore::cut_work() {
  if (!state_.has_cut()) return false;
  if (!state_.step_cut(kCutStepBytes)) return true;
  end_cut();
  return false;
}

void ClientCore::end_cut() {
  StateCut cut = state_.end_cut();
  hash_at_beat_[cut.position] = cut.hash;
  while (hash_at_beat_.size() > kBeatHashesKept) hash_at_beat_.erase(hash_at_beat_.begin());
  if (std::exchange(is_snapshot_cut_, false) && snapshot_wanted_) {
    auto wanted = *std::exchange(snapshot_wanted_, std::nullopt);
    wanted.set(SnapshotCut{std::move(cut), retained_positions(state_)});
  }
  // Others may have named the position before this broker knew its hash.
  compare_hashes();
}

runtime::Completion<std::optional<SnapshotCut>> ClientCore::cut_at_next_beat() {
  cancel_snapshot();
  snapshot_wanted_.emplace();
  return *snapshot_wanted_;
}

void ClientCore::cancel_snapshot() {
  if (snapshot_wanted_) snapshot_wanted_->set(std::nullopt);
  snapshot_wanted_.reset();
  if (is_snapshot_cut_ && state_.has_cut()) state_.drop_cut();
  is_snapshot_cut_ = false;
}

Agreement ClientCore::agreement(LogPosition position, bool is_late) const {
  auto own = hash_at_beat_.find(position);
  if (own == hash_at_beat_.end() || position != snapshot_at_ || is_diverged_) return Agreement::kDisagreed;
  size_t awaited = 0;
  for (const auto& [id, incarnation] : state_.live_brokers()) {
    // Who registered later has replayed what the log says, and was not asked.
    if (id == broker_ || incarnation.value() > position.value()) continue;
    auto answer = answers_.find(incarnation);
    if (answer == answers_.end()) {
      ++awaited;
    } else if (answer->second != own->second) {
      return Agreement::kDisagreed;
    }
  }
  if (awaited == 0) return Agreement::kAgreed;
  // A broker may keep its session and say nothing, for hours. It must not keep the others from trimming their log, so
  // half of the brokers are enough then, as in compare_hashes().
  return is_late && 2 * awaited <= state_.live_brokers().size() ? Agreement::kAgreed : Agreement::kAwaited;
}

void ClientCore::check_snapshot(const ApplyOutcome& outcome) {
  const RetainedSnapshot& taken = state_.snapshots().back();
  auto own = hash_at_beat_.find(taken.position);
  if (own == hash_at_beat_.end() || own->second == taken.state_hash) return;
  ++mismatches_;
  doubted_[taken.position] = *state_.incarnation_of(outcome.nonce);
  compare_hashes();
}

bool ClientCore::is_snapshot_overdue() const {
  return !is_diverged_ && !state_.snapshots().empty() &&
         doubted_.contains(state_.snapshots().back().position);
}

void ClientCore::compare_hashes() {
  std::erase_if(doubted_, [this](const auto& doubted) {
    return state_.snapshots().empty() || doubted.first < state_.snapshots().front().position;
  });
  std::set<Incarnation> disagreeing;
  for (const auto& [position, author] : doubted_) disagreeing.insert(author);
  size_t live = state_.live_brokers().size();
  size_t disagree = 0;
  for (const auto& [id, incarnation] : state_.live_brokers()) {
    const BrokerIncarnation& broker = state_.incarnations().at(incarnation);
    // Each names a position of its own choice.
    auto own = hash_at_beat_.find(broker.beat_position);
    bool differs = own != hash_at_beat_.end() && own->second != broker.beat_hash;
    disagree += id != broker_ && (differs || disagreeing.contains(incarnation));
  }
  if (disagree > 0 && !is_diverged_) ++mismatches_;
  // Over again once those that disagreed have gone.
  is_diverged_ = disagree > 0;
  // Those that are not known to disagree may agree: only a half against this broker makes it the minority.
  if (is_diverged_ && 2 * disagree >= live) {
    fatal_.set(FatalError{fmt::format(
        "this broker's state is not that of {} of the {} live brokers. It stops, to begin anew from a "
        "snapshot that the log records",
        disagree, live)});
  }
}

std::optional<Beat> ClientCore::beat_due(MonotonicTime now, Duration beat_after) {
  for (auto asked = asked_at_.begin(); asked != asked_at_.end(); ++asked) {
    auto own = hash_at_beat_.find(*asked);
    if (own == hash_at_beat_.end()) continue;
    last_sent_ = now;
    asked_at_.erase(asked);
    return Beat{own->first, own->second};
  }
  if (now - last_sent_ < beat_after || state_.live_brokers().size() < 2) return std::nullopt;
  last_sent_ = now;
  // Of the last beat's position, where others know their hash too. The first one says nothing, and asks for theirs.
  if (hash_at_beat_.empty()) return Beat{};
  return Beat{hash_at_beat_.rbegin()->first, hash_at_beat_.rbegin()->second};
}

}  // namespace varve::metadata
