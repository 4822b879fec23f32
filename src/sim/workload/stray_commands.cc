// Commands that a rule of apply refuses; one for each rule that exists.
#include "sim/workload/stray_writer.h"

namespace varve::sim {

using metadata::Command;
using metadata::CommitObject;
using metadata::Run;
using metadata::State;

namespace {

constexpr PartitionHandle kNoPartition{1'000'000'000};

Run run_of(PartitionHandle partition, uint32_t index = 0) {
  Run run;
  run.index = index;
  run.partition = partition;
  run.bytes = 10;
  run.records = 1;
  return run;
}

CommitObject commit_of(const State& state, Incarnation sender, ObjectNumber number, Run run) {
  CommitObject commit;
  commit.object = {sender, number};
  commit.epoch = state.fence_epoch();
  commit.bytes = 1'000;
  commit.run_count = 4;
  commit.runs.push_back(std::move(run));
  return commit;
}

PartitionHandle some_partition(const State& state, Random& random) {
  std::vector<PartitionHandle> handles;
  for (const auto& [id, topic] : state.topics()) {
    handles.insert(handles.end(), topic.partitions.begin(), topic.partitions.end());
  }
  return handles.empty() ? kNoPartition : handles[random.below(handles.size())];
}

Run with_producer(Run run, metadata::ProducerBatch batch) {
  batch.bytes = run.bytes;
  batch.records = run.records;
  run.producers.push_back(batch);
  return run;
}

Command draw_topic_command(const State& state, Random& random) {
  metadata::CreateTopic create;
  create.id = random.uuid();
  create.partitions = 1;
  switch (random.below(5)) {
    case 0:
      return create;  // without a name
    case 1:
      if (state.topics().empty()) return create;
      // Alike: the one that is there may be deleted before this arrives, which then makes the next life.
      create.name = state.topics().begin()->second.name;
      create.partitions = static_cast<uint32_t>(state.topics().begin()->second.partitions.size());
      return create;
    case 2:
      create.name = "too wide";
      create.partitions = 2'000'000;
      return create;
    case 3: {
      // Of a topic that lives, if there is one, on configs that it never had.
      Uuid topic = state.topics().empty() ? random.uuid() : state.topics().begin()->first;
      return metadata::AlterTopicConfigs{topic, UINT64_MAX, {{"retention.ms", "1"}}};
    }
    default:
      return metadata::DeleteTopic{random.uuid()};
  }
}

Command draw_admin_command(const State& state, Random& random) {
  switch (random.below(8)) {
    case 0:
      return metadata::RegisterBroker{};
    case 1:
      return metadata::FenceBroker{Incarnation(UINT64_MAX)};
    case 2:
      return metadata::SetLimits{.producer_batches_kept = 0};
    case 3:
      return metadata::RaiseFeatureLevel{metadata::kHighestFeatureLevel.plus(1)};
    case 4:
      return metadata::AllocateProducerIds{0};
    case 5:
      return metadata::ExpireProducers{state.log_time()};
    case 6:
      return metadata::SetLogStart{some_partition(state, random), Offset(INT64_MAX)};
    default:
      return metadata::SetLogStart{kNoPartition, Offset(0)};
  }
}

Command draw_collection_command(const State& state, Random& random) {
  switch (random.below(4)) {
    case 0:
      return metadata::AdvanceGcFence{state.fence_epoch()};
    case 1:
      return metadata::ObjectsDeleted{{{Incarnation(UINT64_MAX), ObjectNumber(1)}}};
    case 2:
      return metadata::SnapshotTaken{.position = LogPosition(UINT64_MAX)};
    default: {
      // Newer than any that is retained, on chunks that nobody has.
      LogPosition position = state.position();
      return metadata::SnapshotTaken{.position = position, .predecessor = LogPosition(UINT64_MAX)};
    }
  }
}

Command draw_commit(const State& state, Incarnation sender, Random& random) {
  ObjectNumber number(1 + random.below(3));
  switch (random.below(6)) {
    case 0: {
      CommitObject commit = commit_of(state, sender, number, run_of(kNoPartition));
      commit.runs.front().bytes = 0;
      return commit;
    }
    case 1: {
      // Below the fence, or, as long as there is none, above what the log has reached.
      CommitObject commit = commit_of(state, sender, number, run_of(kNoPartition));
      commit.epoch = commit.epoch.plus(static_cast<uint64_t>(state.fence_epoch() > FenceEpoch(0) ? -1 : 1));
      return commit;
    }
    case 2: {
      Run run = run_of(some_partition(state, random), 1);
      run.is_transactional = true;
      return commit_of(state, sender, number, std::move(run));
    }
    case 3: {
      metadata::ProducerBatch batch;
      batch.producer_id = ProducerId(INT64_MAX);
      batch.epoch = ProducerEpoch(0);
      batch.first_sequence = Sequence(7);
      return commit_of(state, sender, number, with_producer(run_of(some_partition(state, random), 2), batch));
    }
    default:
      // The first time its partition is unknown, from then on the run is decided.
      return commit_of(state, sender, number, run_of(kNoPartition, 3));
  }
}

// A group of its own that the sender keeps, with one static member, to be refused by; as long as there is none, what makes
// it.
Command draw_group_command(const State& state, Incarnation sender, Random& random) {
  std::string id = "stray";
  auto is_own = [&] { return state.group_owner(id) == state.incarnations().at(sender).broker; };
  for (int i = 0; i < 50 && !is_own(); ++i) id = fmt::format("stray {}", i);
  const metadata::GroupView* group = state.find_group(id);
  metadata::SavedMember member{.id = "m", .details = metadata::MemberDetails{.instance_id = "i"}};
  metadata::SaveGroup save{.group = id, .version = group == nullptr ? 0 : group->version};
  save.owners = state.owners_version();
  // Others own it while the stray writer has no session, and may have gone on to the next.
  if (group != nullptr) save.generation = group->generation;
  save.members = {member};
  save.phase =
      random.chance(1, 2) ? metadata::GroupPhase::kStable : metadata::GroupPhase::kCompletingRebalance;
  metadata::CommitOffsets commit{.group = id, .member = "m", .owners = save.owners};
  switch (random.below(11)) {
    case 0:
      save.phase = metadata::GroupPhase::kEmpty;  // with a member
      return save;
    case 1:
      ++save.version;
      return save;
    case 2:
      return metadata::DeleteGroup{group == nullptr ? id : "nobody's", 0, save.owners};
    case 3:
      return metadata::DeleteGroup{id, save.version, save.owners};
    case 4:
      commit.generation = save.generation + 7;
      return commit;
    case 5:
      commit.member = "x";
      commit.generation = save.generation;
      if (random.chance(1, 2)) commit.instance_id = "i";
      return commit;
    case 6:
      commit.generation = save.generation;  // as the group's; while it waits for its leader
      return commit;
    case 7:
      --commit.owners;
      return commit;
    case 8:
      // Another broker's, if one lives.
      for (int i = 0; i < 50 && is_own(); ++i) id = fmt::format("another's {}", i);
      return metadata::CommitOffsets{.group = id, .owners = save.owners};
    default:
      return save;
  }
}

}  // namespace

Command draw_refused_command(const State& state, Incarnation sender, Random& random) {
  switch (random.below(6)) {
    case 0:
      return draw_topic_command(state, random);
    case 1:
      return draw_admin_command(state, random);
    case 2:
      return draw_collection_command(state, random);
    case 3:
      return draw_group_command(state, sender, random);
    default:
      return draw_commit(state, sender, random);
  }
}

}  // namespace varve::sim
