#include "metadata/state/topic_table.h"

namespace varve::metadata {

const TopicView* TopicTable::find(std::string_view name) const {
  auto newest = newest_.find(name);
  return newest == newest_.end() ? nullptr : records_.at(newest->second).view;
}

const TopicView* TopicTable::find(const Uuid& id) const {
  auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &at->second;
}

const TopicRecord& TopicTable::record_of(const TopicView& topic) const {
  return records_.at(topic.partitions.front());
}

const TopicRecord& TopicTable::add(const CreateTopic& command, PartitionHandle first,
                                   int64_t producer_ids_before) {
  TopicRecord record{.first = first, .name = command.name, .producer_ids_before = producer_ids_before};
  auto [newest, is_new] = newest_.try_emplace(command.name, first);
  if (!is_new) {
    // The deleted life gives its number on and leaves.
    record.life = records_.at(newest->second).life + 1;
    touch(newest->second);
    records_.erase(newest->second);
    newest->second = first;
  }
  TopicView& view = by_id_[command.id];
  view.id = command.id;
  view.name = command.name;
  view.life = record.life;
  view.configs = command.configs;
  record.view = &view;
  touch(first);
  return records_.emplace(first, std::move(record)).first->second;
}

PartitionIndex TopicTable::add_partition(const TopicRecord& record, PartitionHandle handle) {
  std::vector<PartitionHandle>& partitions = by_id_.at(record.view->id).partitions;
  partitions.push_back(handle);
  return PartitionIndex(static_cast<int32_t>(partitions.size() - 1));
}

void TopicTable::alter_configs(const AlterTopicConfigs& command) {
  TopicView& topic = by_id_.at(command.topic);
  touch(topic.partitions.front());
  for (const auto& [name, value] : command.changes) {
    if (value) {
      topic.configs.insert_or_assign(name, *value);
    } else {
      topic.configs.erase(name);
    }
  }
  ++topic.configs_version;
}

void TopicTable::remove(const Uuid& id) {
  auto at = by_id_.find(id);
  CHECK(at != by_id_.end());
  TopicRecord& record = records_.at(at->second.partitions.front());
  touch(record.first);
  record.view = nullptr;
  record.producer_ids_before = 0;
  by_id_.erase(at);
}

bool TopicTable::restore(TopicRecord record, TopicView view) {
  if (!newest_.try_emplace(record.name, record.first).second) return false;
  if (!view.id.is_zero()) {
    auto [at, is_new] = by_id_.try_emplace(view.id, std::move(view));
    if (!is_new) return false;
    record.view = &at->second;
  }
  return records_.emplace(record.first, std::move(record)).second;
}

bool TopicTable::finish_restore() const {
  for (const auto& [first, record] : records_) {
    if (!record.is_alive()) continue;
    const std::vector<PartitionHandle>& partitions = record.view->partitions;
    if (partitions.empty() || partitions.front() != first) return false;
  }
  return true;
}

void TopicTable::touch(PartitionHandle first) {
  changes_->touch({ChunkKind::kPartitions, first.value() / kPartitionsPerBlock});
}

}  // namespace varve::metadata
