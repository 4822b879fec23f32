#include "metadata/state/producer_table.h"

namespace varve::metadata {

ProducerJudgement judge_batch(const PartitionProducer& producer, const ProducerBatch& batch) {
  if (batch.epoch < producer.epoch) return {.verdict = BatchVerdict::kStaleEpoch};
  if (batch.epoch > producer.epoch) {
    bool starts_afresh = batch.first_sequence == Sequence(0);
    return {.verdict = starts_afresh ? BatchVerdict::kAccepted : BatchVerdict::kOutOfOrder};
  }
  for (const KeptBatch& kept : producer.batches) {
    // Equal counts from equal firsts end at equal lasts.
    if (kept.first == batch.first_sequence && kept.records == batch.records) {
      return {.verdict = BatchVerdict::kDuplicate, .original_offset = kept.base_offset};
    }
  }
  bool is_next = batch.first_sequence == producer.next_sequence();
  return {.verdict = is_next ? BatchVerdict::kAccepted : BatchVerdict::kOutOfOrder};
}

void remember_batch(PartitionProducer& producer, const ProducerBatch& batch, int64_t base_offset,
                    int64_t log_time, uint32_t batches_kept) {
  if (producer.epoch != batch.epoch) producer.batches.clear();
  producer.epoch = batch.epoch;
  producer.last_time = log_time;
  if (producer.batches.size() >= batches_kept) {
    size_t surplus = producer.batches.size() - batches_kept + 1;
    producer.batches.erase(producer.batches.begin(),
                           producer.batches.begin() + static_cast<ptrdiff_t>(surplus));
  }
  if (producer.batches.capacity() == 0) producer.batches.reserve(batches_kept);
  producer.batches.push_back({batch.first_sequence, batch.records, base_offset});
}

}  // namespace varve::metadata
