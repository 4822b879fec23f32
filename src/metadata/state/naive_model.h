// For tests: apply once more, in the most naive way there is, to compare verdicts and offsets with.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "metadata/state/entry.h"
#include "metadata/state/naive_groups.h"
#include "metadata/state/outcome.h"

namespace varve::metadata {

class NaiveModel {
 public:
  struct Stretch {  // one accepted batch, or a plain run
    ObjectId object;
    uint64_t position = 0;
    uint32_t bytes = 0;
    uint32_t records = 0;
  };
  struct Remembered {
    int32_t first = 0;
    uint32_t records = 0;
    int64_t base_offset = 0;
  };
  struct Producer {
    int16_t epoch = 0;
    int64_t last_time = 0;
    std::vector<Remembered> batches;
  };
  struct Partition {
    Uuid topic;
    int64_t log_start = 0;
    int64_t high_watermark = 0;
    std::map<int64_t, Stretch> stretches;  // by base offset
    std::map<int64_t, Producer> producers;
  };
  struct Topic {
    std::string name;
    std::vector<uint32_t> partitions;
    int64_t producer_ids_before = 0;
    std::map<std::string, std::string> configs;
    uint64_t config_changes = 0;
  };
  struct Broker {
    int32_t id = 0;
    uint64_t nonce = 0;
    uint64_t last_sequence = 0;
    int64_t last_time = 0;
    uint32_t highest_level = 0;
    bool is_live = true;
  };
  struct Object {
    CommitObject facts;
    std::set<uint32_t> decided;
  };

  uint64_t position = 0;
  int64_t log_time = 0;
  uint64_t fence = 0;
  uint32_t level = 1;
  SetLimits limits;
  int64_t next_producer_id = 0;
  int64_t ids_at_expiry = 0;
  uint32_t next_handle = 0;
  std::map<uint32_t, Partition> partitions;
  std::map<Uuid, Topic> topics;
  std::map<uint64_t, Broker> brokers;
  std::map<ObjectId, Object> objects;
  std::vector<uint64_t> snapshots;
  NaiveGroups groups;
  std::vector<NaiveGroups::Answer> answers;  // of the commands about groups of the newest entry

  // `entry` decodes; an empty one stands for bytes that do not.
  EntryVerdict apply(uint64_t at, const Entry& entry, std::vector<CommandVerdict>& verdicts,
                     std::vector<std::vector<BatchOutcome>>& batches) {
    position = at;
    answers.clear();
    if (entry == Entry{} || entry.shard != 0) return EntryVerdict::kMalformed;
    if (entry.incarnation == Incarnation()) return take_registration(entry, verdicts);
    auto sender = brokers.find(entry.incarnation.value());
    if (sender == brokers.end() || sender->second.nonce != entry.nonce.value()) {
      return EntryVerdict::kUnknownIncarnation;
    }
    if (!sender->second.is_live) return EntryVerdict::kFenced;
    if (entry.sequence.value() <= sender->second.last_sequence) return EntryVerdict::kRepeated;
    if (entry.sequence.value() > sender->second.last_sequence + 1) return EntryVerdict::kGap;
    sender->second.last_sequence = entry.sequence.value();
    sender->second.last_time = entry.time.value();
    raise_log_time();
    for (const Command& command : entry.commands) {
      verdicts.push_back(std::visit([&](const auto& c) { return run(sender->second, c); }, command));
      if (const auto* commit = std::get_if<CommitObject>(&command)) {
        for (const Run& r : commit->runs) batches.push_back(commit_run(sender->second, entry, *commit, r));
      }
    }
    raise_log_time();
    return EntryVerdict::kApplied;
  }

 private:
  using V = CommandVerdict;
  using B = BatchVerdict;

  void raise_log_time() {
    std::vector<int64_t> times;
    for (const auto& [incarnation, broker] : brokers) {
      if (broker.is_live) times.push_back(broker.last_time);
    }
    if (times.empty()) return;
    std::sort(times.begin(), times.end());
    log_time = std::max(log_time, times[(times.size() - 1) / 2]);
  }

