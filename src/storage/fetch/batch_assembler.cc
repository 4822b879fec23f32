#include "storage/fetch/batch_assembler.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "protocol/records/batch.h"

namespace varve::storage {

namespace records = protocol::records;

MutableByteView SliceWriter::extend(size_t size) {
  if (size > chunk_bytes_ - used_) {
    cut();
    chunk_bytes_ = std::max(size, std::clamp(2 * chunk_bytes_, kFirstChunkBytes, kChunkBytesMax));
    chunk_ = std::make_shared_for_overwrite<uint8_t[]>(chunk_bytes_);
    used_ = cut_at_ = 0;
  }
  MutableByteView room(chunk_.get() + used_, size);
  used_ += size;
  return room;
}

void SliceWriter::reference(Slice slice) {
  cut();
  slices_.push_back(std::move(slice));
}

std::vector<Slice> SliceWriter::finish() {
  cut();
  return std::move(slices_);
}

void SliceWriter::cut() {
  if (used_ == cut_at_) return;
  slices_.emplace_back(chunk_, ByteView(chunk_.get() + cut_at_, used_ - cut_at_));
  cut_at_ = used_;
}

namespace {

// Copies the first `to.size()` bytes of the slices.
void gather(const std::vector<Slice>& slices, MutableByteView to) {
  size_t done = 0;
  for (const Slice& slice : slices) {
    size_t part = std::min(slice.size(), to.size() - done);
    std::memcpy(to.data() + done, slice.data(), part);
    done += part;
    if (done == to.size()) return;
  }
}

}  // namespace

RunWalker::Step RunWalker::need(uint64_t to) {
  needed_to_ = to;
  return Step::kNeedMore;
}

RunWalker::Step RunWalker::corrupt(std::string problem) {
  problem_ = std::move(problem);
  return Step::kCorrupt;
}

RunWalker::Step RunWalker::next(const ObjectBytes& bytes, FoundBatch& found) {
  uint64_t end = run_.position + run_.bytes;
  if (position_ == end) {
    if (offset_ == run_.end_offset()) return Step::kEnd;
    return corrupt(fmt::format("the run ends at offset {} instead of {}", offset_, run_.end_offset()));
  }
  uint64_t head_end = position_ + records::kBatchHeaderBytes;
  if (head_end > end) return corrupt(fmt::format("no room for a batch at {}", position_));
  if (!bytes.covers(position_, head_end)) return need(head_end);
  uint8_t head[records::kBatchHeaderBytes];
  scratch_.clear();
  bytes.slice(position_, head_end, scratch_);
  gather(scratch_, head);
  records::BatchHeader header = records::BatchHeader::decode(head);
  uint64_t batch_bytes =
      static_cast<uint64_t>(static_cast<uint32_t>(header.batch_length)) + records::kBatchOverheadBytes;
  if (header.magic != records::kMagicV2 || header.batch_length < 0 ||
      batch_bytes < records::kBatchHeaderBytes || batch_bytes > end - position_) {
    return corrupt(fmt::format("no batch begins at {}", position_));
  }
  int64_t records_left = run_.end_offset().value() - offset_.value();
  if (header.record_count <= 0 || header.last_offset_delta != header.record_count - 1 ||
      header.record_count > records_left || header.transactional() != run_.is_transactional) {
    return corrupt(fmt::format("the batch at {} is not of its run", position_));
  }
  found = {.position = position_,
           .bytes = static_cast<uint32_t>(batch_bytes),
           .base_offset = offset_,
           .records = static_cast<uint32_t>(header.record_count),
           .max_timestamp = header.max_timestamp.value()};
  return Step::kBatch;
}

void RunWalker::pass(const FoundBatch& batch) {
  position_ = batch.position + batch.bytes;
  offset_ = batch.base_offset.plus(batch.records);
}

RunWalker::Step RunWalker::check(const ObjectBytes& bytes, const FoundBatch& batch) {
  uint64_t end = batch.position + batch.bytes;
  if (!bytes.covers(batch.position, end)) return need(end);
  if (bytes.is_verified(batch.position, end)) return Step::kBatch;
  uint8_t head[records::kBatchHeaderBytes];
  scratch_.clear();
  bytes.slice(batch.position, batch.position + sizeof(head), scratch_);
  gather(scratch_, head);
  scratch_.clear();
  bytes.slice(batch.position + records::kAttributesAt, end, scratch_);
  uint32_t crc = 0;
  for (const Slice& slice : scratch_) crc = crc32c_extend(crc, slice.view());
  if (crc != records::BatchHeader::decode(head).crc) {
    return corrupt(fmt::format("the batch at {} fails its CRC", batch.position));
  }
  bytes.mark_verified(batch.position, end);
  return Step::kBatch;
}

BatchAssembler::End BatchAssembler::add(const metadata::StoredRun& run, const ObjectBytes& bytes) {
  RunWalker walker(run);
  FoundBatch batch;
  while (true) {
    bool must_take = plan_.must_progress && bytes_taken_ == 0;
    RunWalker::Step step = walker.next(bytes, batch);
    if (step == RunWalker::Step::kBatch) {
      if (batch.base_offset >= plan_.end) return End::kFull;
      bool is_wanted = batch.base_offset.plus(batch.records) > plan_.from && batch.base_offset >= taken_to_;
      if (!is_wanted) {
        walker.pass(batch);
        continue;
      }
      if (bytes_taken_ + batch.bytes > plan_.bytes_max && !must_take) return End::kFull;
      step = walker.check(bytes, batch);
      if (step == RunWalker::Step::kCorrupt && serve_unchecked_) step = RunWalker::Step::kBatch;
    }
    switch (step) {
      case RunWalker::Step::kBatch:
        take(run, bytes, batch);
        walker.pass(batch);
        break;
      case RunWalker::Step::kEnd:
        return End::kRunDone;
      case RunWalker::Step::kNeedMore:
        needed_to_ = walker.needed_to();
        return End::kNeedMore;
      case RunWalker::Step::kCorrupt:
        problem_ = walker.problem();
        return End::kCorrupt;
    }
  }
}

void BatchAssembler::take(const metadata::StoredRun& run, const ObjectBytes& bytes, const FoundBatch& batch) {
  scratch_.clear();
  bytes.slice(batch.position, batch.position + batch.bytes, scratch_);
  size_t copied = batch.bytes <= kCopiedBatchBytesMax ? batch.bytes : records::kBatchHeaderBytes;
  MutableByteView head = out_.extend(copied);
  gather(scratch_, head);
  records::set_base_offset(head, batch.base_offset);
  records::set_partition_leader_epoch(head, leader_epoch_);
  if (run.is_log_append_time) records::stamp_log_append_time(head, WallTime(run.append_time));
  size_t skip = copied;
  for (const Slice& slice : scratch_) {
    if (skip < slice.size()) out_.reference(slice.sub(skip, slice.size() - skip));
    skip -= std::min(skip, slice.size());
  }
  bytes_taken_ += batch.bytes;
  taken_to_ = batch.base_offset.plus(batch.records);
}

}  // namespace varve::storage
