#include "metadata/state/partition_table.h"

#include <algorithm>

namespace varve::metadata {
namespace {

size_t block_number(PartitionHandle handle) { return handle.value() / kPartitionsPerBlock; }
size_t place_in_block(PartitionHandle handle) { return handle.value() % kPartitionsPerBlock; }

ChunkKey history_chunk(size_t block, uint64_t page) {
  return {ChunkKind::kHistory, block, page / kPagesPerHistoryChunk};
}

// Whether `next` continues `last` byte for byte, so that one run can stand for both.
bool continues(const CompactRun& last, const CompactRun& next) {
  if (last.object == nullptr || last.object != next.object || last.flags != next.flags) return false;
  if (last.position + last.bytes != next.position || last.end_offset() != next.base_offset) return false;
  if ((last.flags & CompactRun::kLogAppendTime) != 0 && last.max_timestamp != next.max_timestamp)
    return false;
  return last.bytes <= UINT32_MAX - next.bytes && last.records <= UINT32_MAX - next.records;
}

}  // namespace

const Partition* PartitionTable::find(PartitionHandle handle) const {
  const PartitionBlock* in = block(block_number(handle));
  if (in == nullptr) return nullptr;
  const Partition& partition = in->partitions[place_in_block(handle)];
  return partition.is_alive() ? &partition : nullptr;
}

Partition* PartitionTable::find(PartitionHandle handle) {
  return const_cast<Partition*>(static_cast<const PartitionTable*>(this)->find(handle));
}

PartitionHandle PartitionTable::add(const TopicRecord& topic, PartitionIndex index) {
  PartitionHandle handle = next_handle_;
  touch_block(block_number(handle));
  ++next_handle_;
  Partition* partition = restore(handle);
  partition->topic = &topic;
  partition->index = index;
  return handle;
}

void PartitionTable::remove(PartitionHandle handle, DereferenceMoment now) {
  Partition* partition = find(handle);
  CHECK(partition != nullptr);
  PartitionBlock& in = *blocks_[block_number(handle)];
  size_t number = block_number(handle);
  touch_block(number);
  partition->runs.remove_below(
      INT64_MAX,
      [&](const CompactRun& run) {
        if (run.object != nullptr) objects_->remove_reference(*run.object, now, /*is_readable=*/false);
      },
      [&](uint64_t page) { touch_page(number, page); }, [&](uint64_t page) { in.page_owners.erase(page); });
  *partition = {};
  --alive_;
  if (--in.alive == 0) blocks_[number].reset();
}

void PartitionTable::append(PartitionHandle handle, Partition& partition, CompactRun run) {
  before_change(handle);
  run.base_offset = partition.high_watermark;
  partition.high_watermark = run.end_offset();
  CompactRun* last = partition.runs.open_run();
  if (last != nullptr && continues(*last, run)) {
    last->bytes += run.bytes;
    last->records += run.records;
    last->max_timestamp = std::max(last->max_timestamp, run.max_timestamp);
    return;
  }
  if (run.object != nullptr) objects_->add_reference(*run.object);
  if (!partition.runs.push_back(run)) return;
  PartitionBlock& in = *blocks_[block_number(handle)];
  touch_page(block_number(handle), in.next_page);
  uint64_t page = in.next_page++;
  partition.runs.seal_tail(page);
  in.page_owners.emplace(page, handle);
}

void PartitionTable::set_log_start(PartitionHandle handle, Partition& partition, int64_t log_start,
                                   DereferenceMoment now) {
  size_t number = block_number(handle);
  PartitionBlock& in = *blocks_[number];
  before_change(handle);
  partition.log_start = log_start;
  partition.runs.remove_below(
      log_start,
      [&](const CompactRun& run) {
        if (run.object != nullptr) objects_->remove_reference(*run.object, now, /*is_readable=*/true);
      },
      [&](uint64_t page) { touch_page(number, page); }, [&](uint64_t page) { in.page_owners.erase(page); });
}

void PartitionTable::before_change(PartitionHandle handle) {
  size_t number = block_number(handle);
  PartitionBlock& in = *blocks_[number];
  if (in.cut) {
    auto [part, is_new] = in.cut->parts.try_emplace(static_cast<uint32_t>(place_in_block(handle)));
    if (is_new) part->second = changes_->encode_part(handle);
  }
  if (in.is_dirty) return;
  in.is_dirty = true;
  changes_->mark({ChunkKind::kPartitions, number});
}

void PartitionTable::touch_block(size_t number) {
  PartitionBlock* in = block(number);
  if (in != nullptr && in->is_dirty && !in->cut) return;
  changes_->touch({ChunkKind::kPartitions, number});
  if (in != nullptr) in->is_dirty = true;
}

void PartitionTable::touch_page(size_t number, uint64_t page) {
  changes_->touch(history_chunk(number, page));
}

void PartitionTable::begin_cut(size_t number) {
  PartitionBlock* in = block(number);
  if (in == nullptr) return;
  in->is_dirty = false;
  in->cut = std::make_unique<BlockCut>(BlockCut{.alive = in->alive, .next_page = in->next_page, .parts = {}});
}

void PartitionTable::end_cut(size_t number) {
  if (PartitionBlock* in = block(number)) in->cut.reset();
}

void PartitionTable::mark_clean(size_t number) {
  if (PartitionBlock* cleaned = block(number)) cleaned->is_dirty = false;
}

Partition* PartitionTable::restore(PartitionHandle handle) {
  if (handle >= next_handle_) return nullptr;
  PartitionBlock& in = block_for(handle);
  Partition& partition = in.partitions[place_in_block(handle)];
  if (partition.is_alive()) return nullptr;
  ++in.alive;
  ++alive_;
  return &partition;
}

PartitionBlock& PartitionTable::block_for(PartitionHandle handle) {
  size_t number = block_number(handle);
  if (number >= blocks_.size()) blocks_.resize(number + 1);
  if (!blocks_[number]) blocks_[number] = std::make_unique<PartitionBlock>();
  return *blocks_[number];
}

}  // namespace varve::metadata
