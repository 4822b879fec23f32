#include "metadata/state/apply.h"

#include <algorithm>

namespace varve::metadata {
ApplyOutcome Applier::apply(LogPosition position, ByteView bytes) {
  CHECK(position > state_.position, "position {} after {}", position, state_.position);
  state_.position = position;
  outcome_.verdict = judge_bytes(bytes);
  state_.refusals.count(outcome_.verdict);
  auto& changed = outcome_.changed_partitions;
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return std::move(outcome_);
}

EntryVerdict Applier::judge_bytes(ByteView bytes) {
  auto entry = decode_entry(bytes);
  bool is_whole = entry.has_value();
  // Above the level in state an entry is a no-op whether this binary knows its grammar or not.
  if (!is_whole) entry = decode_entry_header(bytes);
  if (!entry) {
    outcome_.has_work = true;
    return EntryVerdict::kMalformed;
  }
  outcome_.nonce = entry->nonce;
  outcome_.sequence = entry->sequence;
  outcome_.has_work = !is_whole || !std::all_of(entry->commands.begin(), entry->commands.end(), is_duty);
  if (entry->level > state_.feature_level) return EntryVerdict::kAboveFeatureLevel;
  return is_whole && entry->shard == 0 ? take(*entry) : EntryVerdict::kMalformed;
}

EntryVerdict Applier::take(const Entry& entry) {
  entry_time_ = entry.time.value();
  if (entry.incarnation == Incarnation()) return register_broker(entry);
  incarnation_ = entry.incarnation;
  sender_ = state_.brokers.find(entry.incarnation);
  EntryVerdict verdict = judge_header(entry);
  if (verdict != EntryVerdict::kApplied) return verdict;
  sender_->last_sequence = entry.sequence;
  sender_->last_time = entry.time;
  // Before the commands, so that they see the time of their own entry; and after, as they change who lives.
  advance_log_time();
  outcome_.commands.reserve(entry.commands.size());
  for (const Command& command : entry.commands) {
    outcome_.commands.push_back(std::visit([this](const auto& c) { return run(c); }, command));
  }
  advance_log_time();
  return EntryVerdict::kApplied;
}

EntryVerdict Applier::judge_header(const Entry& entry) const {
  if (sender_ == nullptr || sender_->nonce != entry.nonce) return EntryVerdict::kUnknownIncarnation;
  if (!sender_->is_live && !state_.bugs.no_fence_check) return EntryVerdict::kFenced;
  if (state_.bugs.no_sequence_check) return EntryVerdict::kApplied;
  if (entry.sequence <= sender_->last_sequence) return EntryVerdict::kRepeated;
  return entry.sequence.value() == sender_->last_sequence.value() + 1 ? EntryVerdict::kApplied
                                                                      : EntryVerdict::kGap;
}

EntryVerdict Applier::register_broker(const Entry& entry) {
  const auto* command =
      entry.commands.size() == 1 ? std::get_if<RegisterBroker>(&entry.commands[0]) : nullptr;
  if (command == nullptr || entry.sequence != EntrySequence(1) || command->broker < BrokerId(0) ||
      state_.brokers.of_nonce(entry.nonce)) {
    return EntryVerdict::kBadRegistration;
  }
  if (command->highest_level < state_.feature_level) {
    outcome_.commands.push_back(refuse(CommandVerdict::kLevelRefused));
    return EntryVerdict::kApplied;
  }
  if (auto earlier = state_.brokers.live(command->broker)) fence(*earlier);
  CommandOutcome done;
  done.incarnation = Incarnation(state_.position.value());
  state_.brokers.add(done.incarnation, BrokerIncarnation{.broker = command->broker,
                                                         .nonce = entry.nonce,
                                                         .last_sequence = entry.sequence,
                                                         .highest_level = command->highest_level,
                                                         .last_time = entry.time,
                                                         .endpoints = command->endpoints,
                                                         .rack = command->rack,
                                                         .beat_position = LogPosition()});
  incarnation_ = done.incarnation;
  sender_ = state_.brokers.find(incarnation_);
  ++state_.image_version;
  outcome_.has_broker_change = true;
  advance_log_time();
  outcome_.commands.push_back(std::move(done));
  return EntryVerdict::kApplied;
}

void Applier::advance_log_time() {
  state_.log_time = std::max(state_.log_time, state_.brokers.median_time());
  if (state_.bugs.apply_reads_local_broker && sender_->broker == state_.local_broker) {
    state_.log_time = std::max(state_.log_time, entry_time_);
  }
}

void Applier::fence(Incarnation incarnation) {
  if (!state_.brokers.fence(incarnation)) return;
  outcome_.fenced.push_back(incarnation);
  outcome_.has_broker_change = true;
  ++state_.image_version;
}

CommandOutcome Applier::refuse(Rule rule) {
  state_.refusals.count(rule);
  CommandOutcome refused;
  refused.verdict = CommandVerdict::kRefused;
  refused.detail = name_of(rule);
  return refused;
}

CommandOutcome Applier::refuse(CommandVerdict verdict) {
  state_.refusals.count(verdict);
  CommandOutcome refused;
  refused.verdict = verdict;
  return refused;
}

CommandOutcome Applier::run(const RegisterBroker&) { return refuse(Rule::kMisplacedRegistration); }

CommandOutcome Applier::run(const FenceBroker& command) {
  if (state_.brokers.find(command.incarnation) == nullptr) return refuse(Rule::kUnknownIncarnation);
  fence(command.incarnation);
  return {};
}

CommandOutcome Applier::run(const Beat& command) {
  outcome_.beats.push_back({command.applied, command.state_hash});
  sender_->beat_position = command.applied;
  sender_->beat_hash = command.state_hash;
  return {};
}

CommandOutcome Applier::run(const RaiseFeatureLevel& command) {
  if (command.level <= state_.feature_level || !state_.brokers.all_live_allow(command.level)) {
    return refuse(CommandVerdict::kLevelRefused);
  }
  state_.feature_level = command.level;
  return {};
}

CommandOutcome Applier::run(const SetLimits& command) {
  if (!are_in_range(command)) return refuse(Rule::kLimitOutOfRange);
  state_.limits = command;
  return {};
}

CommandOutcome Applier::run(const AdvanceGcFence& command) {
  if (command.epoch <= state_.fence_epoch) return refuse(Rule::kFenceNotRaised);
  state_.fence_epoch = command.epoch;
  return {};
}

CommandOutcome Applier::run(const ObjectsDeleted& command) {
  bool is_any_refused = false;
  for (const ObjectId& id : command.objects) {
    Object* object = state_.objects.find(id);
    bool is_fenced =
        object != nullptr && (object->epoch < state_.fence_epoch || state_.bugs.delete_without_fence);
    if (is_fenced && object->is_pending()) {
      state_.objects.forget(*object);
    } else {
      is_any_refused = true;
    }
  }
  return is_any_refused ? refuse(Rule::kNotDeletable) : CommandOutcome{};
}

CommandOutcome Applier::run(const AllocateProducerIds& command) {
  if (command.count == 0 || command.count > INT64_MAX - state_.next_producer_id)
    return refuse(Rule::kBadCount);
  CommandOutcome done;
  done.first_producer_id = ProducerId(state_.next_producer_id);
  state_.next_producer_id += command.count;
  return done;
}

CommandOutcome Applier::run(const ExpireProducers& command) {
  int64_t latest = state_.log_time - static_cast<int64_t>(state_.limits.producer_expiry_ms);
  if (command.idle_since > latest) return refuse(Rule::kCutoffTooLate);
  state_.producer_ids_at_expiry = state_.next_producer_id;
  for (size_t number = 0; number < state_.partitions.blocks(); ++number) {
    PartitionBlock* block = state_.partitions.block(number);
    if (block == nullptr) continue;
    for (size_t at = 0; at < block->partitions.size(); ++at) {
      Partition& partition = block->partitions[at];
      if (!partition.producers) continue;
      auto is_expired = [&](const auto& producer) { return producer.second.last_time < command.idle_since; };
      if (std::none_of(partition.producers->begin(), partition.producers->end(), is_expired)) continue;
      state_.partitions.before_change(
          PartitionHandle(static_cast<uint32_t>(number * kPartitionsPerBlock + at)));
      std::erase_if(*partition.producers, is_expired);
      if (partition.producers->empty()) partition.producers.reset();
    }
  }
  return {};
}

CommandOutcome Applier::run(const SetLogStart& command) {
  Partition* partition = state_.partitions.find(command.partition);
  if (partition == nullptr) return refuse(CommandVerdict::kUnknownTopic);
  int64_t log_start = command.log_start.value();
  if (log_start < partition->log_start || log_start > partition->high_watermark) {
    return refuse(Rule::kLogStartOutOfRange);
  }
  if (log_start == partition->log_start) return {};
  state_.partitions.set_log_start(command.partition, *partition, log_start, state_.now());
  outcome_.changed_partitions.push_back(command.partition);
  return {};
}

CommandOutcome Applier::run(const SnapshotTaken& command) {
  std::vector<RetainedSnapshot>& retained = state_.snapshots;
  bool is_newest = retained.empty() || command.position > retained.back().position;
  if (!is_newest || command.position >= state_.position) return refuse(Rule::kSnapshotOutOfOrder);
  // Chunks that only a dropped snapshot had may be gone by now.
  bool reuses_retained = command.predecessor == LogPosition() ||
                         std::any_of(retained.begin(), retained.end(), [&](const RetainedSnapshot& snapshot) {
                           return snapshot.position == command.predecessor;
                         });
  if (!reuses_retained) return refuse(Rule::kPredecessorGone);
  retained.push_back({command.position, command.state_hash, command.bytes});
  if (retained.size() > kSnapshotsRetained) retained.erase(retained.begin());
  outcome_.has_snapshot = true;
  return {};
}

}  // namespace varve::metadata
