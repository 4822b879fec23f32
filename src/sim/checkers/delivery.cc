#include "sim/checkers/delivery.h"

#include <optional>
#include <set>
#include <utility>

namespace varve::sim {
namespace {

std::string name_of(const Send& send) {
  return fmt::format("batch {} of producer {} ({}/{}/{})", send.number, send.producer, send.producer_id,
                     send.epoch, send.first_sequence);
}

// What lies below the log start was read by some and not by others.
void check_dense(const History& history, const PartitionKey& key, Offset start, Offset end,
                 Findings& findings) {
  Offset at = start;
  bool is_first = true;
  for (const auto& [base, placed] : history.contents(key)) {
    if (base.plus(placed.records) <= start) continue;
    // The log start may lie inside a batch.
    if (is_first && base < start) at = base;
    is_first = false;
    if (base >= end) {
      findings.add(fmt::format("{} had a batch at {}, above its end {}", key.to_string(), base, end));
      return;
    }
    findings.require(base <= at, "{} has nothing between {} and {}", key.to_string(), at, base);
    findings.require(base >= at, "{} has a batch at {} that overlaps the one before, up to {}",
                     key.to_string(), base, at);
    at = base.plus(placed.records);
  }
  findings.require(at == end, "{} has nothing between {} and its end {}", key.to_string(), at, end);
}

void check_send(const History& history, const Send& send, const std::set<PartitionKey>& certain,
                Findings& findings) {
  if (send.promise != Promise::kAcked || !certain.contains(send.at)) return;
  if (send.base_offset.plus(send.records) <= history.deleted_records(send.at).asked) return;
  const auto& contents = history.contents(send.at);
  auto there = contents.find(send.base_offset);
  findings.require(there != contents.end() && there->second.send == &send,
                   "{} was acknowledged at {} offset {} after {} ms and is not there", name_of(send),
                   send.at.to_string(), send.base_offset, send.acked_at.since_zero() / 1ms);
}

}  // namespace

void check_delivery(const History& history, TopicBook& topics, const BrokerExtents& extents,
                    Findings& findings) {
  std::set<PartitionKey> certain;
  for (const auto& [id, life] : topics.lives()) {
    if (!life.is_certain()) continue;
    for (uint32_t i = 0; i < life.partitions; ++i) {
      PartitionKey key{id, PartitionIndex(static_cast<int32_t>(i))};
      std::optional<std::pair<Offset, Offset>> first;
      for (const auto& [host, partitions] : extents) {
        auto found = partitions.find(key);
        if (found == partitions.end()) {
          findings.add(fmt::format("{} appeared on {} when everything had been read", key.to_string(), host));
          continue;
        }
        const auto& extent = found->second;
        if (!first) first = extent;
        findings.require(*first == extent, "{} is [{}, {}) on one broker and [{}, {}) on {}", key.to_string(),
                         first->first, first->second, extent.first, extent.second, host);
      }
      if (!first) continue;
      DeletedRecords deleted = history.deleted_records(key);
      findings.require(first->first >= deleted.acked && first->first <= deleted.asked,
                       "{} starts at {}, and its records were deleted up to {}, by request up to {}",
                       key.to_string(), first->first, deleted.acked, deleted.asked);
      certain.insert(key);
      check_dense(history, key, first->first, first->second, findings);
    }
  }
  for (const auto& [number, send] : history.sends()) check_send(history, *send, certain, findings);
}

void check_order(const History& history, Findings& findings) {
  constexpr int64_t kSequences = int64_t{1} << 31;
  for (const auto& [key, contents] : history.all_contents()) {
    std::map<std::pair<ProducerId, ProducerEpoch>, int64_t> next_sequences;
    std::map<uint64_t, uint64_t> places;
    std::map<uint64_t, Offset> seen;
    std::optional<Offset> end_before;
    for (const auto& [base, placed] : contents) {
      const Send& send = *placed.send;
      findings.require(send.promise != Promise::kNotStored,
                       "{} is in {} at {}, and its producer was told that it is not stored", name_of(send),
                       key.to_string(), base);
      auto [first, is_first] = seen.try_emplace(send.number, base);
      findings.require(is_first || !send.is_once, "{} is in {} twice, at {} and {}", name_of(send),
                       key.to_string(), first->second, base);
      // What nobody read between two batches may belong between their sequences.
      if (end_before != base) next_sequences.clear();
      end_before = base.plus(placed.records);
      if (send.producer_id != kNoProducerId) {
        auto [next, is_new] = next_sequences.try_emplace({send.producer_id, send.epoch}, 0);
        int64_t sequence = send.first_sequence.value();
        findings.require(is_new || next->second == sequence, "{} is in {} at {}, where sequence {} was due",
                         name_of(send), key.to_string(), base, next->second);
        next->second = (sequence + send.records) % kSequences;
      } else if (send.is_once) {
        uint64_t& place = places[send.connection];
        findings.require(place < send.place,
                         "{} is in {} at {}, after one that its connection {} sent later ({} {})",
                         name_of(send), key.to_string(), base, send.connection, place, send.place);
        place = send.place;
      }
    }
  }
}

}  // namespace varve::sim
