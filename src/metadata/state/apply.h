// Apply: one entry's effect on the state. The order of its checks is part of the format (docs/formats/entry.md).
#pragma once

#include "metadata/state/state_data.h"

namespace varve::metadata {

// Applies one entry and is gone. Deterministic and total over any bytes (invariant 2).
class Applier {
 public:
  explicit Applier(StateData& state) : state_(state) {}

  ApplyOutcome apply(LogPosition position, ByteView bytes);

 private:
  EntryVerdict judge_bytes(ByteView bytes);
  EntryVerdict judge_header(const Entry& entry) const;
  EntryVerdict take(const Entry& entry);
  EntryVerdict register_broker(const Entry& entry);
  void advance_log_time();
  void fence(Incarnation incarnation);
  bool has_room_for(uint32_t partitions) const;
  void add_partitions(const TopicRecord& topic, uint32_t count);
  template <class GroupCommand>
  CommandOutcome change_group(const GroupCommand& command);
  CommandOutcome refuse(Rule rule);
  CommandOutcome refuse(CommandVerdict verdict);

  CommandOutcome run(const RegisterBroker& command);
  CommandOutcome run(const FenceBroker& command);
  CommandOutcome run(const Beat& command);
  CommandOutcome run(const RaiseFeatureLevel& command);
  CommandOutcome run(const SetLimits& command);
  CommandOutcome run(const CreateTopic& command);
  CommandOutcome run(const DeleteTopic& command);
  CommandOutcome run(const CommitObject& command);
  CommandOutcome run(const AdvanceGcFence& command);
  CommandOutcome run(const ObjectsDeleted& command);
  CommandOutcome run(const AllocateProducerIds& command);
  CommandOutcome run(const ExpireProducers& command);
  CommandOutcome run(const SetLogStart& command);
  CommandOutcome run(const SnapshotTaken& command);
  CommandOutcome run(const AddPartitions& command);
  CommandOutcome run(const AlterTopicConfigs& command);
  CommandOutcome run(const SaveGroup& command);
  CommandOutcome run(const CommitOffsets& command);
  CommandOutcome run(const DeleteOffsets& command);
  CommandOutcome run(const DeleteGroup& command);
  CommandOutcome run(const SetGroupLimits& command);
  CommandOutcome run(const ExpireOffsets& command);

  StateData& state_;
  ApplyOutcome outcome_;
  BrokerIncarnation* sender_ = nullptr;
  Incarnation incarnation_;  // the sender's
  int64_t entry_time_ = 0;
};

}  // namespace varve::metadata
