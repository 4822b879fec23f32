// Thousands of random entries, each answered by the state and by a naive model of the same rules.
#include <gtest/gtest.h>

#include "metadata/state/naive_model.h"
#include "metadata/state/random_history.h"

namespace varve::metadata {
namespace {

std::string describe(uint64_t seed, int step) { return fmt::format("seed {} step {}", seed, step); }

void expect_same_outcome(const ApplyOutcome& outcome, const std::vector<CommandVerdict>& verdicts,
                         const std::vector<std::vector<BatchOutcome>>& batches) {
  ASSERT_EQ(outcome.commands.size(), verdicts.size());
  size_t run = 0;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    ASSERT_EQ(outcome.commands[i].verdict, verdicts[i])
        << "command " << i << " " << outcome.commands[i].detail;
    for (const RunOutcome& result : outcome.commands[i].runs) {
      const std::vector<BatchOutcome>& expected = batches.at(run++);
      ASSERT_EQ(result.batches.size(), expected.size());
      for (size_t b = 0; b < expected.size(); ++b) {
        ASSERT_EQ(result.batches[b].verdict, expected[b].verdict) << "run " << run << " batch " << b;
        ASSERT_EQ(result.batches[b].base_offset, expected[b].base_offset);
        if (expected[b].verdict != BatchVerdict::kAccepted) continue;
        ASSERT_EQ(result.batches[b].append_time, expected[b].append_time);
        ASSERT_EQ(result.batches[b].log_start, expected[b].log_start);
      }
    }
  }
  ASSERT_EQ(run, batches.size());
}

// The runs of a plan are the model's stretches laid end to end, from the one that holds the log start.
void expect_same_partition(const State& state, PartitionHandle handle, const NaiveModel::Partition& expected,
                           std::set<ObjectId>& referenced) {
  auto view = state.partition(handle);
  ASSERT_TRUE(view.has_value());
  ASSERT_EQ(view->log_start.value(), expected.log_start);
  ASSERT_EQ(view->high_watermark.value(), expected.high_watermark);
  FetchPlan plan = *state.plan_fetch(handle, view->log_start, UINT64_MAX, false);
  int64_t end = expected.log_start;
  for (const StoredRun& run : plan.runs) {
    if (&run == &plan.runs.front()) {
      ASSERT_LE(run.base_offset.value(), end);
      ASSERT_GT(run.end_offset().value(), end);
    } else {
      ASSERT_EQ(run.base_offset.value(), end);
    }
    uint64_t position = run.position;
    int64_t offset = run.base_offset.value();
    while (offset < run.end_offset().value()) {
      auto stretch = expected.stretches.find(offset);
      ASSERT_NE(stretch, expected.stretches.end()) << offset;
      ASSERT_EQ(stretch->second.object, run.object);
      ASSERT_EQ(stretch->second.position, position);
      position += stretch->second.bytes;
      offset += stretch->second.records;
    }
    ASSERT_EQ(offset, run.end_offset().value());
    ASSERT_EQ(position, run.position + run.bytes);
    end = offset;
    referenced.insert(run.object);
  }
  ASSERT_EQ(end, expected.high_watermark);
}

bool is_about_groups(const Command& command) { return kind_of(command) >= CommandKind::kSaveGroup; }

void expect_same_answers(const RandomHistory::Step& step, const std::vector<NaiveGroups::Answer>& answers) {
  size_t next = 0;
  for (size_t i = 0; i < step.outcome.commands.size(); ++i) {
    if (!is_about_groups(step.entry.commands[i])) continue;
    const NaiveGroups::Answer& answer = answers.at(next++);
    ASSERT_EQ(step.outcome.commands[i].group_version, answer.version);
    ASSERT_EQ(step.outcome.commands[i].unknown_partitions, answer.unknown);
  }
  ASSERT_EQ(next, answers.size());
}

void expect_same_group(const GroupView& view, const NaiveGroups::Group& group) {
  ASSERT_EQ(view.version, group.version);
  ASSERT_EQ(view.protocol_type, group.saved.protocol_type);
  ASSERT_EQ(view.phase, group.saved.phase);
  ASSERT_EQ(view.generation, group.saved.generation);
  ASSERT_EQ(view.protocol, group.saved.protocol);
  ASSERT_EQ(view.leader, group.saved.leader);
  ASSERT_EQ(view.phase_since, group.phase_since);
  ASSERT_EQ(view.members.size(), group.members.size());
  for (const auto& [id, member] : group.members) {
    ASSERT_TRUE(view.members.contains(id));
    ASSERT_EQ(view.members.at(id), (GroupMember{member.details, member.assignment}));
  }
  ASSERT_EQ(view.offsets.size(), group.offsets.size());
  for (const auto& [handle, offset] : group.offsets) {
    ASSERT_TRUE(view.offsets.contains(PartitionHandle(handle)));
    ASSERT_EQ(view.offsets.at(PartitionHandle(handle)),
              (CommittedOffset{offset.offset, offset.leader_epoch, offset.metadata, offset.commit_time,
                               offset.expires_at}));
  }
}

void expect_same_groups(const State& state, const NaiveGroups& model) {
  ASSERT_EQ(state.group_limits().offsets_retention_ms, model.retention);
  ASSERT_EQ(state.groups().size(), model.groups.size());
  for (const auto& [id, group] : model.groups) {
    const GroupView* view = state.find_group(id);
    ASSERT_NE(view, nullptr) << id;
    ASSERT_EQ(view->id, id);
    ASSERT_NO_FATAL_FAILURE(expect_same_group(*view, group)) << id;
  }
}

void expect_same_state(const State& state, NaiveModel& model, uint64_t& deletable) {
  ASSERT_EQ(state.log_time(), model.log_time);
  ASSERT_EQ(state.fence_epoch().value(), model.fence);
  ASSERT_EQ(state.topics().size(), model.topics.size());
  for (const auto& [id, topic] : model.topics) {
    const TopicView* view = state.find_topic(id);
    ASSERT_NE(view, nullptr);
    ASSERT_EQ(view->configs, topic.configs);
    ASSERT_EQ(view->configs_version, topic.config_changes);
    ASSERT_EQ(view->partitions.size(), topic.partitions.size());
    for (size_t i = 0; i < topic.partitions.size(); ++i) {
      ASSERT_EQ(view->partitions[i].value(), topic.partitions[i]);
      ASSERT_EQ(state.partition(view->partitions[i])->index.value(), static_cast<int32_t>(i));
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_same_groups(state, model.groups));
  model.referenced.clear();
  for (const auto& [handle, partition] : model.partitions) {
    ASSERT_NO_FATAL_FAILURE(
        expect_same_partition(state, PartitionHandle(handle), partition, model.referenced))
        << "partition " << handle;
  }
  for (const auto& [id, object] : model.objects) ASSERT_TRUE(state.knows_object(id));
  for (const ObjectId& id : model.referenced) ASSERT_TRUE(model.objects.contains(id));
  // What no run names waits for its deletion, and nothing else does.
  ASSERT_EQ(state.pending_deletions(), model.objects.size() - model.referenced.size());
  for (const PendingDeletion& pending : state.deletable(1000)) {
    ++deletable;
    ASSERT_FALSE(model.referenced.contains(pending.object));
    ASSERT_TRUE(model.objects.contains(pending.object));
    ASSERT_LT(pending.epoch.value(), model.fence);
    for (uint64_t snapshot : model.snapshots) ASSERT_GE(snapshot, pending.dereferenced_at.value());
    if (pending.needs_grace) ASSERT_GE(model.log_time, pending.dereferenced_time + 60'000);
  }
}

TEST(NaiveModelOfApply, AgreesOnEveryVerdictOffsetRunAndReference) {
  std::map<std::string, uint64_t> refusals;
  uint64_t deletable = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomHistory history(seed);
    NaiveModel model;
    for (int i = 0; i < 500; ++i) {
      RandomHistory::Step step = history.next();
      std::vector<CommandVerdict> verdicts;
      std::vector<std::vector<BatchOutcome>> batches;
      EntryVerdict verdict = model.apply(step.position.value(), step.entry, verdicts, batches);
      ASSERT_EQ(step.outcome.verdict, verdict) << describe(seed, i);
      ASSERT_NO_FATAL_FAILURE(expect_same_outcome(step.outcome, verdicts, batches)) << describe(seed, i);
      ASSERT_NO_FATAL_FAILURE(expect_same_answers(step, model.answers)) << describe(seed, i);
      ASSERT_NO_FATAL_FAILURE(expect_same_state(history.state, model, deletable)) << describe(seed, i);
    }
    for (const auto& [cause, count] : history.state.refusal_counts()) refusals[cause] += count;
  }
  EXPECT_GT(deletable, 1000u);
  // A history that never meets a rule proves nothing about it.
  for (const auto& [cause, count] : refusals) {
    if (cause == "entry.above_feature_level") continue;  // its own test: a higher level ends a history
    EXPECT_GT(count, 0u) << cause;
  }
}

}  // namespace
}  // namespace varve::metadata
