#include "apps/varve/inspect_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"
#include "protocol/records/builder.h"

namespace varve::apps {
namespace {

using namespace metadata;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(InspectText, EveryKindOfCommandIsShownOnItsLine) {
  Entry entry;
  entry.incarnation = Incarnation(7);
  entry.sequence = EntrySequence(3);
  CommitObject commit;
  commit.object = {Incarnation(7), ObjectNumber(2)};
  struct Run run;
  run.records = 5;
  run.producers.push_back({.bytes = 100, .records = 5, .producer_id = ProducerId(9)});
  commit.runs.push_back(run);
  CreateTopic topic;
  topic.name = "t";
  topic.configs["retention.ms"] = "1000";
  AlterTopicConfigs alter;
  alter.version = 4;
  alter.changes = {{"cleanup.policy", std::nullopt}, {"retention.bytes", "5"}};
  SaveGroup save{
      .group = "readers", .phase = GroupPhase::kStable, .members = {{"m", MemberDetails{}, "abc"}}};
  save.members[0].details->instance_id = "i-1";
  CommitOffsets commit_offsets{.group = "readers", .offsets = {{PartitionHandle(4), 17, 0, "note"}}};
  entry.commands = {RegisterBroker{},
                    FenceBroker{},
                    Beat{},
                    RaiseFeatureLevel{},
                    SetLimits{},
                    topic,
                    DeleteTopic{},
                    commit,
                    AdvanceGcFence{},
                    ObjectsDeleted{},
                    AllocateProducerIds{},
                    ExpireProducers{},
                    SetLogStart{},
                    SnapshotTaken{},
                    AddPartitions{},
                    alter,
                    save,
                    commit_offsets,
                    DeleteOffsets{},
                    DeleteGroup{},
                    SetGroupLimits{},
                    ExpireOffsets{}};
  // A new kind of command needs its text here too.
  EXPECT_EQ(entry.commands.size(), std::variant_size_v<Command>);
  std::string text = entry_text(LogPosition(11), entry);
  EXPECT_THAT(text, ::testing::StartsWith("11 incarnation=7 sequence=3"));
  EXPECT_THAT(text, HasSubstr("create topic=\"t\""));
  EXPECT_THAT(text, HasSubstr("retention.ms=1000"));
  EXPECT_THAT(text, HasSubstr("commit object=7.2"));
  EXPECT_THAT(text, HasSubstr("producer=9"));
  EXPECT_THAT(text, HasSubstr("save group=\"readers\" owners=0 version=0 type= stable"));
  EXPECT_THAT(text, HasSubstr("instance=\"i-1\" assignment=3 bytes"));
  EXPECT_THAT(text, HasSubstr("partition=4 offset=17 epoch=0 metadata=\"note\""));
  EXPECT_THAT(text, HasSubstr("version=4 -cleanup.policy retention.bytes=5"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + static_cast<int>(entry.commands.size()) + 4);
}

TEST(InspectText, AWalObjectIsShownWithWhatIsWrongInIt) {
  protocol::records::BatchBuilder builder({});
  builder.add({.timestamp = WallTime(1), .key = std::nullopt, .value = as_bytes("hello")});
  auto run = std::make_shared<storage::WalRun>();
  run->partition = PartitionHandle(4);
  storage::WalBatch batch;
  batch.bytes = Slice::take(builder.build());
  batch.records = 1;
  batch.max_timestamp = 1;
  run->batches.push_back(batch);
  storage::BuiltObject built = storage::build_wal_object({}, LogPosition(6), {run});
  std::vector<uint8_t> bytes;
  for (const Slice& slice : built.slices) bytes.insert(bytes.end(), slice.view().begin(), slice.view().end());
  auto object = storage::parse_wal_object(bytes);
  ASSERT_TRUE(object);
  bool is_sound = false;
  EXPECT_THAT(wal_object_text(bytes, *object, is_sound), HasSubstr("partition=4"));
  EXPECT_TRUE(is_sound);
  bytes[storage::kWalHeaderBytes + 65] ^= 1;
  EXPECT_THAT(wal_object_text(bytes, *object, is_sound), HasSubstr("DAMAGED"));
  EXPECT_FALSE(is_sound);
}

TEST(InspectText, AStateIsShownWithItsGroups) {
  StateDriver driver;
  Incarnation broker = driver.register_broker(1);
  PartitionHandle partition = driver.create_topic(broker, "t").at(0);
  driver.propose(broker, SaveGroup{.group = "readers",
                                   .protocol_type = "consumer",
                                   .phase = GroupPhase::kStable,
                                   .generation = 3,
                                   .members = {{"m", MemberDetails{.client_id = "app"}, "abc"}}});
  driver.propose(
      broker,
      CommitOffsets{
          .group = "readers", .generation = 3, .member = "m", .offsets = {{partition, 17, 0, "note"}}});
  std::string text = state_text(driver.state);
  EXPECT_THAT(text, HasSubstr("group \"readers\" version=1 type=consumer stable generation=3"));
  EXPECT_THAT(text, HasSubstr("member \"m\" client=\"app\"@"));
  EXPECT_THAT(text, HasSubstr("partition=0 offset=17 epoch=0 metadata=\"note\""));
}

TEST(InspectText, AnEmptyStateIsShown) {
  EXPECT_THAT(state_text(State()), HasSubstr("state at position 0"));
  EXPECT_THAT(state_text(State()), Not(HasSubstr("topic")));
}

}  // namespace
}  // namespace varve::apps
