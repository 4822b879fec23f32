// Topics and partitions: names, lives, handles, limits, log starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class Topics : public ::testing::Test, public StateDriver {
 protected:
  Incarnation broker = register_broker(1);

  CommandVerdict create(CreateTopic command) { return propose(broker, std::move(command)).verdict; }
  void remove(std::string_view name) { propose(broker, DeleteTopic{state.find_topic(name)->id}); }
};

TEST_F(Topics, AreFoundByIdAndNameWithTheirPartitionsAndConfigs) {
  CreateTopic command{
      .id = topic_id(9), .name = "orders", .partitions = 2, .configs = {{"retention.ms", "5"}}};
  EXPECT_EQ(create(command), CommandVerdict::kDone);
  const TopicView* topic = state.find_topic("orders");
  ASSERT_NE(topic, nullptr);
  EXPECT_EQ(topic, state.find_topic(command.id));
  EXPECT_EQ(topic->configs, command.configs);
  EXPECT_EQ(topic->life, 1u);
  ASSERT_EQ(topic->partitions.size(), 2u);
  auto view = state.partition(topic->partitions[1]);
  EXPECT_EQ(view->topic, command.id);
  EXPECT_EQ(view->index, PartitionIndex(1));
  EXPECT_EQ(view->high_watermark, Offset(0));
  EXPECT_EQ(state.find_topic("order"), nullptr);
  EXPECT_EQ(state.find_topic(topic_id(1)), nullptr);
}

TEST_F(Topics, HaveNamesAndIdsOfTheirOwn) {
  create_topic(broker, "a");
  EXPECT_EQ(create({.id = topic_id(50), .name = "a", .partitions = 1}), CommandVerdict::kTopicExists);
  EXPECT_EQ(create({.id = topic_id(1), .name = "b", .partitions = 1}), CommandVerdict::kRefused);
  EXPECT_EQ(state.topics().size(), 1u);
}

TEST_F(Topics, WithoutANameAnIdOrAPartitionAreRefused) {
  CreateTopic good{.id = topic_id(50), .name = "a", .partitions = 1};
  CreateTopic bad = good;
  bad.name.clear();
  EXPECT_EQ(create(bad), CommandVerdict::kRefused);
  bad.name = std::string(250, 'x');
  EXPECT_EQ(create(bad), CommandVerdict::kRefused);
  bad = good;
  bad.id = {};
  EXPECT_EQ(create(bad), CommandVerdict::kRefused);
  bad = good;
  bad.partitions = 0;
  EXPECT_EQ(create(bad), CommandVerdict::kRefused);
  good.name = std::string(249, 'x');
  EXPECT_EQ(create(good), CommandVerdict::kDone);
}

TEST_F(Topics, CountTheLivesOfTheirName) {
  for (uint32_t life = 1; life <= 3; ++life) {
    create_topic(broker, "again");
    EXPECT_EQ(state.find_topic("again")->life, life);
    remove("again");
    EXPECT_EQ(state.find_topic("again"), nullptr);
  }
  create_topic(broker, "other");
  EXPECT_EQ(state.find_topic("other")->life, 1u);
}

TEST_F(Topics, NeverReuseAHandle) {
  PartitionHandle first = create_topic(broker, "t").at(0);
  remove("t");
  EXPECT_EQ(state.partition(first), std::nullopt);
  PartitionHandle second = create_topic(broker, "t").at(0);
  EXPECT_GT(second, first);
  EXPECT_EQ(commit(broker, {{.partition = first}}).runs[0].batches[0].verdict,
            BatchVerdict::kUnknownPartition);
  EXPECT_EQ(high_watermark(second), 0);
}

TEST_F(Topics, ManyOfThemPassTheBorderOfABlock) {
  auto first = create_topic(broker, "wide", 1000);
  auto second = create_topic(broker, "wider", 3000);
  commit(broker, {{.partition = second[2999], .records = 3}});
  EXPECT_EQ(state.partition(second[2999])->index, PartitionIndex(2999));
  remove("wide");
  EXPECT_EQ(state.partition(first[999]), std::nullopt);
  EXPECT_EQ(state.partition(second[0])->index, PartitionIndex(0));
  auto restored = State::from_chunks(state.to_chunks());
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->find_topic("wider")->partitions, second);
  EXPECT_EQ(restored->partition(second[2999])->high_watermark, Offset(3));
}

