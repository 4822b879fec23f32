// Chunks of version 1 hold what transactions will leave behind: transactional runs and markers, which no entry of
// feature level 1 makes. The golden file keeps their bytes.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "metadata/state/apply.h"
#include "metadata/state/chunk_codec.h"
#include "metadata/state/state_testing.h"

namespace varve::metadata {
namespace {

constexpr const char* kGoldenFile = "src/metadata/state/golden/snapshot_markers_v1.txt";

// One partition: a plain run, a transactional one, its marker, and a plain one.
class StateWithAMarker {
 public:
  StateWithAMarker() {
    driver_.gap = 1;
    driver_.time = WallTime(1'700'000'000'000);
    Incarnation broker(1);
    apply(driver_.registration(1, Nonce(101)));
    driver_.adopt(broker, Nonce(101));
    apply(driver_.entry_of(broker,
                           {CreateTopic{.id = StateDriver::topic_id(1), .name = "ledger", .partitions = 1}}));
    CommitObject object = driver_.object_of(broker, {{.partition = partition_, .records = 3}});
    apply(driver_.entry_of(broker, {object}));
    Partition& partition = *data.partitions.find(partition_);
    CompactRun transactional;
    transactional.object = data.objects.find(object.object);
    transactional.position = 64;
    transactional.bytes = 90;
    transactional.records = 4;
    transactional.max_timestamp = 1'700'000'000'001;
    transactional.flags = CompactRun::kTransactional;
    data.partitions.append(partition_, partition, transactional);
    CompactRun marker;
    marker.records = 1;
    marker.max_timestamp = 1'700'000'000'002;
    marker.flags = CompactRun::kTransactional | CompactRun::kMarker;
    data.partitions.append(partition_, partition, marker);
    apply(driver_.entry_of(broker, {driver_.object_of(broker, {{.partition = partition_}})}));
    data.changes.rehash();
  }

  std::vector<std::vector<uint8_t>> chunks() const {
    std::vector<std::vector<uint8_t>> chunks{encode_chunk(data, {ChunkKind::kGeneral}),
                                             encode_chunk(data, {ChunkKind::kBrokers})};
    for (const auto& [key, hash] : data.chunk_hashes) chunks.push_back(encode_chunk(data, key));
    return chunks;
  }

  StateData data;

 private:
  void apply(const Entry& entry) {
    driver_.apply(entry);
    ApplyOutcome outcome = Applier(data).apply(driver_.state.position(), encode_entry(entry));
    CHECK(outcome.verdict == EntryVerdict::kApplied);
  }

  StateDriver driver_;
  PartitionHandle partition_{0};
};

TEST(GoldenSnapshot, HoldsTransactionalRunsAndMarkers) {
  std::ifstream file(kGoldenFile);
  std::vector<std::string> golden;
  for (std::string line; file >> line;) golden.push_back(line);
  auto chunks = StateWithAMarker().chunks();
  ASSERT_EQ(golden.size(), chunks.size()) << kGoldenFile;
  std::vector<Slice> slices;
  for (size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(to_hex(chunks[i]), golden[i]) << "chunk " << i;
    slices.push_back(Slice::copy_of(chunks[i]));
  }
  auto state = State::from_chunks(slices);
  ASSERT_TRUE(state.has_value()) << state.error().message;
  auto plan = state->plan_fetch(PartitionHandle(0), Offset(0), 1 << 20, true);
  ASSERT_TRUE(plan && plan->runs.size() == 4);
  EXPECT_FALSE(plan->runs[0].is_transactional);
  EXPECT_TRUE(plan->runs[1].is_transactional);
  EXPECT_FALSE(plan->runs[1].is_marker);
  EXPECT_TRUE(plan->runs[2].is_marker);
  EXPECT_EQ(plan->runs[2].base_offset, Offset(7));
  EXPECT_EQ(plan->runs[2].records, 1u);
  EXPECT_EQ(plan->partition.last_stable, Offset(9));
  EXPECT_TRUE(plan->aborted.empty());
}

}  // namespace
}  // namespace varve::metadata
