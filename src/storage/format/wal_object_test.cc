#include "storage/format/wal_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/crc32c.h"
#include "base/random.h"
#include "base/read_file_testing.h"
#include "storage/format/test_batch.h"

namespace varve::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

WalHeader header_for_test() {
  WalHeader header;
  for (uint8_t i = 0; i < 16; ++i) header.log_id.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  header.nonce = Nonce(0x1122334455667788);
  header.object = {Incarnation(7), ObjectNumber(42)};
  header.epoch = FenceEpoch(3);
  header.created = WallTime(1'700'000'000'000);
  return header;
}

Uuid topic_for_test(uint8_t seed) {
  Uuid id;
  id.bytes.fill(seed);
  return id;
}

WalBatch wal_batch(const TestBatch& options) {
  WalBatch batch;
  batch.bytes = make_batch(options);
  batch.records = static_cast<uint32_t>(options.timestamps.size());
  batch.max_timestamp = *std::max_element(options.timestamps.begin(), options.timestamps.end());
  batch.producer_id = options.producer_id;
  batch.producer_epoch = options.producer_epoch;
  batch.first_sequence = options.first_sequence;
  batch.is_copied = batch.bytes.size() < kReferencedBatchBytesMin;
  return batch;
}

std::shared_ptr<const WalRun> make_run(uint32_t handle, uint8_t topic, int32_t index,
                                       std::vector<TestBatch> batches, bool is_log_append_time = false) {
  auto run = std::make_shared<WalRun>();
  run->partition = PartitionHandle(handle);
  run->topic = topic_for_test(topic);
  run->index = PartitionIndex(index);
  run->is_transactional = batches.front().is_transactional;
  run->is_log_append_time = is_log_append_time;
  for (const TestBatch& batch : batches) run->batches.push_back(wal_batch(batch));
  return run;
}

// What the golden file and the example in the documentation hold.
std::vector<std::shared_ptr<const WalRun>> example_runs() {
  return {make_run(5, 0x11, 0, {{.timestamps = {1'700'000'000'001}, .value_bytes = 3, .fill = 'a'}}),
          make_run(9, 0x11, 1,
                   {{.timestamps = {1'700'000'000'002, 1'700'000'000'009},
                     .value_bytes = 1,
                     .fill = 'b',
                     .producer_id = ProducerId(1000),
                     .producer_epoch = ProducerEpoch(2),
                     .first_sequence = Sequence(6)}},
                   true)};
}

std::vector<uint8_t> flatten(const BuiltObject& built) {
  std::vector<uint8_t> bytes;
  for (const Slice& slice : built.slices) bytes.insert(bytes.end(), slice.view().begin(), slice.view().end());
  return bytes;
}

TEST(WalObject, gives_back_what_was_built) {
  auto runs = example_runs();
  BuiltObject built = build_wal_object(header_for_test(), LogPosition(77), runs);
  std::vector<uint8_t> bytes = flatten(built);
  ASSERT_EQ(bytes.size(), built.bytes);
  EXPECT_EQ(crc32c(bytes), built.crc);

  auto object = parse_wal_object(bytes);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(object->header, header_for_test());
  EXPECT_EQ(object->directory.applied, LogPosition(77));
  ASSERT_EQ(object->directory.runs.size(), 2u);
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(object->directory.runs[i].run, built.runs[i]);
    EXPECT_EQ(object->directory.runs[i].topic, runs[i]->topic);
    EXPECT_EQ(object->directory.runs[i].index, runs[i]->index);
  }
  EXPECT_TRUE(built.runs[1].is_log_append_time);
  EXPECT_EQ(built.runs[1].max_timestamp, 1'700'000'000'009);
  EXPECT_THAT(built.runs[1].producers,
              ElementsAre(metadata::ProducerBatch{static_cast<uint32_t>(runs[1]->batches[0].bytes.size()), 2,
                                                  ProducerId(1000), ProducerEpoch(2), Sequence(6)}));
  EXPECT_THAT(verify_wal_batches(bytes, *object), IsEmpty());
}

TEST(WalObject, lays_batches_where_the_directory_says) {
  auto runs = example_runs();
  BuiltObject built = build_wal_object(header_for_test(), LogPosition(77), runs);
  std::vector<uint8_t> bytes = flatten(built);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Slice& batch = runs[i]->batches[0].bytes;
    EXPECT_TRUE(std::equal(batch.view().begin(), batch.view().end(), bytes.begin() + built.runs[i].position));
  }
}

TEST(WalObject, copies_small_batches_and_references_large_ones) {
  TestBatch small{.value_bytes = 100};
  TestBatch large{.value_bytes = kReferencedBatchBytesMin};
  auto runs = std::vector{make_run(1, 1, 0, {small, small, large, small})};
  BuiltObject built = build_wal_object(header_for_test(), LogPosition(1), runs);
  // Header and two copies, the reference, one copy, directory with trailer.
  ASSERT_EQ(built.slices.size(), 4u);
  EXPECT_EQ(built.slices[1].data(), runs[0]->batches[2].bytes.data());
  EXPECT_EQ(built.slices[0].size(), kWalHeaderBytes + 2 * runs[0]->batches[0].bytes.size());
  EXPECT_EQ(built.slices[0].owner(), built.slices[2].owner());
  std::vector<uint8_t> bytes = flatten(built);
  auto object = parse_wal_object(bytes);
  ASSERT_TRUE(object);
  EXPECT_THAT(verify_wal_batches(bytes, *object), IsEmpty());
}

