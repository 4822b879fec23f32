// The comparison of states: beats, the hashes they name, and the snapshots that are cut where every broker notes its
// hash.
#include <algorithm>

#include "metadata/client/client_core.h"

namespace varve::metadata {
namespace {

// Enough for every broker's beats of some minutes.
constexpr size_t kBeatHashesKept = 256;
// What a cut encodes before others have their turn on the core: about a millisecond.
constexpr size_t kCutStepBytes = 256 * 1024;

}  // namespace

std::vector<LogPosition> retained_positions(const State& state) {
  std::vector<LogPosition> positions;
  for (const RetainedSnapshot& snapshot : state.snapshots()) positions.push_back(snapshot.position);
  return positions;
}

void ClientCore::note_beats(LogPosition position, const ApplyOutcome& outcome) {
  if (outcome.beats.empty()) return;
  Incarnation sender = *state_.incarnation_of(outcome.nonce);
  BrokerId from = state_.incarnations().at(sender).broker;
  bool is_own = from == broker_;
  bool is_ask = false;
  // An entry may carry several, after the log did not answer for a while; the state keeps the last.
  for (const NamedHash& beat : outcome.beats) {
    if (beat.position == LogPosition()) {
      is_ask = true;
    } else if (!is_own && beat.position == snapshot_at_) {
      answers_.emplace(sender, beat.hash);
    }
  }
  compare_hashes();
  std::optional<BrokerId> asker;
  if (is_ask && !is_own) asker = from;
  begin_cut_at(position, asker, is_ask && sender == incarnation());
}

// While a large state is being hashed or cut for an earlier beat, this one may go without: it is one of many. One that
// asks must not, and the latest that asks has it: all brokers see the asks in one order, so all serve the same one.
void ClientCore::begin_cut_at(LogPosition position, std::optional<BrokerId> asker, bool is_own_ask) {
  bool is_for_snapshot = is_own_ask && snapshot_wanted_.has_value();
  if (state_.has_cut()) {
    if (state_.step_cut(kCutStepBytes)) {
      end_cut();
    } else if (!(asker || is_for_snapshot)) {
      return;
    } else if (is_snapshot_cut_) {
      cancel_snapshot();
    } else {
      state_.drop_cut();
    }
  }
  if (asker) asked_at_[*asker] = position;
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
  while (hash_at_beat_.size() > kBeatHashesKept) {
    // Where the others are still asked for theirs, this one's is needed however many beats come.
    auto oldest = hash_at_beat_.begin();
    if (oldest->first == snapshot_at_) ++oldest;
    hash_at_beat_.erase(oldest);
  }
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
  // What was said holds, also if who said it has gone since.
  std::set<BrokerId> agreeing = {broker_};
  for (const auto& [incarnation, hash] : answers_) {
    if (hash != own->second) return Agreement::kDisagreed;
    agreeing.insert(state_.incarnations().at(incarnation).broker);
  }
  const auto& live = state_.live_brokers();
  bool is_all = std::ranges::all_of(live, [&](const auto& one) { return agreeing.contains(one.first); });
  // A broker may keep its session and say nothing, for hours. It must not keep the others from trimming their log, so
  // half of the brokers are enough then, as in compare_hashes().
  bool is_enough = is_all || (is_late && 2 * agreeing.size() >= live.size());
  return is_enough ? Agreement::kAgreed : Agreement::kAwaited;
}

// Also those that were recorded before this broker knew its hash there.
bool ClientCore::check_snapshots() {
  auto is_dropped = [this](const auto& known) {
    return state_.snapshots().empty() || known.first < state_.snapshots().front().position;
  };
  std::erase_if(authors_, is_dropped);
  std::erase_if(doubted_, is_dropped);
  uint64_t before = mismatches_;
  for (const RetainedSnapshot& taken : state_.snapshots()) {
    auto author = authors_.find(taken.position);
    auto own = hash_at_beat_.find(taken.position);
    if (author == authors_.end() || own == hash_at_beat_.end() || own->second == taken.state_hash) continue;
    if (doubted_.emplace(*author).second) ++mismatches_;
  }
  return mismatches_ > before;
}

bool ClientCore::is_snapshot_overdue() const {
  return !is_diverged_ && !state_.snapshots().empty() &&
         doubted_.contains(state_.snapshots().back().position);
}

void ClientCore::compare_hashes() {
  bool is_counted = check_snapshots();
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
  if (disagree > 0 && !is_diverged_ && !is_counted) ++mismatches_;
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
    auto own = hash_at_beat_.find(asked->second);
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