  EntryVerdict take_registration(const Entry& entry, std::vector<CommandVerdict>& verdicts) {
    if (entry.sequence != EntrySequence(1) || entry.commands.size() != 1)
      return EntryVerdict::kBadRegistration;
    const auto* command = std::get_if<RegisterBroker>(&entry.commands[0]);
    if (command == nullptr || command->broker.value() < 0) return EntryVerdict::kBadRegistration;
    for (const auto& [incarnation, broker] : brokers) {
      if (broker.nonce == entry.nonce.value()) return EntryVerdict::kBadRegistration;
    }
    if (command->highest_level.value() < level) {
      verdicts.push_back(V::kLevelRefused);
      return EntryVerdict::kApplied;
    }
    for (auto& [incarnation, broker] : brokers) {
      if (broker.id == command->broker.value()) fence_one(broker);
    }
    ++groups.comings_and_goings;
    brokers[position] = {command->broker.value(), entry.nonce.value(), 1, entry.time.value(),
                         command->highest_level.value()};
    raise_log_time();
    verdicts.push_back(V::kDone);
    return EntryVerdict::kApplied;
  }

  V run(Broker&, const RegisterBroker&) { return V::kRefused; }
  V run(Broker&, const FenceBroker& c) {
    if (brokers.count(c.incarnation.value()) == 0) return V::kRefused;
    fence_one(brokers[c.incarnation.value()]);
    return V::kDone;
  }
  void fence_one(Broker& broker) {
    groups.comings_and_goings += broker.is_live;
    broker.is_live = false;
  }
  V run(Broker&, const Beat&) { return V::kDone; }
  V run(Broker&, const RaiseFeatureLevel& c) {
    for (const auto& [incarnation, broker] : brokers) {
      if (broker.is_live && broker.highest_level < c.level.value()) return V::kLevelRefused;
    }
    if (c.level.value() <= level) return V::kLevelRefused;
    level = c.level.value();
    return V::kDone;
  }
  V run(Broker&, const SetLimits& c) {
    if (c.producer_batches_kept == 0 || c.producer_batches_kept > 255 || c.partitions_max == 0 ||
        c.partitions_max > 10'000'000 || c.producer_expiry_ms > INT64_MAX) {
      return V::kRefused;
    }
    limits = c;
    return V::kDone;
  }
  V run(Broker&, const CreateTopic& c) {
    if (c.name.empty() || c.name.size() > 249 || c.partitions == 0 || c.id == Uuid{} || topics.count(c.id)) {
      return V::kRefused;
    }
    for (const auto& [id, topic] : topics) {
      if (topic.name == c.name) return V::kTopicExists;
    }
    if (partitions.size() + c.partitions > limits.partitions_max) return V::kOverLimit;
    Topic& topic = topics[c.id];
    topic.name = c.name;
    topic.producer_ids_before = next_producer_id;
    topic.configs = c.configs;
    for (uint32_t i = 0; i < c.partitions; ++i) {
      partitions[next_handle].topic = c.id;
      topic.partitions.push_back(next_handle++);
    }
    return V::kDone;
  }
  V run(Broker&, const DeleteTopic& c) {
    if (topics.count(c.id) == 0) return V::kUnknownTopic;
    for (uint32_t handle : topics[c.id].partitions) {
      partitions.erase(handle);
      groups.forget_partition(handle);
    }
    topics.erase(c.id);
    return V::kDone;
  }
  V run(Broker&, const AddPartitions& c) {
    if (topics.count(c.topic) == 0) return V::kUnknownTopic;
    std::vector<uint32_t>& handles = topics[c.topic].partitions;
    if (c.total <= handles.size()) return V::kRefused;
    if (partitions.size() + c.total - handles.size() > limits.partitions_max) return V::kOverLimit;
    while (handles.size() < c.total) {
      partitions[next_handle].topic = c.topic;
      handles.push_back(next_handle++);
    }
    return V::kDone;
  }
  V run(Broker&, const AlterTopicConfigs& c) {
    if (topics.count(c.topic) == 0) return V::kUnknownTopic;
    if (c.version != topics[c.topic].config_changes) return V::kStaleConfigs;
    topics[c.topic].config_changes += 1;
    for (const auto& [name, value] : c.changes) {
      topics[c.topic].configs.erase(name);
      if (value) topics[c.topic].configs[name] = *value;
    }
    return V::kDone;
  }
  template <class GroupCommand>
  V run(const Broker& sender, const GroupCommand& c) {
    groups.log_time = log_time;
    groups.live.clear();
    for (const auto& [incarnation, broker] : brokers) {
      if (broker.is_live) groups.live.insert(broker.id);
    }
    groups.partitions.clear();
    for (const auto& [handle, partition] : partitions) groups.partitions.insert(handle);
    groups.answer.reset();
    V verdict = groups.run(sender.id, c);
    answers.push_back(groups.answer.value_or(NaiveGroups::Answer{}));
    return verdict;
  }
  V run(Broker&, const CommitObject&) { return V::kDone; }
  V run(Broker&, const AdvanceGcFence& c) {
    if (c.epoch.value() <= fence) return V::kRefused;
    fence = c.epoch.value();
    return V::kDone;
  }
  // Whether an object is referenced is what the test looks up in the plans; here only what may not happen.
  V run(Broker&, const ObjectsDeleted& c) {
    V verdict = V::kDone;
    for (const ObjectId& id : c.objects) {
      auto known = objects.find(id);
      if (known == objects.end() || known->second.facts.epoch.value() >= fence || referenced.count(id) != 0) {
        verdict = V::kRefused;
      } else {
        objects.erase(known);
      }
    }
    return verdict;
  }
  V run(Broker&, const AllocateProducerIds& c) {
    if (c.count == 0) return V::kRefused;
    next_producer_id += c.count;
    return V::kDone;
  }
  V run(Broker&, const ExpireProducers& c) {
    if (c.idle_since > log_time - static_cast<int64_t>(limits.producer_expiry_ms)) return V::kRefused;
    for (auto& [handle, partition] : partitions) {
      std::erase_if(partition.producers, [&](const auto& p) { return p.second.last_time < c.idle_since; });
    }
    ids_at_expiry = next_producer_id;
    return V::kDone;
  }
  V run(Broker&, const SetLogStart& c) {
    auto partition = partitions.find(c.partition.value());
    if (partition == partitions.end()) return V::kUnknownTopic;
    int64_t& log_start = partition->second.log_start;
    if (c.log_start.value() < log_start || c.log_start.value() > partition->second.high_watermark) {
      return V::kRefused;
    }
    log_start = c.log_start.value();
    return V::kDone;
  }
  V run(Broker&, const SnapshotTaken& c) {
    if (c.position.value() >= position) return V::kRefused;
    if (!snapshots.empty() && c.position.value() <= snapshots.back()) return V::kRefused;
    if (c.predecessor.value() != 0 &&
        std::find(snapshots.begin(), snapshots.end(), c.predecessor.value()) == snapshots.end()) {
      return V::kRefused;
    }
    snapshots.push_back(c.position.value());
    if (snapshots.size() > 3) snapshots.erase(snapshots.begin());
    return V::kDone;
  }

