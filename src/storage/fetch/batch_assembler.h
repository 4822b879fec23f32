// BatchAssembler: makes the answer for one partition out of runs' bytes. It walks the batches, checks them, and
// puts offset, leader epoch and append time into a copy of each head; what follows the head is referenced.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "storage/fetch/fetch_planner.h"

namespace varve::storage {

// Slices of copied and referenced bytes in turn; copies lie in few chunks.
class SliceWriter {
 public:
  // Room for `size` bytes, to be filled before the next call.
  MutableByteView extend(size_t size);
  void reference(Slice slice);
  std::vector<Slice> finish();

 private:
  static constexpr size_t kFirstChunkBytes = 1024;
  static constexpr size_t kChunkBytesMax = 64 * 1024;

  void cut();

  std::shared_ptr<uint8_t[]> chunk_;
  size_t chunk_bytes_ = 0;
  size_t used_ = 0;
  size_t cut_at_ = 0;
  std::vector<Slice> slices_;
};

// A batch of a run, found and checked.
struct FoundBatch {
  uint64_t position = 0;  // in the object
  uint32_t bytes = 0;
  Offset base_offset;
  uint32_t records = 0;
  int64_t max_timestamp = -1;  // as stored: the producer's
};

// Walks the batches of a run over bytes that may end before the run does. A value, on the stack of one call.
class RunWalker {
 public:
  enum class Step : uint8_t {
    kBatch,
    kEnd,       // of the run
    kNeedMore,  // bytes up to needed_to()
    kCorrupt,   // problem() says what
  };

  explicit RunWalker(const metadata::StoredRun& run)
      : run_(run), position_(run.position), offset_(run.base_offset) {}

  // The next batch's head; its bytes need not all be here, nor be checked. Go on with pass().
  Step next(const ObjectBytes& bytes, FoundBatch& found);
  // Goes past the batch that next() has found.
  void pass(const FoundBatch& batch);
  // Whether the batch is all here and its CRC holds; a batch that was checked before costs nothing.
  Step check(const ObjectBytes& bytes, const FoundBatch& batch);

  uint64_t needed_to() const { return needed_to_; }
  const std::string& problem() const { return problem_; }

 private:
  Step need(uint64_t to);
  Step corrupt(std::string problem);

  const metadata::StoredRun& run_;
  uint64_t position_;
  Offset offset_;
  uint64_t needed_to_ = 0;
  std::string problem_;
  std::vector<Slice> scratch_;
};

// Life: one partition of one fetch; runs are added in their order, until one ends with other than kRunDone. A value.
class BatchAssembler {
 public:
  enum class End : uint8_t {
    kRunDone,   // go on with the next run
    kFull,      // there is no room for more, or nothing more to be served
    kNeedMore,  // the same run again, with bytes up to needed_to()
    kCorrupt,
  };

  // `serve_unchecked` is the planted bug serve_corrupt_read.
  BatchAssembler(const PlannedPartition& plan, int32_t leader_epoch, bool serve_unchecked)
      : plan_(plan), leader_epoch_(leader_epoch), serve_unchecked_(serve_unchecked) {}

  // `bytes` begin at or before the run. After kNeedMore, and after a corrupt read, the run may be given again.
  End add(const metadata::StoredRun& run, const ObjectBytes& bytes);

  uint64_t needed_to() const { return needed_to_; }
  const std::string& problem() const { return problem_; }
  size_t bytes_taken() const { return bytes_taken_; }
  std::vector<Slice> finish() { return out_.finish(); }

 private:
  // Smaller batches are copied whole: two slices cost more than the copy.
  static constexpr size_t kCopiedBatchBytesMax = 1024;

  void take(const metadata::StoredRun& run, const ObjectBytes& bytes, const FoundBatch& batch);

  const PlannedPartition& plan_;
  const int32_t leader_epoch_;
  const bool serve_unchecked_;
  SliceWriter out_;
  size_t bytes_taken_ = 0;
  Offset taken_to_{-1};  // batches that begin below it are in the answer
  uint64_t needed_to_ = 0;
  std::string problem_;
  std::vector<Slice> scratch_;
};

}  // namespace varve::storage
