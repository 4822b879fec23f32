#include "protocol/records/lookup.h"

#include <gtest/gtest.h>

#include "protocol/records/builder.h"

namespace varve::protocol::records {
namespace {

class LookupEachCodec : public ::testing::TestWithParam<Codec> {};
INSTANTIATE_TEST_SUITE_P(Lookup, LookupEachCodec, ::testing::ValuesIn(kAllCodecs),
                         [](const auto& test) { return std::string(codec_name(test.param)); });

// C057: 12 records with timestamps 1..12 in one batch; the answer for 7 is inside, compressed or not.
TEST_P(LookupEachCodec, C057TheRecordIsFoundInsideTheBatch) {
  BatchBuilder builder({.codec = GetParam()});
  for (int i = 1; i <= 12; ++i) builder.add({WallTime(i), std::nullopt, as_bytes("value")});
  std::vector<uint8_t> bytes = builder.build();
  DecodeScratch scratch;
  auto find = [&](int64_t time) {
    return find_first_at_or_after(*BatchView::first_of(bytes), WallTime(time), scratch, kMiB).value();
  };
  EXPECT_EQ(find(7), (OffsetAndTimestamp{Offset(6), WallTime(7)}));
  EXPECT_EQ(find(-1), (OffsetAndTimestamp{Offset(0), WallTime(1)}));
  EXPECT_EQ(find(12), (OffsetAndTimestamp{Offset(11), WallTime(12)}));
  EXPECT_EQ(find(13), std::nullopt);

  set_base_offset(bytes, Offset(1000));
  EXPECT_EQ(find(7), (OffsetAndTimestamp{Offset(1006), WallTime(7)}));
  stamp_log_append_time(bytes, WallTime(99));
  EXPECT_EQ(find(7), (OffsetAndTimestamp{Offset(1000), WallTime(99)}));
}

TEST(Lookup, OfTimesOutOfOrderTheFirstOffsetWins) {
  BatchBuilder builder({});
  for (int time : {5, 9, 3, 9, 7}) builder.add({WallTime(time), std::nullopt, std::nullopt});
  std::vector<uint8_t> bytes = builder.build();
  auto batch = BatchView::first_of(bytes);
  DecodeScratch scratch;
  EXPECT_EQ(find_first_at_or_after(*batch, WallTime(6), scratch, kMiB).value()->offset, Offset(1));
  EXPECT_EQ(find_first_at_or_after(*batch, batch->header().max_timestamp, scratch, kMiB).value()->offset,
            Offset(1));
}

TEST(Lookup, ABatchThatCannotBeReadIsAnError) {
  BatchBuilder builder({.codec = Codec::kGzip});
  builder.add({WallTime(5), std::nullopt, std::nullopt});
  std::vector<uint8_t> bytes = builder.build();
  DecodeScratch scratch;
  bytes[kBatchHeaderBytes] ^= 0xff;
  EXPECT_EQ(find_first_at_or_after(*BatchView::first_of(bytes), WallTime(1), scratch, kMiB).error().code,
            RecordErrc::kCorruptCompression);
}

}  // namespace
}  // namespace varve::protocol::records