TEST(WalObject, has_the_bytes_of_the_golden_file) {
  std::vector<uint8_t> bytes = flatten(build_wal_object(header_for_test(), LogPosition(77), example_runs()));
  std::string golden = read_file("src/storage/format/golden/wal_object_v1.hex");
  std::string hex;
  for (char c : golden) {
    if (c != '\n') hex += c;
  }
  EXPECT_EQ(to_hex(bytes), hex);
}

TEST(WalObject, has_the_bytes_of_the_documented_example) {
  std::string page = read_file("docs/formats/wal_object.md");
  size_t begin = page.find("```hex\n");
  ASSERT_NE(begin, std::string::npos);
  begin += 7;
  std::istringstream lines(page.substr(begin, page.find("```", begin) - begin));
  std::string hex;
  for (std::string line; std::getline(lines, line);) {
    for (char c : line.substr(0, line.find('#'))) {
      if (c != ' ') hex += c;
    }
  }
  EXPECT_EQ(hex, to_hex(flatten(build_wal_object(header_for_test(), LogPosition(77), example_runs()))));
}

TEST(WalObject, any_flipped_bit_outside_the_batches_is_an_error) {
  BuiltObject built = build_wal_object(header_for_test(), LogPosition(77), example_runs());
  std::vector<uint8_t> bytes = flatten(built);
  for (size_t at = 0; at < bytes.size(); ++at) {
    bool is_in_batches = at >= kWalHeaderBytes && at < built.runs[1].position + built.runs[1].bytes;
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] ^= static_cast<uint8_t>(1 << bit);
      EXPECT_EQ(parse_wal_object(bytes).has_value(), is_in_batches) << "byte " << at << " bit " << bit;
      bytes[at] ^= static_cast<uint8_t>(1 << bit);
    }
  }
}

TEST(WalObject, the_verifier_finds_any_flipped_bit_of_a_batch) {
  BuiltObject built = build_wal_object(header_for_test(), LogPosition(77), example_runs());
  std::vector<uint8_t> bytes = flatten(built);
  auto object = parse_wal_object(bytes);
  ASSERT_TRUE(object);
  size_t end = built.runs[1].position + built.runs[1].bytes;
  for (size_t at = kWalHeaderBytes; at < end; ++at) {
    // Base offset and leader epoch are written when a batch is served; the CRC does not cover them.
    size_t in_batch = at - (at < built.runs[1].position ? built.runs[0].position : built.runs[1].position);
    bool is_covered = !(in_batch < 8 || (in_batch >= 12 && in_batch < 16));
    bytes[at] ^= 0x10;
    EXPECT_EQ(verify_wal_batches(bytes, *object).empty(), !is_covered) << "byte " << at;
    bytes[at] ^= 0x10;
  }
}

TEST(WalObject, a_cut_object_is_an_error_at_every_length) {
  std::vector<uint8_t> bytes = flatten(build_wal_object(header_for_test(), LogPosition(77), example_runs()));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_wal_object(ByteView(bytes).first(size))) << size;
  }
}

TEST(WalObject, a_directory_that_contradicts_itself_is_refused_although_its_checksum_holds) {
  WalHeader header = header_for_test();
  std::vector<uint8_t> bytes = flatten(build_wal_object(header, LogPosition(77), example_runs()));
  ByteView tail = ByteView(bytes).last(kWalTrailerBytes);
  WalTrailer trailer = *parse_wal_trailer(tail, bytes.size());
  std::vector<uint8_t> directory(
      bytes.begin() + static_cast<ptrdiff_t>(trailer.directory_position),
      bytes.begin() + static_cast<ptrdiff_t>(trailer.directory_position + trailer.directory_bytes));
  Random random(1);
  size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint8_t> damaged = directory;
    for (uint64_t n = random.between(1, 3); n > 0; --n) {
      damaged[random.below(damaged.size())] = static_cast<uint8_t>(random.next());
    }
    trailer.directory_crc = crc32c(damaged);
    auto parsed = parse_wal_directory(damaged, trailer, header);
    if (!parsed) {
      ++refused;
      continue;
    }
    // What passes lies inside the object, in order.
    uint64_t end = kWalHeaderBytes;
    for (const WalDirectoryRun& run : parsed->runs) {
      ASSERT_GE(run.run.position, end);
      end = run.run.position + run.run.bytes;
      ASSERT_LE(end, trailer.directory_position);
    }
  }
  EXPECT_GT(refused, 10'000u);
}

TEST(WalObject, a_batch_that_is_not_what_the_directory_says_is_named) {
  std::vector<uint8_t> bytes = flatten(build_wal_object(header_for_test(), LogPosition(77), example_runs()));
  WalObject object = *parse_wal_object(bytes);
  object.directory.runs[1].run.producers[0].first_sequence = Sequence(7);
  EXPECT_THAT(verify_wal_batches(bytes, object), ElementsAre(HasSubstr("another producer or sequence")));
  object.directory.runs[1].run.bytes -= 1;
  EXPECT_THAT(verify_wal_batches(bytes, object), ElementsAre(HasSubstr("no whole batch")));
}

TEST(WalObject, ten_thousand_partitions_cost_a_few_bytes_each) {
  std::vector<std::shared_ptr<const WalRun>> runs;
  for (uint32_t i = 0; i < 10'000; ++i) {
    runs.push_back(make_run(i, 1, static_cast<int32_t>(i), {{.timestamps = {1'700'000'000'000}}}));
  }
  std::vector<uint8_t> bytes = flatten(build_wal_object(header_for_test(), LogPosition(1), runs));
  auto object = parse_wal_object(bytes);
  ASSERT_TRUE(object);
  auto trailer = parse_wal_trailer(ByteView(bytes).last(kWalTrailerBytes), bytes.size());
  EXPECT_LT(trailer->directory_bytes, 10'000u * 12);
}

}  // namespace
}  // namespace varve::storage
