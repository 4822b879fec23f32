// The stored formats stay as they are: the golden files, and the worked examples of docs/formats.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/read_file_testing.h"
#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

std::vector<uint8_t> from_hex(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// The lines of a golden file: a name, then hex.
std::vector<std::pair<std::string, std::string>> golden_lines(const std::string& path) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::istringstream text(read_file(path));
  std::string name;
  std::string hex;
  while (text >> name >> hex) lines.emplace_back(name, hex);
  return lines;
}

// The bytes of the hex blocks of a page, comments and spaces left out.
std::vector<std::vector<uint8_t>> documented_bytes(const std::string& page_path) {
  std::string page = read_file(page_path);
  std::vector<std::vector<uint8_t>> blocks;
  constexpr std::string_view kFence = "```hex\n";
  for (size_t at = page.find(kFence); at != std::string::npos; at = page.find(kFence, at)) {
    at += kFence.size();
    std::istringstream lines(page.substr(at, page.find("```", at) - at));
    std::string hex;
    for (std::string line; std::getline(lines, line);) {
      for (char c : line.substr(0, line.find('#'))) {
        if (c != ' ') hex += c;
      }
    }
    blocks.push_back(from_hex(hex));
  }
  return blocks;
}

ObjectId object_id() { return {Incarnation(40), ObjectNumber(9)}; }

