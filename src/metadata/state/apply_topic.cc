// Topics: made, widened, configured, deleted.
#include "base/limits.h"
#include "metadata/state/apply.h"

namespace varve::metadata {

bool Applier::has_room_for(uint32_t partitions) const {
  return state_.partitions.alive() + partitions <= state_.limits.partitions_max &&
         partitions <= UINT32_MAX - state_.partitions.next_handle().value();
}

void Applier::add_partitions(const TopicRecord& topic, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    PartitionHandle handle = state_.partitions.next_handle();
    state_.partitions.add(topic, state_.topics.add_partition(topic, handle));
  }
}

CommandOutcome Applier::run(const CreateTopic& command) {
  if (command.name.empty() || command.name.size() > kTopicNameCharsMax || command.partitions == 0 ||
      command.id.is_zero() || state_.topics.find(command.id) != nullptr) {
    return refuse(Rule::kBadTopic);
  }
  if (state_.topics.find(command.name) != nullptr) return refuse(CommandVerdict::kTopicExists);
  if (!has_room_for(command.partitions)) return refuse(CommandVerdict::kOverLimit);
  PartitionHandle first = state_.partitions.next_handle();
  add_partitions(state_.topics.add(command, first, state_.next_producer_id), command.partitions);
  ++state_.image_version;
  return {};
}

CommandOutcome Applier::run(const DeleteTopic& command) {
  const TopicView* topic = state_.topics.find(command.id);
  if (topic == nullptr) return refuse(CommandVerdict::kUnknownTopic);
  for (PartitionHandle handle : topic->partitions) {
    state_.partitions.remove(handle, state_.now());
    outcome_.changed_partitions.push_back(handle);
  }
  state_.groups.drop_offsets(topic->partitions);
  state_.topics.remove(command.id);
  ++state_.image_version;
  return {};
}

// The handles of a topic's partitions rise with their indexes, but have gaps where others were made meanwhile.
CommandOutcome Applier::run(const AddPartitions& command) {
  const TopicView* topic = state_.topics.find(command.topic);
  if (topic == nullptr) return refuse(CommandVerdict::kUnknownTopic);
  if (command.total <= topic->partitions.size()) return refuse(Rule::kBadCount);
  uint32_t added = command.total - static_cast<uint32_t>(topic->partitions.size());
  if (!has_room_for(added)) return refuse(CommandVerdict::kOverLimit);
  add_partitions(state_.topics.record_of(*topic), added);
  ++state_.image_version;
  return {};
}

CommandOutcome Applier::run(const AlterTopicConfigs& command) {
  const TopicView* topic = state_.topics.find(command.topic);
  if (topic == nullptr) return refuse(CommandVerdict::kUnknownTopic);
  if (command.version != topic->configs_version) return refuse(CommandVerdict::kStaleConfigs);
  state_.topics.alter_configs(command);
  ++state_.image_version;
  return {};
}

}  // namespace varve::metadata
