#include "storage/ingest/chain_table.h"

#include <algorithm>

namespace varve::storage {
namespace {

constexpr uint32_t kSequenceMask = 0x7fffffff;

Sequence sequence_after_batch(const AppendBatch& batch) {
  uint32_t next = static_cast<uint32_t>(batch.first_sequence.value()) + batch.records;
  return Sequence(static_cast<int32_t>(next & kSequenceMask));
}

// How far `sequence` lies beyond `from`, around the wrap; 2^30 and more mean behind.
uint32_t distance(Sequence from, Sequence sequence) {
  return (static_cast<uint32_t>(sequence.value()) - static_cast<uint32_t>(from.value())) & kSequenceMask;
}
constexpr uint32_t kBehindFrom = 1u << 30;

// nullopt: the producer is unknown, so it has to start at 0.
SequencePlace place_after(std::optional<Sequence> expected, const AppendBatch& batch) {
  uint32_t apart = distance(expected.value_or(Sequence(0)), batch.first_sequence);
  if (apart == 0) return SequencePlace::kNext;
  return apart < kBehindFrom || !expected ? SequencePlace::kAhead : SequencePlace::kBehind;
}

bool comes_before(const AppendBatch& a, const AppendBatch& b) {
  if (a.producer_epoch != b.producer_epoch) return a.producer_epoch < b.producer_epoch;
  uint32_t apart = distance(a.first_sequence, b.first_sequence);
  return apart != 0 && apart < kBehindFrom;
}

}  // namespace

Chain& ChainTable::find_or_make(const ChainKey& key) {
  std::unique_ptr<Chain>& slot = chains_[key];
  if (!slot) {
    slot = std::make_unique<Chain>();
    slot->key = key;
    slot->serial = next_serial_++;
  }
  return *slot;
}

Chain* ChainTable::find(const ChainKey& key) {
  auto found = chains_.find(key);
  return found == chains_.end() ? nullptr : found->second.get();
}

void ChainTable::close_one(Chain& chain) {
  CHECK(chain.open > 0);
  if (--chain.open > 0) return;
  CHECK(chain.held.empty() && chain.last_run == nullptr, "a chain ends with batches in it");
  chains_.erase(chain.key);
}

SequencePlace ChainTable::place(const Chain& chain, const AppendBatch& batch) const {
  const auto& expected = chain.expected;
  if (expected && batch.producer_epoch < expected->epoch) return SequencePlace::kBehind;
  if (expected && batch.producer_epoch == expected->epoch) {
    SequencePlace here = place_after(expected->sequence, batch);
    if (here != SequencePlace::kAhead) return here;
  }
  // What seems to be missing may have been stored through another broker.
  return place_after(next_sequence_(batch.partition, batch.producer_id, batch.producer_epoch), batch);
}

void ChainTable::let_through(Chain& chain, const AppendBatch& batch, SequencePlace place) {
  if (place == SequencePlace::kBehind) return;
  chain.expected = Chain::Expected{batch.producer_epoch, sequence_after_batch(batch)};
}

void ChainTable::hold(Chain& chain, IncomingBatch batch, MonotonicTime until) {
  batch.pending.held_until = until;
  auto at = std::upper_bound(
      chain.held.begin(), chain.held.end(), batch,
      [](const IncomingBatch& a, const IncomingBatch& b) { return comes_before(a.batch, b.batch); });
  chain.held.insert(at, std::move(batch));
  if (chain.held.size() == 1) holding_[chain.key.partition].emplace(chain.serial, &chain);
  update_hold(chain, std::min(chain.held_until, until));
}

std::optional<IncomingBatch> ChainTable::take_due(Chain& chain, MonotonicTime now) {
  if (chain.held.empty()) return std::nullopt;
  if (chain.held_until > now && place(chain, chain.held.front().batch) == SequencePlace::kAhead) {
    return std::nullopt;
  }
  IncomingBatch first = std::move(chain.held.front());
  chain.held.erase(chain.held.begin());
  MonotonicTime until = MonotonicTime::never();
  for (const IncomingBatch& batch : chain.held) until = std::min(until, batch.pending.held_until);
  update_hold(chain, until);
  return first;
}

std::vector<IncomingBatch> ChainTable::take_held(Chain& chain) {
  std::vector<IncomingBatch> held = std::move(chain.held);
  chain.held.clear();
  if (!held.empty()) update_hold(chain, MonotonicTime::never());
  return held;
}

void ChainTable::update_hold(Chain& chain, MonotonicTime until) {
  if (chain.held_until != MonotonicTime::never()) hold_ends_.erase({chain.held_until, chain.serial, &chain});
  chain.held_until = until;
  if (!chain.held.empty()) {
    hold_ends_.emplace(until, chain.serial, &chain);
    return;
  }
  auto partition = holding_.find(chain.key.partition);
  partition->second.erase(chain.serial);
  if (partition->second.empty()) holding_.erase(partition);
}

MonotonicTime ChainTable::next_hold_end() const {
  return hold_ends_.empty() ? MonotonicTime::never() : std::get<0>(*hold_ends_.begin());
}

std::vector<Chain*> ChainTable::holds_ended(MonotonicTime now) const {
  std::vector<Chain*> ended;
  for (const auto& [until, serial, chain] : hold_ends_) {
    if (until > now) break;
    ended.push_back(chain);
  }
  return ended;
}

std::vector<Chain*> ChainTable::holding(PartitionHandle partition) const {
  std::vector<Chain*> found;
  auto at = holding_.find(partition);
  if (at == holding_.end()) return found;
  for (const auto& [serial, chain] : at->second) found.push_back(chain);
  return found;
}

std::vector<Chain*> ChainTable::holding() const {
  std::vector<Chain*> found;
  for (const auto& [partition, chains] : holding_) {
    for (const auto& [serial, chain] : chains) found.push_back(chain);
  }
  return found;
}

}  // namespace varve::storage
