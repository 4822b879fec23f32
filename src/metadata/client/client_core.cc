#include "metadata/client/client_core.h"

#include <algorithm>

#include "metadata/state/refusal_counts.h"

namespace varve::metadata {

ClientCore::ClientCore(BrokerId broker, size_t proposals_waiting_max, PlantedBugs bugs)
    : broker_(broker), bugs_(bugs), state_(bugs), proposer_(proposals_waiting_max, bugs) {
  state_.set_local_broker(broker_);
}

void ClientCore::apply(const std::vector<LogEntry>& entries) {
  for (const LogEntry& entry : entries) {
    if (entry.position <= state_.position()) continue;
    if (is_above_this_program()) {
      fatal_.set(FatalError{
          fmt::format("the cluster is at feature level {}, this program knows {}: a newer one is needed",
                      state_.feature_level(), kHighestFeatureLevel)});
      break;
    }
    ApplyOutcome outcome = state_.apply(entry.position, entry.bytes.view());
    after_entry(entry, outcome);
  }
  publish_image();
  wake_position_waiters();
}

void ClientCore::after_entry(const LogEntry& entry, const ApplyOutcome& outcome) {
  bytes_since_snapshot_ += entry.bytes.size();
  if (outcome.has_work) newest_work_ = entry.position;
  if (!state_.snapshots().empty() && state_.snapshots().back().position > newest_snapshot_) {
    newest_snapshot_ = state_.snapshots().back().position;
    bytes_since_snapshot_ = 0;
  }
  // Whoever is told of an own entry looks for its effect in the image at once, on another thread.
  if (own_nonces_.contains(outcome.nonce)) publish_image();
  note_registration(entry.position, outcome);
  note_fences(outcome);
  proposer_.applied(outcome);
  note_beats(entry.position, outcome);
  if (outcome.has_snapshot) {
    authors_[state_.snapshots().back().position] = *state_.incarnation_of(outcome.nonce);
  }
  if (outcome.has_snapshot || !outcome.fenced.empty()) compare_hashes();
  if (listener_) listener_(outcome);
}

void ClientCore::note_registration(LogPosition position, const ApplyOutcome& outcome) {
  if (!expected_registration_ || expected_registration_->first != outcome.nonce) return;
  if (outcome.sequence != EntrySequence(1) || outcome.verdict == EntryVerdict::kRepeated) return;
  bool is_accepted = outcome.verdict == EntryVerdict::kApplied && !outcome.commands.empty() &&
                     outcome.commands.front().verdict == CommandVerdict::kDone;
  if (is_accepted) {
    resolve_registration(outcome.nonce, Incarnation(position.value()));
    return;
  }
  runtime::Completion<RegistrationResult> completion = expected_registration_->second;
  expected_registration_.reset();
  // Not for its level: a program that the log is above halts before it comes to that.
  completion.set(
      {Incarnation(0),
       fmt::format("the registration was refused by the rules of the log: {}",
                   outcome.verdict == EntryVerdict::kApplied ? "level_refused" : name_of(outcome.verdict))});
}

void ClientCore::resolve_registration(Nonce nonce, Incarnation incarnation) {
  runtime::Completion<RegistrationResult> completion = expected_registration_->second;
  expected_registration_.reset();
  incarnation_.store(incarnation.value(), std::memory_order_relaxed);
  nonce_.store(nonce.value(), std::memory_order_relaxed);
  needs_registration_ = false;
  // What others asked before, this broker knows as well as they, from the log; but not what they have an end of.
  std::erase_if(asked_at_, [this](const auto& asked) {
    bool is_over = !state_.snapshots().empty() && asked.second <= state_.snapshots().back().position;
    return is_over || !state_.live_brokers().contains(asked.first);
  });
  proposer_.registered(nonce, incarnation);
  completion.set(RegistrationResult{incarnation, ""});
}

void ClientCore::note_fences(const ApplyOutcome& outcome) {
  for (Incarnation fenced : outcome.fenced) {
    own_nonces_.erase(state_.incarnations().at(fenced).nonce);
    if (fenced != incarnation() || fenced.value() == 0) continue;
    proposer_.fenced();
    // A live incarnation of this id that is not ours: another process took the id (invariant 4).
    auto live_now = state_.live_incarnation(broker_);
    if (live_now && !own_nonces_.contains(state_.incarnations().at(*live_now).nonce)) {
      fatal_.set(FatalError{fmt::format("another broker registered with id {}: this one stops", broker_)});
      return;
    }
    needs_registration_ = true;
    if (registration_waiter_) registration_waiter_->set(runtime::Done{});
  }
}

void ClientCore::session_lost(Nonce nonce) {
  if (nonce != this->nonce()) return;
  proposer_.fenced();
  needs_registration_ = true;
  if (registration_waiter_) registration_waiter_->set(runtime::Done{});
}

void ClientCore::reload(State state) {
  if (state.position() <= state_.position()) return;
  std::set<PartitionHandle> before;
  for (const auto& [id, topic] : state_.topics()) {
    before.insert(topic.partitions.begin(), topic.partitions.end());
  }
  state_ = std::move(state);
  state_.set_local_broker(broker_);
  bytes_since_snapshot_ = 0;
  newest_snapshot_ = state_.snapshots().empty() ? LogPosition() : state_.snapshots().back().position;
  newest_work_ = state_.position();
  hash_at_beat_.clear();
  authors_.clear();
  doubted_.clear();
  asked_at_.clear();
  is_snapshot_cut_ = false;
  cancel_snapshot();
  auto own = state_.incarnations().find(incarnation());
  std::optional<EntrySequence> last_sequence;
  if (own != state_.incarnations().end()) last_sequence = own->second.last_sequence;
  publish_image();
  proposer_.reloaded(last_sequence);
  if (expected_registration_) {
    auto registered = state_.incarnation_of(expected_registration_->first);
    if (registered) resolve_registration(expected_registration_->first, *registered);
  }
  // A registration that came with the snapshot may have been fenced before it, too.
  own = state_.incarnations().find(incarnation());
  if (own != state_.incarnations().end() && !own->second.is_live) {
    ApplyOutcome fence;
    fence.fenced.push_back(incarnation());
    note_fences(fence);
  }
  std::erase_if(own_nonces_, [this](Nonce nonce) {
    auto known = state_.incarnation_of(nonce);
    return known && !state_.incarnations().at(*known).is_live;
  });
  wake_position_waiters();
  tell_of_reload(before);
}

// Any partition may have new records, and those that are gone have none any more: whoever waits looks again. Any group
// may have another owner.
void ClientCore::tell_of_reload(const std::set<PartitionHandle>& before) {
  if (!listener_) return;
  std::set<PartitionHandle> changed = before;
  for (const auto& [id, topic] : state_.topics()) {
    changed.insert(topic.partitions.begin(), topic.partitions.end());
  }
  ApplyOutcome outcome;
  outcome.is_reload = true;
  outcome.has_broker_change = true;
  outcome.changed_partitions.assign(changed.begin(), changed.end());
  listener_(outcome);
}

runtime::Completion<runtime::Done> ClientCore::applied_up_to(LogPosition position) {
  runtime::Completion<runtime::Done> completion;
  if (position <= state_.position()) {
    completion.set(runtime::Done{});
  } else {
    position_waiters_.emplace(position, completion);
  }
  return completion;
}

void ClientCore::wake_position_waiters() {
  auto end = position_waiters_.upper_bound(state_.position());
  for (auto waiter = position_waiters_.begin(); waiter != end; ++waiter) waiter->second.set(runtime::Done{});
  position_waiters_.erase(position_waiters_.begin(), end);
}

runtime::Completion<RegistrationResult> ClientCore::expect_registration(Nonce nonce) {
  runtime::Completion<RegistrationResult> completion;
  own_nonces_.insert(nonce);
  expected_registration_.emplace(nonce, completion);
  return completion;
}

void ClientCore::registration_failed(Nonce nonce) {
  if (expected_registration_ && expected_registration_->first == nonce) expected_registration_.reset();
  own_nonces_.erase(nonce);
}

runtime::Completion<runtime::Done> ClientCore::registration_needed() {
  registration_waiter_.emplace();
  if (needs_registration_) registration_waiter_->set(runtime::Done{});
  return *registration_waiter_;
}

std::vector<std::pair<Incarnation, Nonce>> ClientCore::live() const {
  std::vector<std::pair<Incarnation, Nonce>> live;
  for (const auto& [id, incarnation] : state_.live_brokers()) {
    live.emplace_back(incarnation, state_.incarnations().at(incarnation).nonce);
  }
  return live;
}

std::vector<Incarnation> ClientCore::fences_due(const std::vector<std::pair<Incarnation, Nonce>>& live,
                                                const std::vector<Nonce>& sessions) {
  std::erase_if(fences_proposed_, [&](Incarnation proposed) {
    return std::none_of(live.begin(), live.end(), [&](const auto& one) { return one.first == proposed; });
  });
  std::vector<Incarnation> due;
  for (const auto& [incarnation, nonce] : live) {
    if (std::find(sessions.begin(), sessions.end(), nonce) != sessions.end()) continue;
    if (incarnation == this->incarnation()) {
      session_lost(nonce);
    } else if (fences_proposed_.insert(incarnation).second) {
      due.push_back(incarnation);
    }
  }
  return due;
}

bool ClientCore::is_first_live() const {
  return state_.live_brokers().empty() || state_.live_brokers().begin()->first >= broker_;
}

void ClientCore::publish_image() {
  auto old = image();
  if (published_version_ == state_.image_version() && old != nullptr) return;
  published_version_ = state_.image_version();
  auto fresh = std::make_shared<MetadataImage>();
  fresh->position = state_.position();
  fresh->log_id = log_.id;
  fresh->generation = log_.generation;
  for (const auto& [id, incarnation] : state_.live_brokers()) {
    const BrokerIncarnation& broker = state_.incarnations().at(incarnation);
    fresh->brokers[id] = ImageBroker{id, incarnation, broker.endpoints, broker.rack};
  }
  for (const auto& [id, topic] : state_.topics()) {
    std::shared_ptr<const TopicView> shared;
    // Unchanged topics are shared with the image before.
    if (old) {
      auto same = old->topics_by_id.find(id);
      if (same != old->topics_by_id.end() && same->second->partitions.size() == topic.partitions.size() &&
          same->second->configs_version == topic.configs_version) {
        shared = same->second;
      }
    }
    if (!shared) shared = std::make_shared<const TopicView>(topic);
    fresh->topics_by_name.emplace(topic.name, shared);
    fresh->topics_by_id.emplace(id, std::move(shared));
  }
  std::lock_guard lock(image_mutex_);
  image_ = std::move(fresh);
}

}  // namespace varve::metadata
