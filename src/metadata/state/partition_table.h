// Partitions by handle, in blocks that are also the unit of snapshots.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "metadata/state/object_table.h"
#include "metadata/state/producer_table.h"
#include "metadata/state/run_list.h"
#include "metadata/state/topic_table.h"

namespace varve::metadata {

struct Partition {
  const TopicRecord* topic = nullptr;  // null: not alive
  PartitionIndex index;
  int64_t log_start = 0;
  int64_t high_watermark = 0;
  RunList runs;
  std::unique_ptr<ProducerTable> producers;  // null while there is none

  bool is_alive() const { return topic != nullptr; }
};

// What a cut needs of a block that it has not encoded yet (ChunkChanges).
struct BlockCut {
  uint32_t alive = 0;
  uint64_t next_page = 0;
  // By place: partitions that changed since, encoded as they were.
  std::map<uint32_t, std::vector<uint8_t>> parts;
};

// The partitions with handles from number * kPartitionsPerBlock on. It goes when its last partition does.
struct PartitionBlock {
  std::array<Partition, kPartitionsPerBlock> partitions;
  uint32_t alive = 0;
  bool is_dirty = false;  // saves a look into the set of dirty chunks for each run
  uint64_t next_page = 0;
  std::map<uint64_t, PartitionHandle> page_owners;  // sealed pages, by number
  std::unique_ptr<BlockCut> cut;                    // null if no cut waits for the block
};

// A lookup is two loads. Dead handles cost memory only while their block lives. Owned by one state; not
// thread-safe.
class PartitionTable {
 public:
  PartitionTable(ObjectTable& objects, ChunkChanges& changes) : objects_(&objects), changes_(&changes) {}

  // Null if the partition does not live.
  Partition* find(PartitionHandle handle);
  const Partition* find(PartitionHandle handle) const;
  PartitionHandle next_handle() const { return next_handle_; }
  uint64_t alive() const { return alive_; }

  // Gives the next handle to a partition of the topic.
  PartitionHandle add(const TopicRecord& topic, PartitionIndex index);
  // Dereferences its objects for good: nobody may read them any more.
  void remove(PartitionHandle handle, DereferenceMoment now);

  // Adds a run at the high watermark, which it raises, or extends the newest one if `run` continues it in the
  // same object; takes the reference.
  void append(PartitionHandle handle, Partition& partition, CompactRun run);
  // Raises the log start and dereferences the runs wholly below.
  void set_log_start(PartitionHandle handle, Partition& partition, int64_t log_start, DereferenceMoment now);
  // To be called before a living partition is changed by other means.
  void before_change(PartitionHandle handle);

  size_t blocks() const { return blocks_.size(); }
  PartitionBlock* block(size_t number) { return number < blocks_.size() ? blocks_[number].get() : nullptr; }
  const PartitionBlock* block(size_t number) const {
    return number < blocks_.size() ? blocks_[number].get() : nullptr;
  }
  // The hash of the block is known again.
  void mark_clean(size_t block);
  // A cut begins to wait for the block as it is now, or has it.
  void begin_cut(size_t block);
  void end_cut(size_t block);

  // From a snapshot: handles below `next` were given; a partition restored must be among them and not alive.
  void restore_next_handle(PartitionHandle next) { next_handle_ = next; }
  Partition* restore(PartitionHandle handle);

 private:
  PartitionBlock& block_for(PartitionHandle handle);
  // Before partitions come, go, or all change.
  void touch_block(size_t number);
  void touch_page(size_t block, uint64_t page);

  ObjectTable* objects_;
  ChunkChanges* changes_;
  std::vector<std::unique_ptr<PartitionBlock>> blocks_;
  PartitionHandle next_handle_;
  uint64_t alive_ = 0;
};

}  // namespace varve::metadata
