#include "metadata/state/entry.h"

#include <iterator>

namespace varve::metadata {
namespace {

struct KindAndName {
  CommandKind kind;
  std::string_view name;
};
// In the order of the variant.
constexpr KindAndName kKinds[] = {
    {CommandKind::kRegisterBroker, "RegisterBroker"},
    {CommandKind::kFenceBroker, "FenceBroker"},
    {CommandKind::kBeat, "Beat"},
    {CommandKind::kRaiseFeatureLevel, "RaiseFeatureLevel"},
    {CommandKind::kSetLimits, "SetLimits"},
    {CommandKind::kCreateTopic, "CreateTopic"},
    {CommandKind::kDeleteTopic, "DeleteTopic"},
    {CommandKind::kCommitObject, "CommitObject"},
    {CommandKind::kAdvanceGcFence, "AdvanceGcFence"},
    {CommandKind::kObjectsDeleted, "ObjectsDeleted"},
    {CommandKind::kAllocateProducerIds, "AllocateProducerIds"},
    {CommandKind::kExpireProducers, "ExpireProducers"},
    {CommandKind::kSetLogStart, "SetLogStart"},
    {CommandKind::kSnapshotTaken, "SnapshotTaken"},
    {CommandKind::kAddPartitions, "AddPartitions"},
    {CommandKind::kAlterTopicConfigs, "AlterTopicConfigs"},
    {CommandKind::kSaveGroup, "SaveGroup"},
    {CommandKind::kCommitOffsets, "CommitOffsets"},
    {CommandKind::kDeleteOffsets, "DeleteOffsets"},
    {CommandKind::kDeleteGroup, "DeleteGroup"},
    {CommandKind::kSetGroupLimits, "SetGroupLimits"},
    {CommandKind::kExpireOffsets, "ExpireOffsets"},
};
static_assert(std::size(kKinds) == std::variant_size_v<Command>);

}  // namespace

CommandKind kind_of(const Command& command) { return kKinds[command.index()].kind; }

std::string_view name_of(CommandKind kind) {
  for (const KindAndName& known : kKinds) {
    if (known.kind == kind) return known.name;
  }
  return "unknown";
}

bool is_duty(const Command& command) {
  switch (kind_of(command)) {
    case CommandKind::kFenceBroker:  // without it nobody takes a dead broker's place
    case CommandKind::kBeat:
    case CommandKind::kAdvanceGcFence:
    case CommandKind::kObjectsDeleted:
    case CommandKind::kExpireProducers:
    case CommandKind::kSnapshotTaken:
    case CommandKind::kExpireOffsets:
      return true;
    default:
      return false;
  }
}

}  // namespace varve::metadata