TEST_F(Topics, StayBelowTheLimitOfLivingPartitions) {
  propose(broker, SetLimits{.partitions_max = 5});
  create_topic(broker, "a", 3);
  EXPECT_EQ(create({.id = topic_id(50), .name = "b", .partitions = 3}), CommandVerdict::kOverLimit);
  EXPECT_EQ(create({.id = topic_id(51), .name = "b", .partitions = UINT32_MAX}), CommandVerdict::kOverLimit);
  EXPECT_EQ(create({.id = topic_id(52), .name = "b", .partitions = 2}), CommandVerdict::kDone);
  remove("a");
  EXPECT_EQ(create({.id = topic_id(53), .name = "c", .partitions = 3}), CommandVerdict::kDone);
}

TEST_F(Topics, LimitsOutOfRangeAreRefused) {
  for (SetLimits bad : {SetLimits{.producer_batches_kept = 0}, SetLimits{.producer_batches_kept = 256},
                        SetLimits{.partitions_max = 0}, SetLimits{.partitions_max = kPartitionsHardMax + 1},
                        SetLimits{.producer_expiry_ms = UINT64_MAX}}) {
    EXPECT_EQ(propose(broker, bad).detail, "limit_out_of_range");
  }
  EXPECT_EQ(state.limits(), SetLimits{});
}

TEST_F(Topics, ADeletionTellsOfAllItsPartitions) {
  auto partitions = create_topic(broker, "t", 2);
  ApplyOutcome outcome = apply(entry_of(broker, {DeleteTopic{state.find_topic("t")->id}}));
  EXPECT_EQ(outcome.changed_partitions, partitions);
}

TEST_F(Topics, TheImageVersionRisesWithTopicsAndBrokersAndNothingElse) {
  uint64_t version = state.image_version();
  auto rises = [&] { return std::exchange(version, state.image_version()) < state.image_version(); };
  auto partition = create_topic(broker, "t").at(0);
  EXPECT_TRUE(rises());
  commit(broker, {{.partition = partition}});
  propose(broker, Beat{});
  EXPECT_FALSE(rises());
  Incarnation other = register_broker(2);
  EXPECT_TRUE(rises());
  propose(broker, FenceBroker{other});
  EXPECT_TRUE(rises());
  remove("t");
  EXPECT_TRUE(rises());
}

class LogStart : public Topics {
 protected:
  PartitionHandle partition = create_topic(broker, "t").at(0);
  CommandOutcome set(int64_t offset) { return propose(broker, SetLogStart{partition, Offset(offset)}); }
};

TEST_F(LogStart, RisesUpToTheHighWatermarkAndNeverFalls) {
  commit(broker, {{.partition = partition, .records = 10}});
  EXPECT_EQ(set(11).detail, "log_start_out_of_range");
  EXPECT_EQ(set(4).verdict, CommandVerdict::kDone);
  EXPECT_EQ(set(3).detail, "log_start_out_of_range");
  EXPECT_EQ(set(4).verdict, CommandVerdict::kDone);
  EXPECT_EQ(state.partition(partition)->log_start, Offset(4));
  EXPECT_EQ(set(10).verdict, CommandVerdict::kDone);
  EXPECT_EQ(state.partition(partition)->high_watermark, Offset(10));
  EXPECT_EQ(propose(broker, SetLogStart{PartitionHandle(99), Offset(0)}).verdict,
            CommandVerdict::kUnknownTopic);
}

TEST_F(LogStart, ItsChangeIsToldAndItsRepetitionIsNot) {
  commit(broker, {{.partition = partition, .records = 10}});
  Entry entry = entry_of(broker, {SetLogStart{partition, Offset(4)}});
  EXPECT_THAT(apply(entry).changed_partitions, ElementsAre(partition));
  entry = entry_of(broker, {SetLogStart{partition, Offset(4)}});
  EXPECT_TRUE(apply(entry).changed_partitions.empty());
}

TEST_F(LogStart, OffsetsGoOnWhereTheyWereWhenNothingIsLeft) {
  commit(broker, {{.partition = partition, .records = 10}});
  set(10);
  EXPECT_EQ(commit(broker, {{.partition = partition}}).runs[0].batches[0].base_offset, Offset(10));
  auto restored = State::from_chunks(state.to_chunks());
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->partition(partition)->log_start, Offset(10));
}

