#include "protocol/records/record_iterator.h"

#include <gtest/gtest.h>

#include "base/compression_testing.h"
#include "base/random.h"
#include "protocol/records/builder.h"

namespace varve::protocol::records {
namespace {

using Bytes = std::vector<uint8_t>;

struct Owned {
  Offset offset;
  WallTime timestamp;
  std::optional<std::string> key, value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;

  bool operator==(const Owned&) const = default;
};

std::optional<std::string> owned(const std::optional<ByteView>& bytes) {
  if (!bytes.has_value()) return std::nullopt;
  return std::string(as_text(*bytes));
}

Result<std::vector<Owned>, RecordError> read_all(const BatchView& batch, DecodeScratch& scratch,
                                                 size_t limit = 64 * kMiB) {
  std::vector<Owned> all;
  RecordIterator iterator(batch, scratch, limit);
  while (true) {
    auto record = iterator.next();
    if (!record) return pass_error(record);
    if (!record->has_value()) return all;
    Owned one{(*record)->offset, (*record)->timestamp, owned((*record)->key), owned((*record)->value), {}};
    for (const HeaderView& header : (*record)->headers)
      one.headers.emplace_back(header.key, owned(header.value));
    all.push_back(std::move(one));
  }
}

std::optional<ByteView> viewed(const std::optional<std::string>& text) {
  if (!text.has_value()) return std::nullopt;
  return as_bytes(*text);
}

void add(BatchBuilder& builder, const Owned& record) {
  std::vector<HeaderView> headers;
  for (const auto& [key, value] : record.headers) headers.push_back({key, viewed(value)});
  builder.add({record.timestamp, viewed(record.key), viewed(record.value), headers});
}

std::vector<Owned> sample(Random& random, int count, size_t value_bytes_max) {
  std::vector<Owned> records;
  auto text = [&](size_t bytes_max) -> std::optional<std::string> {
    if (random.chance(1, 5)) return std::nullopt;
    std::string value(random.below(bytes_max + 1), '\0');
    for (char& c : value) c = static_cast<char>(random.chance(1, 4) ? random.next() : 'a');
    return value;
  };
  for (int i = 0; i < count; ++i) {
    Owned record{Offset(100 + i),
                 WallTime(1'700'000'000'000 + random.between(-10'000, 10'000)),
                 text(20),
                 text(value_bytes_max),
                 {}};
    for (uint64_t h = random.below(4); h > 0; --h) record.headers.emplace_back(*text(0) + "h", text(30));
    records.push_back(std::move(record));
  }
  return records;
}

class RecordsEachCodec : public ::testing::TestWithParam<Codec> {};
INSTANTIATE_TEST_SUITE_P(RecordIterator, RecordsEachCodec, ::testing::ValuesIn(kAllCodecs),
                         [](const auto& test) { return std::string(codec_name(test.param)); });

TEST_P(RecordsEachCodec, GivesBackEveryRecordAcrossWindowsOfAnySize) {
  Random random(3);
  DecodeScratch scratch;
  for (size_t value_bytes_max : {0, 10, 3'000, 300'000}) {
    std::vector<Owned> records = sample(random, value_bytes_max > 10'000 ? 5 : 200, value_bytes_max);
    BatchBuilder builder({.codec = GetParam(), .base_offset = Offset(100)});
    for (const Owned& record : records) add(builder, record);
    Bytes bytes = builder.build();
    auto batch = BatchView::first_of(bytes);
    ASSERT_TRUE(batch.has_value());
    auto read = read_all(*batch, scratch);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(*read, records);
  }
}

TEST_P(RecordsEachCodec, StopsAtTheDecompressionLimit) {
  BatchBuilder builder({.codec = GetParam()});
  Bytes value(100'000, 'x');
  for (int i = 0; i < 10; ++i) builder.add({WallTime(1), std::nullopt, ByteView(value)});
  Bytes bytes = builder.build();
  DecodeScratch scratch;
  auto read = read_all(*BatchView::first_of(bytes), scratch, 500'000);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, RecordErrc::kDecompressedTooLarge);
  EXPECT_EQ(read_all(*BatchView::first_of(bytes), scratch)->size(), 10u);
}

TEST_P(RecordsEachCodec, AWrongRecordCountIsAnErrorBothWays) {
  BatchBuilder builder({.codec = GetParam()});
  for (int i = 0; i < 3; ++i) builder.add({WallTime(1), as_bytes("key"), as_bytes("value")});
  Bytes bytes = builder.build();
  DecodeScratch scratch;
  for (int32_t count : {1, 2, 4, 1'000'000, -1}) {
    store_be(bytes.data() + kRecordCountAt, count);
    EXPECT_FALSE(read_all(*BatchView::first_of(bytes), scratch).has_value()) << count;
  }
}

TEST_P(RecordsEachCodec, DamageNeverCrashesAndNeverPassesTheEnd) {
  Random random(11);
  BatchBuilder builder({.codec = GetParam()});
  for (const Owned& record : sample(random, 20, 100)) add(builder, record);
  const Bytes good = builder.build();
  DecodeScratch scratch;
  int refused = 0;
  for (int round = 0; round < 3'000; ++round) {
    Bytes bytes = good;
    for (uint64_t i = 0; i <= random.below(4); ++i) {
      bytes[kAttributesAt + 2 + random.below(bytes.size() - kAttributesAt - 2)] ^= 1u << random.below(8);
    }
    if (!read_all(*BatchView::first_of(bytes), scratch)) ++refused;
  }
  EXPECT_GT(refused, 200);
}

TEST(RecordIterator, ARecordThatClaimsMoreThanThereIsTakesNoMemory) {
  Bytes value(10, 'x');
  BatchBuilder builder({.codec = Codec::kZstd});
  builder.add({WallTime(1), std::nullopt, ByteView(value)});
  Bytes bytes = builder.build();
  ByteWriter records;
  records.varint(1'000'000'000);
  bytes.resize(kBatchHeaderBytes);
  ByteWriter packed;
  ASSERT_TRUE(compress(Codec::kZstd, records.view(), packed).has_value());
  bytes.insert(bytes.end(), packed.view().begin(), packed.view().end());
  store_be(bytes.data() + kBatchLengthAt, static_cast<int32_t>(bytes.size() - kBatchOverheadBytes));
  DecodeScratch scratch;
  auto read = read_all(*BatchView::first_of(bytes), scratch, SIZE_MAX);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, RecordErrc::kCorruptRecord);
  EXPECT_LT(scratch.window.capacity(), 1'000'000u);
}

TEST(RecordIterator, LogAppendTimeShowsTheBatchsTime) {
  BatchBuilder builder({});
  builder.add({WallTime(5), std::nullopt, std::nullopt});
  builder.add({WallTime(6), std::nullopt, std::nullopt});
  Bytes bytes = builder.build();
  stamp_log_append_time(bytes, WallTime(77));
  DecodeScratch scratch;
  auto read = read_all(*BatchView::first_of(bytes), scratch);
  EXPECT_EQ(read->at(0).timestamp, WallTime(77));
  EXPECT_EQ(read->at(1).timestamp, WallTime(77));
}

TEST(RecordIterator, AnUnknownCodecIsAnError) {
  BatchBuilder builder({});
  builder.add({WallTime(5), std::nullopt, std::nullopt});
  Bytes bytes = builder.build();
  bytes[kAttributesAt + 1] = 6;
  DecodeScratch scratch;
  EXPECT_EQ(read_all(*BatchView::first_of(bytes), scratch).error().code, RecordErrc::kCodec);
}

TEST(BatchBuilder, KeepsGapsThatCompactionLeaves) {
  BatchBuilder builder({.codec = Codec::kLz4, .base_offset = Offset(50)});
  builder.add_at(2, {WallTime(1), as_bytes("a"), std::nullopt});
  builder.add_at(7, {WallTime(2), as_bytes("b"), std::nullopt});
  Bytes bytes = builder.build(9);
  DecodeScratch scratch;
  auto batch = BatchView::first_of(bytes);
  EXPECT_EQ(batch->header().last_offset(), Offset(59));
  auto read = read_all(*batch, scratch);
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->at(0).offset, Offset(52));
  EXPECT_EQ(read->at(1).offset, Offset(57));
  EXPECT_EQ(builder.record_count(), 0);
}

TEST(BatchBuilder, AnEmptyBatchHoldsThePlaceOfItsOffsets) {
  Bytes bytes = build_empty_batch({.base_offset = Offset(10)}, Offset(19), WallTime(1234));
  EXPECT_EQ(bytes.size(), kBatchHeaderBytes);
  auto batch = BatchView::first_of(bytes);
  ASSERT_TRUE(batch.has_value());
  EXPECT_TRUE(batch->checksum_matches());
  EXPECT_EQ(batch->header().last_offset(), Offset(19));
  EXPECT_EQ(batch->header().max_timestamp, WallTime(1234));
  DecodeScratch scratch;
  EXPECT_TRUE(read_all(*batch, scratch)->empty());
}

}  // namespace
}  // namespace varve::protocol::records
