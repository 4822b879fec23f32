// For tests and benchmarks: the mix of commits that sizes and speeds are given for.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "metadata/state/entry.h"

namespace varve::metadata {

// One broker commits an object every 250 ms. A commit has one run a partition, over a random part of the
// partitions, in the order of their handles; batches have 1-64 KiB and 1-500 records; a run's newest record is
// at most half a second old at the commit. Idempotent runs are one batch of one of 1,000 producers, each of
// which has sent up to a million records to a partition. Objects are laid out without gaps.
class BenchmarkMix {
 public:
  enum class Kind : uint8_t { kPlain = 0, kIdempotent = 1 };
  static constexpr int64_t kBeginMs = 1'800'000'000'000;

  explicit BenchmarkMix(uint32_t partitions) : partitions_(partitions), sequences_(partitions) {}

  // Registers the broker, hands out producer ids and makes the topics, of 100 partitions or of the rest.
  std::vector<std::vector<uint8_t>> beginning() {
    std::vector<std::vector<uint8_t>> entries;
    Entry registration{.nonce = Nonce(kNonce), .sequence = EntrySequence(1), .time = WallTime(now_)};
    registration.commands.push_back(RegisterBroker{BrokerId(1), FeatureLevel(1), {}, ""});
    entries.push_back(encode_entry(registration));
    entries.push_back(encode_entry(entry({AllocateProducerIds{kProducers}})));
    for (uint32_t made = 0; made < partitions_;) {
      CreateTopic topic{.id = random_.uuid(), .name = fmt::format("topic-{}", made), .partitions = 100};
      topic.partitions = std::min(topic.partitions, partitions_ - made);
      made += topic.partitions;
      entries.push_back(encode_entry(entry({topic})));
    }
    return entries;
  }

  std::vector<uint8_t> next_commit(size_t runs, Kind kind) {
    return encode_entry(entry({commit(runs, kind)}));
  }

  CommitObject commit(size_t runs, Kind kind) {
    now_ += 250;
    CommitObject object;
    object.object = {Incarnation(1), ObjectNumber(++objects_)};
    object.crc = static_cast<uint32_t>(random_.next());
    object.run_count = static_cast<uint32_t>(runs);
    uint64_t position = 64;
    // Every partition's chance to be next is such that the runs spread over all of them.
    uint32_t handle = 0;
    uint32_t step = std::max<uint32_t>(1, partitions_ / static_cast<uint32_t>(runs));
    for (size_t i = 0; i < runs; ++i) {
      Run run{.index = static_cast<uint32_t>(i), .partition = PartitionHandle(handle % partitions_)};
      handle += 1 + static_cast<uint32_t>(random_.below(2 * step - 1));
      run.position = position;
      run.bytes = static_cast<uint32_t>(random_.between(1024, 65536));
      run.records = static_cast<uint32_t>(random_.between(1, 500));
      run.max_timestamp = now_ - random_.between(0, 500);
      if (kind == Kind::kIdempotent) run.producers.push_back(batch(run));
      position += run.bytes;
      object.runs.push_back(std::move(run));
    }
    object.bytes = position + 100;
    return object;
  }

  Entry entry(std::vector<Command> commands) {
    Entry entry{.nonce = Nonce(kNonce),
                .incarnation = Incarnation(1),
                .sequence = EntrySequence(++sequence_),
                .time = WallTime(now_)};
    entry.commands = std::move(commands);
    return entry;
  }

 private:
  static constexpr uint64_t kNonce = 0x0123456789abcdef;
  static constexpr uint32_t kProducers = 1000;

  // Of the partition's own producer, so that each partition knows one. All are accepted: the ids are older than
  // the topics, so that a producer may begin anywhere.
  ProducerBatch batch(const Run& run) {
    uint32_t& next = sequences_[run.partition.value()];
    if (next == 0) next = static_cast<uint32_t>(random_.below(1'000'000));
    ProducerBatch batch{.bytes = run.bytes, .records = run.records};
    batch.producer_id = ProducerId(run.partition.value() * 7919 % kProducers);
    batch.epoch = ProducerEpoch(0);
    batch.first_sequence = Sequence(static_cast<int32_t>(next));
    next += run.records;
    return batch;
  }

  Random random_{1};
  uint32_t partitions_;
  int64_t now_ = kBeginMs;
  uint64_t sequence_ = 1;
  uint64_t objects_ = 0;
  std::vector<uint32_t> sequences_;
};

}  // namespace varve::metadata