Uuid golden_topic() {
  Uuid id;
  for (size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  return id;
}

Run plain_run() {
  return {.index = 0,
          .partition = PartitionHandle(300),
          .position = 72,
          .bytes = 5000,
          .records = 40,
          .max_timestamp = 1'700'000'000'000 - 20};
}

Run run_of_one_producer() {
  Run run{.index = 1,
          .partition = PartitionHandle(305),
          .position = 5072,
          .bytes = 900,
          .records = 7,
          .max_timestamp = 1'700'000'000'000 - 12,
          .is_log_append_time = true};
  run.producers = {{900, 7, ProducerId(2001), ProducerEpoch(3), Sequence(123456)}};
  return run;
}

Run run_of_many_batches() {
  Run run{.index = 4,
          .partition = PartitionHandle(7),
          .position = 9000,
          .bytes = 600,
          .records = 9,
          .max_timestamp = -1,
          .is_transactional = true};
  run.producers = {{100, 2, ProducerId(5), ProducerEpoch(0), Sequence(2147483647)},
                   {200, 3, kNoProducerId, kNoProducerEpoch, kNoSequence},
                   {300, 4, ProducerId(6), ProducerEpoch(32767), Sequence(0)}};
  return run;
}

CommitObject commit_of(std::vector<Run> runs) {
  return {.object = object_id(),
          .epoch = FenceEpoch(2),
          .bytes = 65536,
          .crc = 0xdeadbeef,
          .run_count = 5,
          .runs = std::move(runs)};
}

Entry entry_with(std::vector<Command> commands) {
  return {.nonce = Nonce(0x1122334455667788),
          .incarnation = Incarnation(41),
          .sequence = EntrySequence(17),
          .time = WallTime(1'700'000'000'000),
          .commands = std::move(commands)};
}

MemberDetails golden_details() {
  return {.instance_id = "static-1",
          .client_id = "app",
          .client_host = "/127.0.0.1",
          .session_timeout_ms = 45'000,
          .rebalance_timeout_ms = 300'000,
          .protocols = {{"range", std::string("\0\1", 2)}, {"sticky", ""}}};
}

// One member with everything, one of whom the state has all, one of whom it has the assignment.
SaveGroup golden_group() {
  return {.group = "readers",
          .version = 7,
          .protocol_type = "consumer",
          .phase = GroupPhase::kStable,
          .generation = 3,
          .protocol = "range",
          .leader = "app-1",
          .members = {{"app-1", golden_details(), std::string("\0\2\xff", 3)},
                      {"app-2", std::nullopt, std::nullopt},
                      {"app-3", MemberDetails{.client_id = "x"}, std::nullopt}},
          .owners = 5};
}

CommitOffsets golden_commit() {
  return {.group = "readers",
          .generation = 3,
          .member = "app-1",
          .instance_id = "static-1",
          .expires_at = 1'700'000'600'000,
          .offsets = {{PartitionHandle(300), 41, 0, "note"}, {PartitionHandle(7), INT64_MAX, -1, ""}},
          .owners = 5};
}

std::vector<std::pair<std::string, Entry>> golden_entries() {
  Entry registration =
      entry_with({RegisterBroker{BrokerId(1),
                                 FeatureLevel(1),
                                 {{"PLAINTEXT", "127.0.0.1", 9092}, {"SSL", "b.example", 65535}},
                                 "rack-a"}});
  registration.incarnation = Incarnation(0);
  registration.sequence = EntrySequence(1);
  CreateTopic topic{.id = golden_topic(),
                    .name = "orders",
                    .partitions = 12,
                    .configs = {{"cleanup.policy", "delete"}, {"retention.ms", "1000"}}};
  std::vector<std::pair<std::string, Entry>> entries = {
      {"RegisterBroker", registration},
      {"FenceBroker", entry_with({FenceBroker{Incarnation(33)}})},
      {"Beat", entry_with({Beat{LogPosition(1000), 0x0102030405060708}})},
      {"RaiseFeatureLevel", entry_with({RaiseFeatureLevel{FeatureLevel(2)}})},
      {"SetLimits", entry_with({SetLimits{.producer_batches_kept = 7, .partitions_max = 5000}})},
      {"CreateTopic", entry_with({topic})},
      {"DeleteTopic", entry_with({DeleteTopic{golden_topic()}})},
      {"CommitObject", entry_with({commit_of({plain_run(), run_of_one_producer(), run_of_many_batches()})})},
      {"AdvanceGcFence", entry_with({AdvanceGcFence{FenceEpoch(3)}})},
      {"ObjectsDeleted", entry_with({ObjectsDeleted{{object_id(), {Incarnation(41), ObjectNumber(1)}}}})},
      {"AllocateProducerIds", entry_with({AllocateProducerIds{1000}})},
      {"ExpireProducers", entry_with({ExpireProducers{1'600'000'000'000}})},
      {"SetLogStart", entry_with({SetLogStart{PartitionHandle(300), Offset(4711)}})},
      {"SnapshotTaken", entry_with({SnapshotTaken{LogPosition(900), LogPosition(800), 0xabcdef, 123456}})},
      {"AddPartitions", entry_with({AddPartitions{golden_topic(), 20}})},
      {"AlterTopicConfigs",
       entry_with(
           {AlterTopicConfigs{golden_topic(), 3, {{"cleanup.policy", std::nullopt}, {"retention.ms", ""}}}})},
      {"SaveGroup", entry_with({golden_group()})},
      {"CommitOffsets", entry_with({golden_commit()})},
      {"DeleteOffsets",
       entry_with({DeleteOffsets{"readers", 7, {PartitionHandle(305), PartitionHandle(7)}, 5}})},
      {"DeleteGroup", entry_with({DeleteGroup{"readers", 8, 300}})},
      {"SetGroupLimits", entry_with({SetGroupLimits{86'400'000}})},
      {"ExpireOffsets", entry_with({ExpireOffsets{1'600'000'000'000}})},
  };
  entries.emplace_back("many", entry_with({commit_of({plain_run()}), commit_of({}), Beat{}}));
  return entries;
}

TEST(GoldenEntries, OfEveryCommandDecodeToWhatTheyWereAndEncodeToTheSameBytes) {
  auto lines = golden_lines("src/metadata/state/golden/entries_v1.txt");
  auto entries = golden_entries();
  ASSERT_EQ(lines.size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [name, entry] = entries[i];
    EXPECT_EQ(lines[i].first, name);
    EXPECT_EQ(to_hex(encode_entry(entry)), lines[i].second) << name;
    auto decoded = decode_entry(from_hex(lines[i].second));
    ASSERT_TRUE(decoded.has_value()) << name << ": " << decoded.error().message;
    EXPECT_EQ(*decoded, entry) << name;
  }
}

TEST(GoldenEntries, HaveAllCommands) {
  std::set<CommandKind> kinds;
  for (const auto& [name, entry] : golden_entries()) {
    for (const Command& command : entry.commands) kinds.insert(kind_of(command));
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Command>);
}

TEST(EntryPage, ItsExamplesAreWhatTheCodecWrites) {
  auto blocks = documented_bytes("docs/formats/entry.md");
  SaveGroup save{.group = "g",
                 .version = 4,
                 .protocol_type = "consumer",
                 .phase = GroupPhase::kStable,
                 .generation = 2,
                 .protocol = "range",
                 .leader = "m",
                 .members = {{"m", std::nullopt, "all"}},
                 .owners = 3};
  CommitOffsets commit{.group = "g",
                       .generation = 2,
                       .member = "m",
                       .offsets = {{PartitionHandle(300), 41, 0, "note"}},
                       .owners = 3};
  std::vector<Entry> examples = {entry_with({commit_of({plain_run(), run_of_one_producer()})}),
                                 entry_with({save, commit})};
  ASSERT_EQ(blocks.size(), examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    EXPECT_EQ(to_hex(blocks[i]), to_hex(encode_entry(examples[i])));
    auto decoded = decode_entry(blocks[i]);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(*decoded, examples[i]);
  }
}

// A short history that leaves something in every field of every chunk.
class GoldenState : public StateDriver {
 public:
  GoldenState() {
    time = WallTime(1'700'000'000'000);
    Incarnation old = register_broker(1);
    Incarnation broker = register_broker(1);
    register_broker(2);
    propose(broker,
            SetLimits{.producer_batches_kept = 3, .partitions_max = 9000, .producer_expiry_ms = 60'000});
    propose(broker, AllocateProducerIds{50});
    PartitionHandle lost = create_topic(broker, "lost").at(0);
    propose(broker, AdvanceGcFence{FenceEpoch(4)});
    commit(broker, {{.partition = lost}});
    CreateTopic topic{
        .id = golden_topic(), .name = "orders", .partitions = 2, .configs = {{"retention.ms", "1000"}}};
    propose(broker, topic);
    std::vector<PartitionHandle> orders = state.find_topic("orders")->partitions;
    for (int i = 0; i < 300; ++i) {
      commit(broker, {{.partition = orders[0], .records = 2, .max_timestamp = time.value() + i}});
    }
    commit_batches(broker, orders[1], {batch(7, 1, 100, 5), batch(7, 1, 105), batch(8, 0, 0, 2147483647)});
    commit(broker, {{.partition = orders[1], .is_log_append_time = true}});
    CommitObject partly =
        object_of(old, {{.partition = orders[1]}, {.partition = orders[0]}, {.partition = lost}});
    partly.runs.erase(partly.runs.begin());
    propose(broker, partly);
    propose(broker, DeleteTopic{state.find_topic("lost")->id});
    propose(broker, SetLogStart{orders[0], Offset(21)});
    propose(broker, SnapshotTaken{.position = state.position(), .state_hash = 0x99, .bytes = 12345});
    propose(broker, Beat{state.position(), 0x0102030405060708});
    create_topic(broker, "wide", 1500);
    propose(broker, DeleteTopic{state.find_topic("wide")->id});
    propose(broker, AddPartitions{topic.id, 3});
    propose(broker, AlterTopicConfigs{topic.id, 0, {{"flush.ms", "5"}}});
    propose(broker, SetGroupLimits{.offsets_retention_ms = 90'000});
    make_groups(broker, state.find_topic("orders")->partitions);
  }

 private:
  // Of ids that this one of the two brokers owns.
  void make_groups(Incarnation broker, const std::vector<PartitionHandle>& orders) {
    auto own = [&](std::string id) {
      while (state.group_owner(id) != BrokerId(1)) id += "+";
      return id;
    };
    SaveGroup group = golden_group();
    group.group = own("readers");
    group.version = group.owners = 0;
    group.members[1] = {"app-2", MemberDetails{.client_id = "y"}, "all"};
    CHECK(propose(broker, group).verdict == CommandVerdict::kDone);
    CommitOffsets commit = golden_commit();
    commit.group = group.group;
    commit.owners = 0;
    commit.offsets[0].partition = orders[0];
    commit.offsets[1].partition = orders[2];
    CHECK(propose(broker, commit).verdict == CommandVerdict::kDone);
    CommitOffsets simple{.group = own("simple"), .offsets = {{orders[1], 5, -1, ""}}};
    CHECK(propose(broker, simple).verdict == CommandVerdict::kDone);
  }
};

TEST(GoldenSnapshot, IsWhatItsHistoryGivesAndRestoresToItself) {
  auto lines = golden_lines("src/metadata/state/golden/snapshot_v1.txt");
  GoldenState golden;
  std::vector<Slice> cut = golden.state.to_chunks();
  std::vector<Slice> stored;
  for (size_t i = 0; i < lines.size(); ++i) {
    stored.push_back(Slice::take(from_hex(lines[i].second)));
    ASSERT_LT(i, cut.size());
    EXPECT_EQ(to_hex(cut[i].view()), lines[i].second) << "chunk " << lines[i].first;
  }
  EXPECT_EQ(stored.size(), cut.size());
  auto restored = State::from_chunks(stored);
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->hash(), golden.state.hash());
  std::vector<Slice> again = restored->to_chunks();
  ASSERT_EQ(again.size(), stored.size());
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(to_hex(again[i].view()), lines[i].second);
}

TEST(GoldenSnapshot, OfTheTimeBeforeGroupsIsReadAndHasTheSameBytesToday) {
  auto lines = golden_lines("src/metadata/state/golden/snapshot_before_groups_v1.txt");
  std::vector<Slice> stored;
  for (const auto& [name, hex] : lines) stored.push_back(Slice::take(from_hex(hex)));
  auto restored = State::from_chunks(stored);
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_TRUE(restored->groups().empty());
  std::vector<Slice> again = restored->to_chunks();
  ASSERT_EQ(again.size(), stored.size());
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(to_hex(again[i].view()), lines[i].second);
}

// One broker, one topic of one partition, two commits: one plain, one of an idempotent producer, a snapshot, and a
// group of one member with one offset.
class DocumentedState : public StateDriver {
 public:
  DocumentedState() {
    gap = 1;
    time = WallTime(1'700'000'000'000);
    Incarnation broker = register_broker(1);
    propose(broker, AdvanceGcFence{FenceEpoch(1)});
    PartitionHandle partition = create_topic(broker, "t").at(0);
    commit(broker,
           {{.partition = partition, .records = 10, .bytes = 500, .max_timestamp = time.value() - 5}});
    commit_batches(broker, partition, {batch(7, 0, 0, 3)});
    propose(broker,
            SnapshotTaken{.position = LogPosition(4), .state_hash = 0x1122334455667788, .bytes = 1000});
    MemberDetails details{.client_id = "c", .client_host = "h"};
    details.session_timeout_ms = 45'000;
    details.rebalance_timeout_ms = 300'000;
    details.protocols = {{"range", "t"}};
    propose(broker, SaveGroup{.group = "g",
                              .protocol_type = "consumer",
                              .phase = GroupPhase::kStable,
                              .generation = 1,
                              .protocol = "range",
                              .leader = "m",
                              .members = {{"m", details, "all"}}});
    propose(broker,
            CommitOffsets{.group = "g", .generation = 1, .member = "m", .offsets = {{partition, 10, 0, ""}}});
  }
};

TEST(SnapshotPage, ItsExampleIsWhatAStateGives) {
  auto blocks = documented_bytes("docs/formats/snapshot.md");
  DocumentedState documented;
  std::vector<Slice> chunks = documented.state.to_chunks();
  ASSERT_EQ(blocks.size(), chunks.size());
  std::vector<Slice> slices;
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(to_hex(blocks[i]), to_hex(chunks[i].view())) << "chunk " << i;
    slices.push_back(Slice::copy_of(blocks[i]));
  }
  auto restored = State::from_chunks(slices);
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_EQ(restored->hash(), documented.state.hash());
}

}  // namespace
}  // namespace varve::metadata
