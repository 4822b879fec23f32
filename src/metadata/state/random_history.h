// For tests, fuzzers and benchmarks: a plausible life of a log, with everything that may go wrong in it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "metadata/state/random_groups.h"
#include "metadata/state/state_testing.h"

namespace varve::metadata {

// Every entry is applied to `state` when it is made; the same seed gives the same history.
class RandomHistory : public StateDriver {
 public:
  struct Step {
    LogPosition position;
    std::vector<uint8_t> bytes;
    Entry entry;  // what the bytes say; empty if they are damaged
    ApplyOutcome outcome;
  };

  explicit RandomHistory(uint64_t seed) : random_(seed) {}

  // The first steps register brokers and make topics.
  Step next() {
    gap = random_.below(3) + 1;
    time = time.plus(random_.between(-2'000, 6'000));
    Step step;
    step.entry = live_.size() < 3 ? registration(++registered_, Nonce(random_.next())) : next_entry();
    step.bytes = encode_entry(step.entry);
    if (live_.size() >= 3 && random_.chance(1, 100)) {
      step.bytes[random_.below(step.bytes.size())] ^= 0x10;
      step.entry = {};
    }
    step.outcome = step.entry.nonce == Nonce() ? apply_bytes(step.bytes) : apply(step.entry);
    step.position = state.position();
    after(step);
    return step;
  }

  std::vector<PartitionHandle> partitions() const {
    std::vector<PartitionHandle> all;
    for (const auto& [id, topic] : state.topics()) {
      all.insert(all.end(), topic.partitions.begin(), topic.partitions.end());
    }
    return all;
  }

 private:
  Entry next_entry() {
    if (random_.chance(1, 150)) {
      Entry entry = registration(static_cast<int32_t>(random_.below(4)), Nonce(random_.next()));
      if (random_.chance(1, 4)) entry.nonce = last_entry_.nonce;
      return entry;
    }
    if (random_.chance(1, 30) && !last_entry_.commands.empty()) return last_entry_;
    Incarnation sender = live_[random_.below(live_.size())];
    std::vector<Command> commands;
    for (uint64_t n = random_.below(3) + 1; n > 0; --n) commands.push_back(command(sender));
    // First, so that what they find does not hang on how runs before them were joined: the model cannot tell.
    std::partition(commands.begin(), commands.end(),
                   [](const Command& command) { return std::holds_alternative<ObjectsDeleted>(command); });
    Entry entry = entry_of(sender, std::move(commands));
    if (random_.chance(1, 60)) entry.sequence = entry.sequence.plus(1);
    if (random_.chance(1, 200)) entry.nonce = entry.nonce.plus(1);
    return entry;
  }

  // Fenced incarnations stay in the draw for a while: zombies.
  void after(const Step& step) {
    if (step.entry.incarnation != Incarnation()) last_entry_ = step.entry;
    bool is_registration = step.entry.incarnation == Incarnation() && !step.outcome.commands.empty();
    if (!is_registration || step.outcome.verdict != EntryVerdict::kApplied) return;
    Incarnation incarnation = step.outcome.commands[0].incarnation;
    adopt(incarnation, step.entry.nonce);
    live_.push_back(incarnation);
    if (live_.size() > 5) live_.erase(live_.begin());
  }

