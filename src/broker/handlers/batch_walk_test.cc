#include "broker/handlers/batch_walk.h"

#include <gtest/gtest.h>

#include "protocol/records/batch.h"

namespace varve::broker {
namespace {

std::vector<uint8_t> batch(int32_t records, int16_t codec, size_t payload) {
  protocol::records::BatchHeader header;
  header.batch_length = static_cast<int32_t>(protocol::records::kBatchHeaderBytes -
                                             protocol::records::kBatchOverheadBytes + payload);
  header.record_count = records;
  header.attributes = codec;
  std::vector<uint8_t> bytes(protocol::records::kBatchHeaderBytes + payload);
  header.encode(bytes);
  return bytes;
}

TEST(BatchWalk, CountsRecordsHoweverTheBytesAreCut) {
  std::vector<uint8_t> bytes = batch(3, 0, 100);
  for (const auto& next : {batch(5, 4, 7), batch(1, 1, 0)})
    bytes.insert(bytes.end(), next.begin(), next.end());
  Slice whole = Slice::take(bytes);
  for (size_t piece = 1; piece <= whole.size(); ++piece) {
    std::vector<Slice> pieces;
    for (size_t at = 0; at < whole.size(); at += piece) {
      pieces.push_back(whole.sub(at, std::min(piece, whole.size() - at)));
    }
    ASSERT_EQ(count_records(pieces), 9u) << piece;
  }
}

TEST(BatchWalk, EndsAtBytesThatAreNoBatch) {
  EXPECT_EQ(count_records({}), 0u);
  std::vector<uint8_t> bytes = batch(3, 2, 10);
  bytes.resize(70);
  EXPECT_EQ(count_records({Slice::take(bytes)}), 3u);
  EXPECT_EQ(count_records({Slice::take(std::vector<uint8_t>(200))}), 0u);
}

}  // namespace
}  // namespace varve::broker