TEST_F(Topics, GetMorePartitionsBehindThoseThatTheyHave) {
  Uuid id = state.find_topic(state.partition(create_topic(broker, "t", 2).at(0))->topic)->id;
  create_topic(broker, "between", 3);
  uint64_t image = state.image_version();
  EXPECT_EQ(propose(broker, AddPartitions{id, 4}).verdict, CommandVerdict::kDone);
  EXPECT_GT(state.image_version(), image);
  std::vector<PartitionHandle> partitions = state.find_topic("t")->partitions;
  EXPECT_THAT(partitions,
              ElementsAre(PartitionHandle(0), PartitionHandle(1), PartitionHandle(5), PartitionHandle(6)));
  EXPECT_EQ(state.partition(partitions[3])->index, PartitionIndex(3));
  EXPECT_EQ(state.partition(partitions[3])->topic, id);
  commit(broker, {{.partition = partitions[2], .records = 7}});
  EXPECT_EQ(high_watermark(partitions[2]), 7);
  remove("t");
  for (PartitionHandle handle : partitions) EXPECT_EQ(state.partition(handle), std::nullopt);
  EXPECT_NE(state.partition(PartitionHandle(4)), std::nullopt);
}

TEST_F(Topics, GetNoFewerPartitionsNorMoreThanThereMayBe) {
  propose(broker, SetLimits{.partitions_max = 5});
  Uuid id = state.partition(create_topic(broker, "t", 3).at(0))->topic;
  uint64_t image = state.image_version();
  EXPECT_EQ(propose(broker, AddPartitions{id, 3}).detail, "bad_count");
  EXPECT_EQ(propose(broker, AddPartitions{id, 0}).detail, "bad_count");
  EXPECT_EQ(propose(broker, AddPartitions{id, 6}).verdict, CommandVerdict::kOverLimit);
  EXPECT_EQ(propose(broker, AddPartitions{id, UINT32_MAX}).verdict, CommandVerdict::kOverLimit);
  EXPECT_EQ(propose(broker, AddPartitions{topic_id(77), 5}).verdict, CommandVerdict::kUnknownTopic);
  EXPECT_EQ(state.image_version(), image);
  EXPECT_EQ(propose(broker, AddPartitions{id, 5}).verdict, CommandVerdict::kDone);
  EXPECT_EQ(state.find_topic("t")->partitions.size(), 5u);
}

TEST_F(Topics, AreConfiguredKeyByKey) {
  CreateTopic topic{.id = topic_id(9), .name = "t", .partitions = 1, .configs = {{"a", "1"}, {"b", "2"}}};
  create(topic);
  uint64_t image = state.image_version();
  AlterTopicConfigs alter{topic.id, 0, {{"a", std::nullopt}, {"b", "3"}, {"c", ""}, {"d", std::nullopt}}};
  EXPECT_EQ(propose(broker, alter).verdict, CommandVerdict::kDone);
  EXPECT_GT(state.image_version(), image);
  EXPECT_THAT(state.find_topic("t")->configs, ElementsAre(Pair("b", "3"), Pair("c", "")));
  alter.topic = topic_id(77);
  EXPECT_EQ(propose(broker, alter).verdict, CommandVerdict::kUnknownTopic);
}

TEST_F(Topics, TakeNoConfigsThatBuildOnOthersThanTheirs) {
  CreateTopic topic{.id = topic_id(9), .name = "t", .partitions = 1, .configs = {{"a", "1"}}};
  create(topic);
  AlterTopicConfigs alter{topic.id, 0, {{"a", "2"}}};
  EXPECT_EQ(propose(broker, alter).verdict, CommandVerdict::kDone);
  uint64_t image = state.image_version();
  alter.changes = {{"a", "3"}, {"b", "4"}};
  for (uint64_t version : {uint64_t{0}, uint64_t{2}, UINT64_MAX}) {
    alter.version = version;
    EXPECT_EQ(propose(broker, alter).verdict, CommandVerdict::kStaleConfigs);
  }
  EXPECT_THAT(state.find_topic("t")->configs, ElementsAre(Pair("a", "2")));
  EXPECT_EQ(state.image_version(), image);
  // One of nothing counts too, and a snapshot keeps the count.
  alter = {topic.id, 1, {}};
  EXPECT_EQ(propose(broker, alter).verdict, CommandVerdict::kDone);
  auto restored = State::from_chunks(state.to_chunks());
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->find_topic("t")->configs_version, 2u);
  // A new life begins anew.
  propose(broker, DeleteTopic{topic.id});
  topic.id = topic_id(10);
  create(topic);
  EXPECT_EQ(state.find_topic("t")->configs_version, 0u);
}

}  // namespace
}  // namespace varve::metadata
