#include "protocol/records/batch.h"

#include <gtest/gtest.h>

#include "protocol/records/builder.h"

namespace varve::protocol::records {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes one_batch() {
  BatchBuilder builder(
      {.producer_id = ProducerId(7), .producer_epoch = ProducerEpoch(1), .base_sequence = Sequence(5)});
  builder.add({WallTime(1000), as_bytes("k"), as_bytes("value")});
  builder.add({WallTime(1009), std::nullopt, std::nullopt});
  return builder.build();
}

RecordErrc error_of(ByteView bytes) {
  auto batch = BatchView::first_of(bytes);
  EXPECT_FALSE(batch.has_value());
  return batch.has_value() ? RecordErrc::kInternal : batch.error().code;
}

TEST(Batch, HeaderDecodesToWhatWasEncoded) {
  BatchHeader header;
  header.base_offset = Offset(1);
  header.batch_length = 2;
  header.partition_leader_epoch = 3;
  header.magic = 4;
  header.crc = 0xdeadbeef;
  header.attributes = 6;
  header.last_offset_delta = 7;
  header.base_timestamp = WallTime(8);
  header.max_timestamp = WallTime(9);
  header.producer_id = ProducerId(10);
  header.producer_epoch = ProducerEpoch(11);
  header.base_sequence = Sequence(12);
  header.record_count = 13;
  Bytes bytes(kBatchHeaderBytes);
  header.encode(bytes);
  EXPECT_EQ(BatchHeader::decode(bytes), header);
  EXPECT_EQ(to_hex(bytes),
            "0000000000000001"
            "00000002"
            "00000003"
            "04"
            "deadbeef"
            "0006"
            "00000007"
            "0000000000000008"
            "0000000000000009"
            "000000000000000a"
            "000b"
            "0000000c"
            "0000000d");
}

TEST(Batch, ViewTakesTheFirstWholeBatchAndLeavesTheRest) {
  Bytes bytes = one_batch();
  size_t size = bytes.size();
  bytes.push_back(0xff);
  auto batch = BatchView::first_of(bytes);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->bytes().size(), size);
  EXPECT_TRUE(batch->checksum_matches());
  EXPECT_EQ(batch->header().record_count, 2);
  EXPECT_EQ(batch->header().last_offset(), Offset(1));
  EXPECT_EQ(batch->header().last_sequence(), Sequence(6));
  EXPECT_EQ(batch->header().base_timestamp, WallTime(1000));
  EXPECT_EQ(batch->header().max_timestamp, WallTime(1009));
}

TEST(Batch, WhatIsNoBatchIsToldApart) {
  const Bytes good = one_batch();
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(error_of(ByteView(good).first(size)), RecordErrc::kNoBatch) << size;
  }
  Bytes bytes = good;
  for (int32_t length : {-1, 0, 13}) {
    store_be(bytes.data() + kBatchLengthAt, length);
    EXPECT_EQ(error_of(bytes), RecordErrc::kCorruptFrame) << length;
  }
  store_be(bytes.data() + kBatchLengthAt, int32_t{48});
  EXPECT_EQ(error_of(bytes), RecordErrc::kCorruptFrame);
  for (int magic : {-1, 3, 100}) {
    bytes = good;
    bytes[kMagicAt] = static_cast<uint8_t>(magic);
    EXPECT_EQ(error_of(bytes), RecordErrc::kCorruptFrame) << magic;
  }
  for (int magic : {0, 1}) {
    bytes[kMagicAt] = static_cast<uint8_t>(magic);
    EXPECT_EQ(error_of(bytes), RecordErrc::kOldFormat) << magic;
  }
}

TEST(Batch, EveryBitBehindTheChecksumIsCovered) {
  const Bytes good = one_batch();
  for (size_t bit = kCrcAt * 8; bit < good.size() * 8; ++bit) {
    Bytes bytes = good;
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(BatchView::first_of(bytes)->checksum_matches()) << bit;
  }
}

TEST(Batch, OffsetAndEpochChangeWithoutTheChecksum) {
  Bytes bytes = one_batch();
  set_base_offset(bytes, Offset(123'456'789'012));
  set_partition_leader_epoch(bytes, 42);
  auto batch = BatchView::first_of(bytes);
  EXPECT_TRUE(batch->checksum_matches());
  EXPECT_EQ(batch->header().base_offset, Offset(123'456'789'012));
  EXPECT_EQ(batch->header().partition_leader_epoch, 42);
}

TEST(Batch, LogAppendTimeIsStampedWithTheHeaderAlone) {
  for (size_t value_bytes : {0, 1, 100, 70'000}) {
    BatchBuilder builder({});
    Bytes value(value_bytes, 'x');
    builder.add({WallTime(5), std::nullopt, ByteView(value)});
    Bytes bytes = builder.build();
    Bytes header(bytes.begin(), bytes.begin() + kBatchHeaderBytes);
    stamp_log_append_time(header, WallTime(1'700'000'000'000));
    std::copy(header.begin(), header.end(), bytes.begin());
    auto batch = BatchView::first_of(bytes);
    EXPECT_TRUE(batch->checksum_matches()) << value_bytes;
    EXPECT_TRUE(batch->header().log_append_time());
    EXPECT_EQ(batch->header().max_timestamp, WallTime(1'700'000'000'000));
    EXPECT_EQ(batch->header().base_timestamp, WallTime(5));
  }
}

TEST(Batch, StampingDoesNotHideAWrongChecksum) {
  Bytes bytes = one_batch();
  bytes.back() ^= 1;
  stamp_log_append_time(bytes, WallTime(9));
  EXPECT_FALSE(BatchView::first_of(bytes)->checksum_matches());
}

// C028: 2147483647 is followed by 0, inside a batch too.
TEST(Batch, C028SequencesWrapToZero) {
  EXPECT_EQ(sequence_after(Sequence(0), 1), Sequence(1));
  EXPECT_EQ(sequence_after(Sequence(2147483646), 1), Sequence(2147483647));
  EXPECT_EQ(sequence_after(Sequence(2147483647), 1), Sequence(0));
  EXPECT_EQ(sequence_after(Sequence(2147483646), 3), Sequence(1));
  BatchHeader header;
  header.base_sequence = Sequence(2147483646);
  header.last_offset_delta = 2;
  EXPECT_EQ(header.last_sequence(), Sequence(0));
  header.base_sequence = kNoSequence;
  EXPECT_EQ(header.last_sequence(), kNoSequence);
}

}  // namespace
}  // namespace varve::protocol::records
