#include "sim/storage/storage_ledger.h"

#include <algorithm>
#include <set>

#include "storage/format/test_batch.h"

namespace varve::sim {

using protocol::records::BatchView;

SentBatch& StorageLedger::make(PartitionHandle partition, uint32_t records, size_t value_bytes,
                               ProducerId producer_id, Sequence first_sequence, uint64_t connection) {
  SentBatch batch;
  batch.name = next_name_;
  batch.partition = partition;
  batch.records = records;
  batch.producer_id = producer_id;
  batch.first_sequence = first_sequence;
  batch.connection = connection;
  batch.place = sent_.size();
  storage::TestBatch content{
      .value_bytes = value_bytes,
      .fill = static_cast<char>('a' + next_name_ % 26),
      .producer_id = producer_id,
      .producer_epoch = producer_id == kNoProducerId ? kNoProducerEpoch : ProducerEpoch(0),
      .first_sequence = first_sequence};
  content.timestamps.assign(records, next_name_);
  batch.bytes = storage::make_batch(content);
  next_name_ += 1'000;
  return sent_[batch.name] = std::move(batch);
}

void StorageLedger::acknowledged(const SentBatch& batch, const storage::AppendResult& result) {
  findings_.require(result.base_offset.value() >= 0, "batch {} was acknowledged at offset {}", batch.name,
                    result.base_offset);
  auto [at, is_new] = acknowledged_[batch.partition].emplace(result.base_offset, batch.name);
  findings_.require(is_new || at->second == batch.name,
                    "batches {} and {} were acknowledged at offset {} of {}", at->second, batch.name,
                    result.base_offset, batch.partition);
  ++acknowledged_count_;
}

std::optional<Offset> StorageLedger::acknowledged_offset(PartitionHandle partition, uint64_t n) const {
  auto found = acknowledged_.find(partition);
  if (found == acknowledged_.end() || found->second.empty()) return std::nullopt;
  return std::next(found->second.begin(), static_cast<ptrdiff_t>(n % found->second.size()))->first;
}

void StorageLedger::forget(PartitionHandle partition) {
  acknowledged_.erase(partition);
  std::erase_if(promised_, [&](BatchName name) { return sent_.at(name).partition == partition; });
}

std::vector<StoredBatch> StorageLedger::read(PartitionHandle partition, Offset offset,
                                             const storage::FetchedPartition& fetched) {
  std::vector<uint8_t> all;
  for (const Slice& slice : fetched.records) all.insert(all.end(), slice.view().begin(), slice.view().end());
  std::vector<StoredBatch> batches;
  ByteView rest = all;
  while (!rest.empty()) {
    auto view = BatchView::first_of(rest);
    if (!view || !view->checksum_matches()) {
      findings_.add(
          fmt::format("a fetch of {} from {} was answered with a corrupt batch", partition, offset));
      return {};
    }
    const auto& header = view->header();
    StoredBatch batch{header.base_offset, header.base_timestamp.value(),
                      static_cast<uint32_t>(header.record_count)};
    auto sent = sent_.find(batch.name);
    bool is_same = sent != sent_.end() && sent->second.partition == partition &&
                   std::equal(view->bytes().begin() + 16, view->bytes().end(), sent->second.bytes.data() + 16,
                              sent->second.bytes.data() + sent->second.bytes.size());
    findings_.require(is_same, "{} has a batch at {} that nobody sent so", partition, batch.base_offset);
    batches.push_back(batch);
    rest = rest.subspan(view->bytes().size());
  }
  if (!batches.empty()) {
    Offset first_end = batches.front().base_offset.plus(batches.front().records);
    findings_.require(batches.front().base_offset <= offset && first_end > offset,
                      "a fetch of {} from {} was answered from {}", partition, offset,
                      batches.front().base_offset);
    // A batch known to be acknowledged at this very offset.
    auto acknowledged = acknowledged_[partition].find(batches.front().base_offset);
    if (acknowledged != acknowledged_[partition].end()) {
      findings_.require(acknowledged->second == batches.front().name,
                        "{} has batch {} at {}, where {} was acknowledged", partition, batches.front().name,
                        batches.front().base_offset, acknowledged->second);
    }
  }
  return batches;
}

void StorageLedger::check_partition(PartitionHandle partition, const std::vector<StoredBatch>& stored,
                                    Offset high_watermark) {
  std::map<Offset, BatchName> at;
  std::set<BatchName> seen;
  std::map<std::pair<bool, int64_t>, const SentBatch*> last_of;  // of each producer, or connection
  Offset next(0);
  for (const StoredBatch& batch : stored) {
    findings_.require(batch.base_offset == next, "{} goes on at {} instead of {}", partition,
                      batch.base_offset, next);
    next = batch.base_offset.plus(batch.records);
    at[batch.base_offset] = batch.name;
    found_.emplace(batch.name, batch.base_offset);
    findings_.require(seen.insert(batch.name).second, "{} has batch {} twice", partition, batch.name);
    auto sent = sent_.find(batch.name);
    if (sent == sent_.end()) continue;  // read() has said so
    bool is_producer = sent->second.producer_id != kNoProducerId;
    int64_t chain =
        is_producer ? sent->second.producer_id.value() : static_cast<int64_t>(sent->second.connection);
    const SentBatch*& last = last_of[{is_producer, chain}];
    bool is_in_order = last == nullptr || (is_producer ? last->first_sequence < sent->second.first_sequence
                                                       : last->place < sent->second.place);
    findings_.require(is_in_order, "{} has batch {} behind a later one of its chain", partition, batch.name);
    last = &sent->second;
  }
  findings_.require(next == high_watermark, "{} ends at {}, its high watermark is {}", partition, next,
                    high_watermark);
  for (const auto& [offset, name] : acknowledged_[partition]) {
    auto found = at.find(offset);
    findings_.require(found != at.end() && found->second == name,
                      "batch {} was acknowledged at {} of {}, and is not there", name, offset, partition);
  }
}

void StorageLedger::check_promises() {
  for (BatchName name : promised_) {
    findings_.require(found_.contains(name),
                      "batch {} was promised by a broker that did not crash, and is not there", name);
  }
}

}  // namespace varve::sim
