// ChainTable: the chains with open batches, and the batches held because their predecessor is missing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "storage/ingest/pending.h"

namespace varve::storage {

// Where a batch stands to what its chain, or cluster state, expects next.
enum class SequencePlace : uint8_t {
  kNext,
  kBehind,  // seen before, or of an older epoch: apply decides
  kAhead,   // of a gap, or of a producer that state does not know
};

// Owned by IngestBuffer; lives on the core. Chains are made by their first open batch and end with their last.
class ChainTable {
 public:
  using NextSequence = std::function<std::optional<Sequence>(PartitionHandle, ProducerId, ProducerEpoch)>;

  explicit ChainTable(NextSequence next_sequence) : next_sequence_(std::move(next_sequence)) {}

  Chain& find_or_make(const ChainKey& key);
  Chain* find(const ChainKey& key);
  // To be called when a batch of the chain got its verdict; frees the chain with the last one.
  void close_one(Chain& chain);
  size_t size() const { return chains_.size(); }

  SequencePlace place(const Chain& chain, const AppendBatch& batch) const;
  // The batch goes into the buffer: the next one is expected behind it.
  void let_through(Chain& chain, const AppendBatch& batch, SequencePlace place);

  void hold(Chain& chain, IncomingBatch batch, MonotonicTime until);
  // Removes and gives the first held batch if it is due: its predecessor is no longer missing, or a held batch at
  // or behind it in line has waited until `now`.
  std::optional<IncomingBatch> take_due(Chain& chain, MonotonicTime now);
  // Removes all held batches of the chain.
  std::vector<IncomingBatch> take_held(Chain& chain);
  MonotonicTime next_hold_end() const;
  // Chains with a hold that ends by `now`; chains that hold batches of the partition; all that hold.
  std::vector<Chain*> holds_ended(MonotonicTime now) const;
  std::vector<Chain*> holding(PartitionHandle partition) const;
  std::vector<Chain*> holding() const;

 private:
  void update_hold(Chain& chain, MonotonicTime until);

  NextSequence next_sequence_;
  uint64_t next_serial_ = 1;
  std::unordered_map<ChainKey, std::unique_ptr<Chain>, ChainKeyHash> chains_;
  std::set<std::tuple<MonotonicTime, uint64_t, Chain*>> hold_ends_;
  std::map<PartitionHandle, std::map<uint64_t, Chain*>> holding_;
};

}  // namespace varve::storage
