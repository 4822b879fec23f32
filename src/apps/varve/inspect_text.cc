#include "apps/varve/inspect_text.h"

#include <fmt/format.h>

namespace varve::apps {
namespace {

using namespace metadata;

std::string object_name(const ObjectId& object) {
  return fmt::format("{}.{}", object.incarnation, object.number);
}

std::string run_text(const Run& run) {
  std::string text = fmt::format("run {} partition={} at={}+{} records={} max_timestamp={}", run.index,
                                 run.partition, run.position, run.bytes, run.records, run.max_timestamp);
  if (run.is_transactional) text += " transactional";
  if (run.is_log_append_time) text += " log-append-time";
  for (const ProducerBatch& batch : run.producers) {
    text += fmt::format("\n      batch producer={} epoch={} sequence={} records={} bytes={}",
                        batch.producer_id, batch.epoch, batch.first_sequence, batch.records, batch.bytes);
  }
  return text;
}

std::string endpoints_text(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) {
    text += fmt::format(" {}://{}:{}", endpoint.listener, endpoint.host, endpoint.port);
  }
  return text;
}

std::string configs_text(const std::map<std::string, std::string>& configs) {
  std::string text;
  for (const auto& [name, value] : configs) text += fmt::format(" {}={}", name, value);
  return text;
}

std::string text_of(const RegisterBroker& command) {
  return fmt::format("register broker={} level={} rack=\"{}\"{}", command.broker, command.highest_level,
                     command.rack, endpoints_text(command.endpoints));
}
std::string text_of(const FenceBroker& command) {
  return fmt::format("fence incarnation={}", command.incarnation);
}
std::string text_of(const Beat& command) {
  return fmt::format("beat applied={} state_hash={:016x}", command.applied, command.state_hash);
}
std::string text_of(const RaiseFeatureLevel& command) {
  return fmt::format("raise feature level={}", command.level);
}
std::string text_of(const SetLimits& command) {
  return fmt::format("limits producer_batches_kept={} partitions_max={} producer_expiry_ms={}",
                     command.producer_batches_kept, command.partitions_max, command.producer_expiry_ms);
}
std::string text_of(const CreateTopic& command) {
  return fmt::format("create topic=\"{}\" id={} partitions={}{}", command.name, command.id.to_string(),
                     command.partitions, configs_text(command.configs));
}
std::string text_of(const DeleteTopic& command) {
  return fmt::format("delete topic id={}", command.id.to_string());
}
std::string text_of(const CommitObject& command) {
  std::string text =
      fmt::format("commit object={} epoch={} bytes={} crc={:08x} runs={} of {}", object_name(command.object),
                  command.epoch, command.bytes, command.crc, command.runs.size(), command.run_count);
  for (const Run& run : command.runs) text += "\n    " + run_text(run);
  return text;
}
std::string text_of(const AdvanceGcFence& command) { return fmt::format("gc fence epoch={}", command.epoch); }
std::string text_of(const ObjectsDeleted& command) {
  std::string text = "deleted objects";
  for (const ObjectId& object : command.objects) text += " " + object_name(object);
  return text;
}
std::string text_of(const AllocateProducerIds& command) {
  return fmt::format("allocate producer ids count={}", command.count);
}
std::string text_of(const ExpireProducers& command) {
  return fmt::format("expire producers idle_since={}", command.idle_since);
}
std::string text_of(const SetLogStart& command) {
  return fmt::format("log start partition={} offset={}", command.partition, command.log_start);
}
std::string text_of(const SnapshotTaken& command) {
  return fmt::format("snapshot position={} predecessor={} state_hash={:016x} bytes={}", command.position,
                     command.predecessor, command.state_hash, command.bytes);
}

std::string text_of(const AddPartitions& command) {
  return fmt::format("widen topic id={} partitions={}", command.topic.to_string(), command.total);
}
std::string text_of(const AlterTopicConfigs& command) {
  std::string text =
      fmt::format("configure topic id={} version={}", command.topic.to_string(), command.version);
  for (const auto& [name, value] : command.changes) {
    text += value ? fmt::format(" {}={}", name, *value) : fmt::format(" -{}", name);
  }
  return text;
}

std::string_view name_of_phase(GroupPhase phase) {
  switch (phase) {
    case GroupPhase::kEmpty:
      return "empty";
    case GroupPhase::kPreparingRebalance:
      return "preparing-rebalance";
    case GroupPhase::kCompletingRebalance:
      return "completing-rebalance";
    case GroupPhase::kStable:
      return "stable";
  }
  return "unknown";
}
// What clients sent as bytes is told by its length.
std::string text_of(const MemberDetails& details) {
  std::string text =
      fmt::format(" client=\"{}\"@{} session_ms={} rebalance_ms={}", details.client_id, details.client_host,
                  details.session_timeout_ms, details.rebalance_timeout_ms);
  if (details.instance_id) text += fmt::format(" instance=\"{}\"", *details.instance_id);
  for (const GroupProtocol& protocol : details.protocols) {
    text += fmt::format(" {}:{} bytes", protocol.name, protocol.metadata.size());
  }
  return text;
}
std::string text_of(const SaveGroup& command) {
  std::string text = fmt::format(
      "save group=\"{}\" owners={} version={} type={} {} generation={} protocol={} leader={}", command.group,
      command.owners, command.version, command.protocol_type, name_of_phase(command.phase),
      command.generation, command.protocol.value_or("-"), command.leader);
  for (const SavedMember& member : command.members) {
    text += fmt::format("\n    member \"{}\"", member.id);
    if (member.details) text += text_of(*member.details);
    if (member.assignment) text += fmt::format(" assignment={} bytes", member.assignment->size());
  }
  return text;
}
std::string text_of(const CommitOffsets& command) {
  std::string text = fmt::format("commit offsets group=\"{}\" owners={} generation={} member=\"{}\"",
                                 command.group, command.owners, command.generation, command.member);
  if (command.instance_id) text += fmt::format(" instance=\"{}\"", *command.instance_id);
  if (command.expires_at >= 0) text += fmt::format(" expires_at={}", command.expires_at);
  for (const OffsetCommit& offset : command.offsets) {
    text += fmt::format("\n    partition={} offset={} epoch={} metadata=\"{}\"", offset.partition,
                        offset.offset, offset.leader_epoch, offset.metadata);
  }
  return text;
}
std::string text_of(const DeleteOffsets& command) {
  std::string text = fmt::format("delete offsets group=\"{}\" owners={} version={} partitions", command.group,
                                 command.owners, command.version);
  for (PartitionHandle partition : command.partitions) text += fmt::format(" {}", partition);
  return text;
}
std::string text_of(const DeleteGroup& command) {
  return fmt::format("delete group=\"{}\" owners={} version={}", command.group, command.owners,
                     command.version);
}
std::string text_of(const SetGroupLimits& command) {
  return fmt::format("group limits offsets_retention_ms={}", command.offsets_retention_ms);
}
std::string text_of(const ExpireOffsets& command) {
  return fmt::format("expire offsets cut_off={}", command.cut_off);
}

std::string text_of(const GroupView& group) {
  std::string text = fmt::format("  group \"{}\" version={} type={} {} generation={} protocol={} leader={}\n",
                                 group.id, group.version, group.protocol_type, name_of_phase(group.phase),
                                 group.generation, group.protocol.value_or("-"), group.leader);
  for (const auto& [id, member] : group.members) {
    text += fmt::format("    member \"{}\"{} assignment={} bytes\n", id, text_of(member.details),
                        member.assignment.size());
  }
  for (const auto& [partition, offset] : group.offsets) {
    text += fmt::format("    partition={} offset={} epoch={} metadata=\"{}\" committed={}\n", partition,
                        offset.offset, offset.leader_epoch, offset.metadata, offset.commit_time);
  }
  return text;
}

}  // namespace

