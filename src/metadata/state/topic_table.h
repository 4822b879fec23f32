// Topics, living by id and name, and the lives that a name has had.
#pragma once

#include <map>
#include <string>

#include "metadata/state/chunk_changes.h"
#include "metadata/state/state.h"

namespace varve::metadata {

// The newest life of a topic's name, at the handle of its first partition; kept when the topic is deleted, so
// that the next life has a higher number.
struct TopicRecord {
  PartitionHandle first;
  std::string name;
  uint32_t life = 1;
  // Producer ids below were handed out before the topic was made: a producer that is unknown to the topic may
  // have written to an earlier one of the name, and starts anywhere.
  int64_t producer_ids_before = 0;
  const TopicView* view = nullptr;  // null: deleted

  bool is_alive() const { return view != nullptr; }
};

// Views and records are nodes and stay where they are. Owned by one state; not thread-safe.
class TopicTable {
 public:
  explicit TopicTable(ChunkChanges& changes) : changes_(&changes) {}

  const TopicView* find(std::string_view name) const;
  const TopicView* find(const Uuid& id) const;
  // Of a living topic that has partitions.
  const TopicRecord& record_of(const TopicView& topic) const;

  // The topic starts without partitions. The name must not be alive, the id not be known.
  const TopicRecord& add(const CreateTopic& command, PartitionHandle first, int64_t producer_ids_before);
  // The partition's index is the count of those before.
  PartitionIndex add_partition(const TopicRecord& record, PartitionHandle handle);
  // The topic must be known.
  void alter_configs(const AlterTopicConfigs& command);
  void remove(const Uuid& id);

  // From a snapshot, without partitions; false if it contradicts what was restored before. The view of a deleted
  // topic has a zero id.
  bool restore(TopicRecord record, TopicView view);
  // From a snapshot, after all: false if a living topic has no partition, or another first one.
  bool finish_restore() const;

  const std::map<Uuid, TopicView>& by_id() const { return by_id_; }
  const std::map<PartitionHandle, TopicRecord>& records() const { return records_; }

 private:
  // Before the record at `first` changes.
  void touch(PartitionHandle first);

  ChunkChanges* changes_;
  std::map<Uuid, TopicView> by_id_;
  std::map<PartitionHandle, TopicRecord> records_;
  std::map<std::string, PartitionHandle, std::less<>> newest_;
};

}  // namespace varve::metadata
