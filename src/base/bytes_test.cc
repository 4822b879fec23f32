#include "base/bytes.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/ids.h"
#include "base/random.h"

namespace varve {
namespace {

TEST(Bytes, VarintsRoundTripAtTheirEdges) {
  for (int64_t value : {int64_t{0}, int64_t{-1}, int64_t{63}, int64_t{64}, int64_t{-64}, int64_t{-65},
                        int64_t{INT32_MAX}, int64_t{INT32_MIN}, INT64_MAX, INT64_MIN}) {
    ByteWriter writer;
    writer.varint(value);
    writer.unsigned_varint(static_cast<uint64_t>(value));
    ByteReader reader(writer.view());
    EXPECT_EQ(reader.varint(), value);
    EXPECT_EQ(reader.unsigned_varint(), static_cast<uint64_t>(value));
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(Bytes, ReaderNeverPassesTheEnd) {
  std::vector<uint8_t> bytes = {0xff, 0xff};
  ByteReader short_integer(bytes);
  EXPECT_EQ(short_integer.be<uint32_t>(), 0u);
  EXPECT_FALSE(short_integer.ok());

  ByteReader open_varint(bytes);
  EXPECT_EQ(open_varint.unsigned_varint(), 0u);
  EXPECT_FALSE(open_varint.ok());

  std::vector<uint8_t> hostile_count = {0xff, 0xff, 0xff, 0xff, 0x0f, 1};
  ByteReader counts(hostile_count);
  EXPECT_EQ(counts.count(1), 0u);
  EXPECT_FALSE(counts.ok());
}

TEST(Bytes, VarintThatOverflowsIsRefused) {
  std::vector<uint8_t> eleven(10, 0xff);
  eleven.push_back(0x01);
  ByteReader reader(eleven);
  reader.unsigned_varint();
  EXPECT_FALSE(reader.ok());
}

TEST(Crc32c, KnownAnswerAndBothImplementationsAgree) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  Random random(1);
  std::vector<uint8_t> bytes(1000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  for (size_t size = 0; size < bytes.size(); size += 7) {
    ByteView view = ByteView(bytes).first(size);
    EXPECT_EQ(crc32c(view), crc32c_extend_portable(0, view));
    EXPECT_EQ(crc32c(view), crc32c_extend(crc32c(view.first(size / 3)), view.subspan(size / 3)));
  }
}

TEST(Uuid, TextFormIsKafkas) {
  EXPECT_EQ(Uuid{}.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
  Uuid ones;
  ones.bytes.fill(0xff);
  EXPECT_EQ(ones.to_string(), "_____________________w");
}

}  // namespace
}  // namespace varve
