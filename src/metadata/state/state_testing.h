// For tests: a State driven through the bytes of entries, by brokers that count their own sequences.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "metadata/state/entry.h"
#include "metadata/state/state.h"

namespace varve::metadata {

// A run of one plain batch; the rest is filled in by the test.
struct RunSpec {
  PartitionHandle partition;
  uint32_t records = 1;
  uint32_t bytes = 100;
  int64_t max_timestamp = 1000;
  std::vector<ProducerBatch> producers{};  // if any, bytes and records are their sums
  bool is_transactional = false;
  bool is_log_append_time = false;
};

class StateDriver {
 public:
  State state;
  WallTime time{1'000'000};  // of the entries to come

  // Registers a broker with a nonce of its own; CHECKs that it is taken.
  Incarnation register_broker(int32_t id, uint32_t highest_level = 1) {
    Nonce nonce(++nonces_);
    ApplyOutcome outcome = apply(registration(id, nonce, highest_level));
    CHECK(outcome.verdict == EntryVerdict::kApplied);
    Incarnation incarnation = outcome.commands.at(0).incarnation;
    brokers_[incarnation] = {nonce, EntrySequence(1)};
    return incarnation;
  }

  // Counts the sequences of an incarnation that was registered by hand.
  void adopt(Incarnation incarnation, Nonce nonce) { brokers_[incarnation] = {nonce, EntrySequence(1)}; }

  static RegisterBroker registration_of(int32_t id, uint32_t highest_level) {
    RegisterBroker command;
    command.broker = BrokerId(id);
    command.highest_level = FeatureLevel(highest_level);
    command.endpoints = {{"PLAINTEXT", "127.0.0.1", 9092}};
    command.rack = "a";
    return command;
  }

  Entry registration(int32_t id, Nonce nonce, uint32_t highest_level = 1) const {
    Entry entry{.nonce = nonce, .sequence = EntrySequence(1), .time = time};
    entry.commands.push_back(registration_of(id, highest_level));
    return entry;
  }

  // The next entry of an incarnation.
  Entry entry_of(Incarnation sender, std::vector<Command> commands) {
    Sender& from = brokers_.at(sender);
    return {.nonce = from.nonce,
            .incarnation = sender,
            .sequence = EntrySequence(from.last.value() + 1),
            .time = time,
            .commands = std::move(commands)};
  }

  // Applies bytes at the next position and counts the sender's sequence if they are taken.
  ApplyOutcome apply_bytes(const std::vector<uint8_t>& bytes) {
    LogPosition position = state.position().plus(gap);
    return state.apply(position, bytes);
  }
  ApplyOutcome apply(const Entry& entry) {
    ApplyOutcome outcome = apply_bytes(encode_entry(entry));
    auto from = brokers_.find(entry.incarnation);
    if (from != brokers_.end() && outcome.verdict == EntryVerdict::kApplied)
      from->second.last = entry.sequence;
    return outcome;
  }
  // One command in one entry, which must be taken. About a group: as judged now, unless it says since when.
  CommandOutcome propose(Incarnation sender, Command command) {
    std::visit(
        [this](auto& one) {
          if constexpr (requires { one.owners; }) {
            if (one.owners == 0) one.owners = state.owners_version();
          }
        },
        command);
    ApplyOutcome outcome = apply(entry_of(sender, {std::move(command)}));
    CHECK(outcome.verdict == EntryVerdict::kApplied, "verdict {}", static_cast<int>(outcome.verdict));
    return outcome.commands.at(0);
  }

  // Makes a topic and gives its partitions.
  std::vector<PartitionHandle> create_topic(Incarnation sender, std::string name, uint32_t partitions = 1) {
    CreateTopic command{.id = topic_id(++topics_), .name = std::move(name), .partitions = partitions};
    CHECK(propose(sender, command).verdict == CommandVerdict::kDone);
    return state.find_topic(command.id)->partitions;
  }
  static Uuid topic_id(uint8_t number) {
    Uuid id;
    id.bytes[0] = 0x11;
    id.bytes[15] = number;
    return id;
  }

  // A commit of all runs of a new object of the sender, laid one after the other from byte 64.
  CommitObject object_of(Incarnation sender, const std::vector<RunSpec>& specs) {
    CommitObject command;
    command.object = {sender, ObjectNumber(++objects_)};
    command.epoch = state.fence_epoch();
    command.crc = 0xc0ffee;
    command.run_count = static_cast<uint32_t>(specs.size());
    uint64_t position = 64;
    for (const RunSpec& spec : specs) {
      Run run{.index = static_cast<uint32_t>(command.runs.size()),
              .partition = spec.partition,
              .position = position,
              .bytes = spec.bytes,
              .records = spec.records,
              .max_timestamp = spec.max_timestamp,
              .is_transactional = spec.is_transactional,
              .is_log_append_time = spec.is_log_append_time,
              .producers = spec.producers};
      if (!spec.producers.empty()) {
        run.bytes = run.records = 0;
        for (const ProducerBatch& batch : spec.producers) {
          run.bytes += batch.bytes;
          run.records += batch.records;
        }
      }
      position += run.bytes;
      command.runs.push_back(std::move(run));
    }
    command.bytes = position + 32;
    return command;
  }
  CommandOutcome commit(Incarnation sender, const std::vector<RunSpec>& specs) {
    return propose(sender, object_of(sender, specs));
  }
  // The verdicts of one run with these producer batches.
  std::vector<BatchOutcome> commit_batches(Incarnation sender, PartitionHandle partition,
                                           std::vector<ProducerBatch> batches) {
    return commit(sender, {{.partition = partition, .producers = std::move(batches)}}).runs.at(0).batches;
  }

  static ProducerBatch batch(int64_t producer, int16_t epoch, int32_t first_sequence, uint32_t records = 1,
                             uint32_t bytes = 100) {
    return {bytes, records, ProducerId(producer), ProducerEpoch(epoch), Sequence(first_sequence)};
  }

  int64_t high_watermark(PartitionHandle partition) const {
    return state.partition(partition)->high_watermark.value();
  }
  uint64_t refusals(const std::string& cause) const { return state.refusal_counts().at(cause); }

  uint64_t gap = 3;  // between log positions: they are not dense

 private:
  struct Sender {
    Nonce nonce;
    EntrySequence last;
  };
  uint64_t nonces_ = 100;
  uint64_t objects_ = 0;
  uint8_t topics_ = 0;
  std::map<Incarnation, Sender> brokers_;
};

inline std::vector<BatchVerdict> verdicts_of(const std::vector<BatchOutcome>& outcomes) {
  std::vector<BatchVerdict> verdicts;
  for (const BatchOutcome& outcome : outcomes) verdicts.push_back(outcome.verdict);
  return verdicts;
}

}  // namespace varve::metadata