  Command command(Incarnation sender) {
    if (state.topics().empty()) return topic_command();
    if (random_.chance(1, 6))
      return RandomGroups(state, random_).command(state.incarnations().at(sender).broker, partitions());
    uint64_t kind = random_.below(100);
    if (kind < 62) return commit_command(sender);
    if (kind < 70) return set_log_start();
    if (kind < 74) return AdvanceGcFence{state.fence_epoch().plus(random_.below(2))};
    if (kind < 79) return objects_deleted();
    if (kind < 82) return snapshot_taken();
    if (kind < 85) return AllocateProducerIds{static_cast<uint32_t>(random_.below(3))};
    if (kind < 87) return ExpireProducers{state.log_time() - random_.between(-10, 2'000)};
    if (kind < 89) {
      return SetLimits{static_cast<uint32_t>(random_.below(7)), 40, random_.below(1'000)};
    }
    if (kind < 92) return Beat{state.position(), random_.next()};
    if (kind < 94) return topic_command();
    if (kind < 95) return random_.chance(1, 2) ? Command(add_partitions()) : Command(alter_configs());
    if (kind < 96) return delete_topic();
    if (kind < 97 && live_.size() > 2) return FenceBroker{live_[random_.below(live_.size())]};
    return random_command(random_);
  }

  SnapshotTaken snapshot_taken() {
    SnapshotTaken command{.position = LogPosition(state.position().value() - random_.below(3))};
    if (random_.chance(1, 10)) command.predecessor = LogPosition(1 + random_.below(3));
    command.state_hash = random_.next();
    command.bytes = 9;
    return command;
  }

  CreateTopic topic_command() {
    CreateTopic topic{.id = random_.uuid(), .name = fmt::format("t{}", random_.below(5)), .partitions = 0};
    topic.partitions = static_cast<uint32_t>(random_.below(5));
    if (random_.chance(1, 2)) topic.configs["retention.ms"] = "1000";
    return topic;
  }
  Uuid any_topic() {
    if (state.topics().empty() || random_.chance(1, 10)) return random_.uuid();
    auto at = state.topics().begin();
    std::advance(at, static_cast<ptrdiff_t>(random_.below(state.topics().size())));
    return at->first;
  }
  DeleteTopic delete_topic() { return {any_topic()}; }
  AddPartitions add_partitions() {
    Uuid id = any_topic();
    const TopicView* topic = state.find_topic(id);
    uint64_t present = topic == nullptr ? 0 : topic->partitions.size();
    return {id, static_cast<uint32_t>(present + random_.below(4))};
  }
  AlterTopicConfigs alter_configs() {
    Uuid id = any_topic();
    const TopicView* topic = state.find_topic(id);
    AlterTopicConfigs command{id, topic == nullptr ? 0 : topic->configs_version, {}};
    if (random_.chance(1, 4)) command.version += static_cast<uint64_t>(random_.between(-1, 1));
    command.changes["retention.ms"] = random_.chance(1, 2) ? std::nullopt : std::optional("7");
    if (random_.chance(1, 2)) command.changes["cleanup.policy"] = "delete";
    return command;
  }

  PartitionHandle any_partition() {
    std::vector<PartitionHandle> all = partitions();
    if (all.empty() || random_.chance(1, 40))
      return PartitionHandle(static_cast<uint32_t>(random_.below(50)));
    return all[random_.below(all.size())];
  }

  SetLogStart set_log_start() {
    PartitionHandle partition = any_partition();
    auto view = state.partition(partition);
    if (!view) return {partition, Offset(1)};
    int64_t readable = view->high_watermark.value() - view->log_start.value();
    return {partition, view->log_start.plus(random_.between(-1, readable + 1))};
  }

  ObjectsDeleted objects_deleted() {
    ObjectsDeleted command;
    for (const PendingDeletion& pending : state.deletable(3)) command.objects.push_back(pending.object);
    if (random_.chance(1, 4) && !known_.empty()) command.objects.push_back(any_known().object);
    return command;
  }

  CommitObject& any_known() { return known_[random_.below(known_.size())]; }

  // Most commits are of a new object, some in part; the others go on with an object from before.
  CommitObject commit_command(Incarnation sender) {
    if (!known_.empty() && random_.chance(1, 5)) {
      CommitObject again = any_known();
      keep_some_runs(again);
      return again;
    }
    std::vector<RunSpec> specs;
    for (uint64_t n = random_.below(5) + 1; n > 0; --n) specs.push_back(run_spec());
    CommitObject object = object_of(sender, specs);
    if (random_.chance(1, 20)) object.runs[0].records += 1;
    known_.push_back(object);
    if (known_.size() > 40) known_.erase(known_.begin());
    if (random_.chance(1, 3)) keep_some_runs(object);
    return object;
  }
  void keep_some_runs(CommitObject& object) {
    std::erase_if(object.runs, [&](const Run&) { return random_.chance(1, 2); });
  }

  RunSpec run_spec() {
    RunSpec spec{.partition = any_partition()};
    spec.records = static_cast<uint32_t>(random_.below(20) + 1);
    spec.bytes = static_cast<uint32_t>(random_.below(5000) + 61);
    spec.max_timestamp = time.value() + random_.between(-5000, 5000);
    spec.is_log_append_time = random_.chance(1, 5);
    spec.is_transactional = random_.chance(1, 50);
    if (random_.chance(1, 2)) return spec;
    for (uint64_t n = random_.below(4) + 1; n > 0; --n)
      spec.producers.push_back(producer_batch(spec.partition));
    return spec;
  }

  // Often what is expected next, else a repetition, a gap, an old or a new epoch.
  ProducerBatch producer_batch(PartitionHandle partition) {
    ProducerBatch batch;
    batch.bytes = static_cast<uint32_t>(random_.below(5000) + 61);
    batch.records = static_cast<uint32_t>(random_.below(4) + 1);
    if (random_.chance(1, 10)) {
      batch.producer_id = kNoProducerId;
      return batch;
    }
    batch.producer_id = ProducerId(static_cast<int64_t>(random_.below(6)));
    batch.epoch = ProducerEpoch(static_cast<int16_t>(random_.below(12) == 0 ? 1 : 0));
    Sequence next = state.next_sequence(partition, batch.producer_id, batch.epoch).value_or(Sequence(0));
    int32_t step = static_cast<int32_t>(random_.chance(2, 3) ? 0 : random_.between(-9, 3));
    batch.first_sequence = Sequence(std::max(0, next.value() + step));
    // Now and then far on, so that sequences wrap.
    if (random_.chance(1, 40)) batch.records = 1'500'000'000;
    return batch;
  }

  Random random_;
  int32_t registered_ = 0;
  std::vector<Incarnation> live_;
  std::vector<CommitObject> known_;
  Entry last_entry_;
};

}  // namespace varve::metadata
