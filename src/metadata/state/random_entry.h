// For tests and fuzzers: entries with any values at all, most of them nonsense.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "metadata/state/entry.h"

namespace varve::metadata {

// Small numbers mostly, so that ids meet; now and then any number.
inline uint64_t random_number(Random& random) {
  if (random.chance(1, 6)) return random.next() >> random.below(64);
  return random.below(6);
}
template <class Id>
Id random_id(Random& random) {
  return Id(static_cast<typename Id::Value>(random_number(random)));
}
inline std::string random_text(Random& random) {
  return std::string(random.below(4), static_cast<char>('a' + random.below(3)));
}

inline ProducerBatch random_producer_batch(Random& random) {
  return {static_cast<uint32_t>(random_number(random)), static_cast<uint32_t>(random_number(random)),
          random_id<ProducerId>(random), random_id<ProducerEpoch>(random), random_id<Sequence>(random)};
}

inline Run random_run(Random& random) {
  Run run;
  run.index = static_cast<uint32_t>(random_number(random));
  run.partition = random_id<PartitionHandle>(random);
  run.position = random_number(random);
  run.bytes = static_cast<uint32_t>(random_number(random));
  run.records = static_cast<uint32_t>(random_number(random));
  run.max_timestamp = static_cast<int64_t>(random_number(random));
  run.is_transactional = random.chance(1, 8);
  run.is_log_append_time = random.chance(1, 4);
  for (uint64_t n = random.below(4); n > 0; --n) run.producers.push_back(random_producer_batch(random));
  return run;
}

inline ObjectId random_object_id(Random& random) {
  return {random_id<Incarnation>(random), random_id<ObjectNumber>(random)};
}

inline MemberDetails random_details(Random& random) {
  MemberDetails details{.client_id = random_text(random), .client_host = random_text(random)};
  if (random.chance(1, 2)) details.instance_id = random_text(random);
  details.session_timeout_ms = static_cast<uint32_t>(random_number(random));
  details.rebalance_timeout_ms = static_cast<uint32_t>(random_number(random));
  for (uint64_t n = random.below(3); n > 0; --n) {
    details.protocols.push_back({random_text(random), random_text(random)});
  }
  return details;
}

inline SaveGroup random_save(Random& random) {
  SaveGroup c{.group = random_text(random), .version = random_number(random)};
  c.owners = random_number(random);
  c.protocol_type = random_text(random);
  c.phase = GroupPhase{static_cast<uint8_t>(random.below(kGroupPhases))};
  c.generation = static_cast<int32_t>(random_number(random));
  if (random.chance(1, 2)) c.protocol = random_text(random);
  c.leader = random_text(random);
  for (uint64_t n = random.below(4); n > 0; --n) {
    SavedMember& member = c.members.emplace_back();
    member.id = random_text(random);
    if (random.chance(1, 2)) member.details = random_details(random);
    if (random.chance(1, 2)) member.assignment = random_text(random);
  }
  return c;
}

inline CommitOffsets random_commit(Random& random) {
  CommitOffsets c{.group = random_text(random), .generation = static_cast<int32_t>(random_number(random))};
  c.owners = random_number(random);
  c.member = random_text(random);
  if (random.chance(1, 2)) c.instance_id = random_text(random);
  c.expires_at = static_cast<int64_t>(random_number(random));
  for (uint64_t n = random.below(4); n > 0; --n) {
    c.offsets.push_back({random_id<PartitionHandle>(random), static_cast<int64_t>(random_number(random)),
                         static_cast<int32_t>(random_number(random)), random_text(random)});
  }
  return c;
}

inline Command random_group_command(Random& random) {
  switch (random.below(6)) {
    case 0:
      return random_save(random);
    case 1:
      return random_commit(random);
    case 2: {
      DeleteOffsets c{random_text(random), random_number(random), {}, random_number(random)};
      for (uint64_t n = random.below(4); n > 0; --n)
        c.partitions.push_back(random_id<PartitionHandle>(random));
      return c;
    }
    case 3:
      return DeleteGroup{random_text(random), random_number(random), random_number(random)};
    case 4:
      return SetGroupLimits{random_number(random)};
    default:
      return ExpireOffsets{static_cast<int64_t>(random_number(random))};
  }
}

inline Command random_command(Random& random) {
  switch (random.below(17)) {
    case 0: {
      RegisterBroker c{random_id<BrokerId>(random), random_id<FeatureLevel>(random), {}, random_text(random)};
      for (uint64_t n = random.below(3); n > 0; --n) {
        c.endpoints.push_back(
            {random_text(random), random_text(random), static_cast<uint16_t>(random.next())});
      }
      return c;
    }
    case 1:
      return FenceBroker{random_id<Incarnation>(random)};
    case 2:
      return Beat{random_id<LogPosition>(random), random.next()};
    case 3:
      return RaiseFeatureLevel{random_id<FeatureLevel>(random)};
    case 4:
      return SetLimits{static_cast<uint32_t>(random_number(random)),
                       static_cast<uint32_t>(random_number(random)), random_number(random)};
    case 5: {
      CreateTopic c{random.uuid(), random_text(random), static_cast<uint32_t>(random_number(random)), {}};
      for (uint64_t n = random.below(3); n > 0; --n) c.configs[random_text(random)] = random_text(random);
      return c;
    }
    case 6:
      return DeleteTopic{random.uuid()};
    case 7: {
      CommitObject c;
      c.object = random_object_id(random);
      c.epoch = random_id<FenceEpoch>(random);
      c.bytes = random_number(random);
      c.crc = static_cast<uint32_t>(random.next());
      c.run_count = static_cast<uint32_t>(random_number(random));
      for (uint64_t n = random.below(6); n > 0; --n) c.runs.push_back(random_run(random));
      return c;
    }
    case 8:
      return AdvanceGcFence{random_id<FenceEpoch>(random)};
    case 9: {
      ObjectsDeleted c;
      for (uint64_t n = random.below(4); n > 0; --n) c.objects.push_back(random_object_id(random));
      return c;
    }
    case 10:
      return AllocateProducerIds{static_cast<uint32_t>(random_number(random))};
    case 11:
      return ExpireProducers{static_cast<int64_t>(random_number(random))};
    case 12:
      return SetLogStart{random_id<PartitionHandle>(random), random_id<Offset>(random)};
    case 13:
      return AddPartitions{random.uuid(), static_cast<uint32_t>(random_number(random))};
    case 14: {
      AlterTopicConfigs c{random.uuid(), random_number(random), {}};
      for (uint64_t n = random.below(3); n > 0; --n) {
        auto& value = c.changes[random_text(random)];
        if (random.chance(1, 2)) value = random_text(random);
      }
      return c;
    }
    case 15:
      return random_group_command(random);
    default:
      return SnapshotTaken{random_id<LogPosition>(random), random_id<LogPosition>(random), random.next(),
                           random_number(random)};
  }
}

inline Entry random_entry(Random& random) {
  Entry entry;
  entry.nonce = Nonce(random.next());
  entry.incarnation = random_id<Incarnation>(random);
  entry.sequence = random_id<EntrySequence>(random);
  entry.shard = static_cast<uint16_t>(random_number(random));
  entry.time = random_id<WallTime>(random);
  for (uint64_t n = random.below(4); n > 0; --n) entry.commands.push_back(random_command(random));
  return entry;
}

}  // namespace varve::metadata
