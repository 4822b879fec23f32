#include "protocol/records/control.h"

#include <gtest/gtest.h>

#include "protocol/records/builder.h"
#include "protocol/records/validate.h"

namespace varve::protocol::records {
namespace {

const EndMarker kCommit{MarkerType::kCommit, ProducerId(9), ProducerEpoch(3), 17};

TEST(ControlBatch, AMarkerReadsBackAsItWasWritten) {
  DecodeScratch scratch;
  for (EndMarker marker : {kCommit, EndMarker{MarkerType::kAbort, ProducerId(1), ProducerEpoch(0), 0}}) {
    std::vector<uint8_t> bytes = build_end_marker(marker, Offset(55), 2, WallTime(1000));
    auto batch = check_stored(bytes);
    ASSERT_TRUE(batch.has_value());
    EXPECT_TRUE(batch->header().control());
    EXPECT_TRUE(batch->header().transactional());
    EXPECT_EQ(batch->header().base_offset, Offset(55));
    EXPECT_EQ(batch->header().last_offset(), Offset(55));
    EXPECT_EQ(batch->header().base_sequence, kNoSequence);
    EXPECT_EQ(parse_end_marker(*batch, scratch).value(), marker);
  }
}

TEST(ControlBatch, OtherControlRecordsAreNoMarkers) {
  DecodeScratch scratch;
  BatchOptions options;
  options.control = true;
  BatchBuilder leader_change(options);
  leader_change.add({WallTime(0), as_bytes(std::string_view("\0\0\0\2", 4)), as_bytes("x")});
  auto bytes = leader_change.build();
  EXPECT_EQ(parse_end_marker(*BatchView::first_of(bytes), scratch).value(), std::nullopt);
}

TEST(ControlBatch, ADamagedMarkerIsAnError) {
  DecodeScratch scratch;
  BatchOptions options;
  options.control = true;
  for (std::string_view key : {std::string_view("\0\0\0", 3), std::string_view("\0\0\0\1", 4)}) {
    BatchBuilder builder(options);
    builder.add({WallTime(0), as_bytes(key), as_bytes("abc")});
    auto bytes = builder.build();
    EXPECT_EQ(parse_end_marker(*BatchView::first_of(bytes), scratch).error().code,
              RecordErrc::kCorruptRecord);
  }
  BatchBuilder plain({});
  plain.add({WallTime(0), std::nullopt, std::nullopt});
  auto bytes = plain.build();
  EXPECT_EQ(parse_end_marker(*BatchView::first_of(bytes), scratch).error().code, RecordErrc::kControlBatch);
}

}  // namespace
}  // namespace varve::protocol::records