std::string entry_text(LogPosition position, const Entry& entry) {
  std::string text =
      fmt::format("{} incarnation={} sequence={} nonce={:016x} level={} time={}\n", position,
                  entry.incarnation, entry.sequence, entry.nonce.value(), entry.level, entry.time);
  for (const Command& command : entry.commands) {
    text += "  " + std::visit([](const auto& value) { return text_of(value); }, command) + "\n";
  }
  return text;
}

std::string wal_object_text(ByteView bytes, const storage::WalObject& object, bool& is_sound) {
  const storage::WalHeader& header = object.header;
  std::string text =
      fmt::format("WAL object {} of log {}: {} bytes, nonce={:016x} epoch={} created={} applied={} runs={}\n",
                  object_name(header.object), to_hex(header.log_id.bytes), bytes.size(), header.nonce.value(),
                  header.epoch, header.created, object.directory.applied, object.directory.runs.size());
  for (const storage::WalDirectoryRun& run : object.directory.runs) {
    text += fmt::format("  topic={} index={} {}\n", run.topic.to_string(), run.index, run_text(run.run));
  }
  std::vector<std::string> problems = storage::verify_wal_batches(bytes, object);
  is_sound = problems.empty();
  for (const std::string& problem : problems) text += fmt::format("  DAMAGED: {}\n", problem);
  text += is_sound ? "every batch is sound\n" : "";
  return text;
}

std::string manifest_text(const SnapshotManifest& manifest) {
  std::string text =
      fmt::format("snapshot of log {} generation {} at position {}, predecessor {}, state hash {:016x}\n",
                  to_hex(manifest.log.id.bytes), manifest.log.generation, manifest.position,
                  manifest.predecessor, manifest.state_hash);
  for (const SnapshotManifest::Chunk& chunk : manifest.chunks) {
    text += fmt::format("  chunk {} bytes={} hash={:016x}\n", chunk.key, chunk.bytes, chunk.hash);
  }
  return text;
}

std::string state_text(const State& state) {
  std::string text = fmt::format("state at position {}: level={} log_time={} fence_epoch={} hash={:016x}\n",
                                 state.position(), state.feature_level(), state.log_time(),
                                 state.fence_epoch(), state.hash());
  for (const auto& [incarnation, broker] : state.incarnations()) {
    text += fmt::format("  broker {} incarnation={} {} last_sequence={} nonce={:016x} rack=\"{}\"{}\n",
                        broker.broker, incarnation, broker.is_live ? "live" : "fenced", broker.last_sequence,
                        broker.nonce.value(), broker.rack, endpoints_text(broker.endpoints));
  }
  for (const auto& [id, topic] : state.topics()) {
    text += fmt::format("  topic \"{}\" id={} life={}{}\n", topic.name, id.to_string(), topic.life,
                        configs_text(topic.configs));
    for (size_t i = 0; i < topic.partitions.size(); ++i) {
      std::optional<PartitionView> partition = state.partition(topic.partitions[i]);
      if (!partition) continue;
      text += fmt::format("    partition {} handle={} log_start={} last_stable={} high_watermark={}\n", i,
                          partition->handle, partition->log_start, partition->last_stable,
                          partition->high_watermark);
    }
  }
  for (const auto& [id, group] : state.groups()) text += text_of(group);
  text += fmt::format("  objects that wait for deletion: {}\n", state.pending_deletions());
  return text;
}

}  // namespace varve::apps