  std::vector<BatchOutcome> commit_run(const Broker& sender, const Entry& entry, const CommitObject& c,
                                       const Run& r) {
    std::vector<BatchOutcome> all(r.producers.empty() ? 1 : r.producers.size());
    auto give = [&](B verdict) {
      for (BatchOutcome& outcome : all) outcome.verdict = verdict;
      return all;
    };
    if (c.epoch.value() < fence) return give(B::kObjectFenced);
    if (!is_possible(sender, c, r)) return give(B::kBadRun);
    Object& object = objects[c.object];
    if (object.decided.empty()) object.facts = c;
    if (!object.decided.insert(r.index).second) return give(B::kAlreadyCommitted);
    auto found = partitions.find(r.partition.value());
    if (found == partitions.end()) return give(B::kUnknownPartition);
    if (r.is_transactional) return give(B::kInvalidTxnState);
    Partition& partition = found->second;
    uint64_t at = r.position;
    for (size_t i = 0; i < all.size(); ++i) {
      uint32_t bytes = r.producers.empty() ? r.bytes : r.producers[i].bytes;
      uint32_t records = r.producers.empty() ? r.records : r.producers[i].records;
      all[i].log_start = Offset(partition.log_start);
      all[i].verdict = r.producers.empty() ? B::kAccepted : judge(partition, r.producers[i], all[i]);
      if (all[i].verdict == B::kAccepted) {
        all[i].base_offset = Offset(partition.high_watermark);
        if (r.is_log_append_time) {
          all[i].append_time = std::max(log_time, std::min(entry.time.value(), log_time + 60'000));
        }
        partition.stretches[partition.high_watermark] = {c.object, at, bytes, records};
        if (!r.producers.empty()) remember(partition, r.producers[i]);
        partition.high_watermark += records;
        referenced.insert(c.object);
      }
      at += bytes;
    }
    return all;
  }

  bool is_possible(const Broker& sender, const CommitObject& c, const Run& r) const {
    auto uploader = brokers.find(c.object.incarnation.value());
    if (uploader == brokers.end() || uploader->second.id != sender.id) return false;
    if (c.epoch.value() > fence || c.object.number == ObjectNumber(0)) return false;
    if (c.run_count > kRunsPerObjectMax || c.bytes >= kObjectBytesMax) return false;
    auto known = objects.find(c.object);
    if (known != objects.end()) {
      const CommitObject& f = known->second.facts;
      if (f.epoch != c.epoch || f.bytes != c.bytes || f.crc != c.crc || f.run_count != c.run_count)
        return false;
    }
    if (r.index >= c.run_count || r.bytes == 0 || r.records == 0) return false;
    if (r.position > c.bytes || r.position + r.bytes > c.bytes) return false;
    uint64_t bytes = 0;
    uint64_t records = 0;
    for (const ProducerBatch& b : r.producers) {
      if (b.bytes == 0 || b.records == 0 || b.records > INT32_MAX || b.producer_id.value() < -1) return false;
      if (b.producer_id.value() >= 0 && (b.epoch.value() < 0 || b.first_sequence.value() < 0)) return false;
      bytes += b.bytes;
      records += b.records;
    }
    return r.producers.empty() || (bytes == r.bytes && records == r.records);
  }

  B judge(const Partition& partition, const ProducerBatch& b, BatchOutcome& outcome) const {
    if (b.producer_id.value() == -1) return B::kAccepted;
    auto known = partition.producers.find(b.producer_id.value());
    if (known == partition.producers.end()) {
      bool may_start = b.first_sequence.value() == 0 || b.producer_id.value() < ids_at_expiry ||
                       b.producer_id.value() < topics.at(partition.topic).producer_ids_before;
      return may_start ? B::kAccepted : B::kOutOfOrder;
    }
    const Producer& p = known->second;
    if (b.epoch.value() < p.epoch) return B::kStaleEpoch;
    if (b.epoch.value() > p.epoch) return b.first_sequence.value() == 0 ? B::kAccepted : B::kOutOfOrder;
    for (const Remembered& r : p.batches) {
      if (last_of(r.first, r.records) == last_of(b.first_sequence.value(), b.records) &&
          r.first == b.first_sequence.value()) {
        outcome.base_offset = Offset(r.base_offset);
        return B::kDuplicate;
      }
    }
    int64_t last = last_of(p.batches.back().first, p.batches.back().records);
    int64_t expected = last == INT32_MAX ? 0 : last + 1;
    return expected == b.first_sequence.value() ? B::kAccepted : B::kOutOfOrder;
  }
  static int64_t last_of(int64_t first, uint32_t records) {
    int64_t last = first + records - 1;
    return last > INT32_MAX ? last - (int64_t{1} << 31) : last;
  }
  void remember(Partition& partition, const ProducerBatch& b) {
    if (b.producer_id.value() == -1) return;
    Producer& p = partition.producers[b.producer_id.value()];
    if (p.epoch != b.epoch.value()) p.batches.clear();
    p.epoch = b.epoch.value();
    p.last_time = log_time;
    p.batches.push_back({b.first_sequence.value(), b.records, partition.high_watermark});
    while (p.batches.size() > limits.producer_batches_kept) p.batches.erase(p.batches.begin());
  }

 public:
  // Objects that a stored run names: set by the test from the plans, before each entry.
  std::set<ObjectId> referenced;
};

}  // namespace varve::metadata
