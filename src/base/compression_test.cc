#include "base/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lz4frame.h>
#include <snappy.h>

#include "base/compression_testing.h"
#include "base/limits.h"
#include "base/random.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

Bytes sample(size_t size, bool compressible) {
  Random random(size + 1);
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(compressible ? (i / 7) % 13 + random.below(2) : random.next());
  }
  return bytes;
}

Bytes compressed(Codec codec, ByteView input) {
  ByteWriter out;
  EXPECT_TRUE(compress(codec, input, out).has_value());
  return out.take();
}

CompressionErrc error_of(Codec codec, ByteView input, size_t limit = kMiB) {
  Decompressor decompressor;
  auto result = decompress(decompressor, codec, input, limit);
  EXPECT_FALSE(result.has_value());
  return result.has_value() ? CompressionErrc::kInternal : result.error().code;
}

class EachCodec : public ::testing::TestWithParam<Codec> {};
INSTANTIATE_TEST_SUITE_P(Compression, EachCodec, ::testing::ValuesIn(kAllCodecs),
                         [](const auto& test) { return std::string(codec_name(test.param)); });

TEST_P(EachCodec, RoundTripsInPiecesOfAnySizeWithOneDecompressor) {
  Decompressor decompressor;
  for (size_t size : {0, 1, 100, 32'768, 32'769, 200'000}) {
    for (bool compressible : {true, false}) {
      Bytes input = sample(size, compressible);
      Bytes packed = compressed(GetParam(), input);
      for (size_t piece : {1, 1000, 65'536}) {
        if (piece == 1 && size > 1000) continue;
        auto result = decompress(decompressor, GetParam(), packed, size, piece);
        ASSERT_TRUE(result.has_value()) << result.error().message << " size " << size << " piece " << piece;
        EXPECT_EQ(*result, input);
      }
      EXPECT_EQ(decompress(decompressor, GetParam(), packed, size).value(), input);
    }
  }
}

TEST_P(EachCodec, StopsAtTheLimitAndTheErrorStays) {
  Bytes packed = compressed(GetParam(), sample(100'000, true));
  Decompressor decompressor;
  for (size_t limit : {0, 1, 50'000, 99'999}) {
    auto result = decompress(decompressor, GetParam(), packed, limit, 4096);
    ASSERT_FALSE(result.has_value()) << limit;
    EXPECT_EQ(result.error().code, CompressionErrc::kTooLarge);
    Bytes piece(10);
    EXPECT_EQ(decompressor.read(piece).error().code, CompressionErrc::kTooLarge);
  }
  EXPECT_TRUE(decompress(decompressor, GetParam(), packed, 100'000, 4096).has_value());
}

TEST_P(EachCodec, AnInputCutShortIsAnErrorOrAShorterOutputNeverMore) {
  Bytes input = sample(5'000, true);
  Bytes packed = compressed(GetParam(), input);
  Decompressor decompressor;
  for (size_t size = 0; size < packed.size(); ++size) {
    auto result = decompress(decompressor, GetParam(), ByteView(packed).first(size), kMiB);
    if (GetParam() == Codec::kNone) {
      EXPECT_EQ(result->size(), size);
    } else if (GetParam() == Codec::kSnappy && size == 16) {
      EXPECT_TRUE(result->empty());  // a stream of no blocks is whole
    } else {
      ASSERT_FALSE(result.has_value()) << size;
      EXPECT_EQ(result.error().code, CompressionErrc::kCorrupt);
    }
  }
}

TEST_P(EachCodec, DamageAndGarbageNeverCrash) {
  Random random(7);
  Decompressor decompressor;
  const Bytes packed = compressed(GetParam(), sample(3'000, true));
  int refused = 0;
  for (int round = 0; round < 3'000; ++round) {
    Bytes damaged = packed;
    for (uint64_t i = 0; i <= random.below(3); ++i)
      damaged[random.below(damaged.size())] ^= 1u << random.below(8);
    if (!decompress(decompressor, GetParam(), damaged, 64 * kKiB)) ++refused;
    Bytes garbage(random.below(200));
    for (uint8_t& byte : garbage) byte = static_cast<uint8_t>(random.next());
    (void)decompress(decompressor, GetParam(), garbage, 64 * kKiB);
  }
  if (GetParam() != Codec::kNone) {
    EXPECT_GT(refused, 300);
  }
  EXPECT_TRUE(decompress(decompressor, GetParam(), packed, 64 * kKiB).has_value());
}

TEST_P(EachCodec, HasKafkasNumber) {
  EXPECT_EQ(codec_of_id(static_cast<int>(GetParam())), GetParam());
  EXPECT_EQ(codec_of_id(5), std::nullopt);
  EXPECT_EQ(codec_of_id(-1), std::nullopt);
}

// C032: strict readers want the versions of snappy-java's header as big-endian 1, 1.
TEST(Compression, SnappyIsWrittenWithBigEndianVersions) {
  Bytes packed = compressed(Codec::kSnappy, sample(10, true));
  EXPECT_EQ(to_hex(ByteView(packed).first(16)), "82534e41505059000000000100000001");
}

TEST(Compression, SnappyIsReadRawAndWithLittleEndianVersionsAndConcatenated) {
  Bytes input = sample(70'000, true);
  std::string raw;
  snappy::Compress(reinterpret_cast<const char*>(input.data()), input.size(), &raw);
  Decompressor decompressor;
  EXPECT_EQ(decompress(decompressor, Codec::kSnappy, as_bytes(raw), input.size()).value(), input);

  Bytes packed = compressed(Codec::kSnappy, input);
  Bytes twice = packed;
  twice.insert(twice.end(), packed.begin(), packed.end());
  EXPECT_EQ(decompress(decompressor, Codec::kSnappy, twice, kMiB).value().size(), 2 * input.size());
  packed[8] = packed[12] = 1;
  packed[11] = packed[15] = 0;
  EXPECT_EQ(decompress(decompressor, Codec::kSnappy, packed, input.size()).value(), input);
  packed[8] = 0;
  EXPECT_EQ(error_of(Codec::kSnappy, packed), CompressionErrc::kCorrupt);
}

TEST(Compression, ASnappyBlockThatClaimsTheImpossibleTakesNoMemory) {
  // A varint of 4 GiB - 1 before two bytes of block.
  const Bytes lie = {0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x00};
  Decompressor decompressor;
  auto result = decompress(decompressor, Codec::kSnappy, lie, kGiB * 8);
  EXPECT_EQ(result.error().code, CompressionErrc::kCorrupt);
  EXPECT_THAT(result.error().message, HasSubstr("length"));
}

TEST(Compression, Lz4TakesIndependentBlocksOfOneFrameOnly) {
  Bytes input = sample(200'000, true);
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  preferences.frameInfo.blockMode = LZ4F_blockLinked;
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  Bytes frame(LZ4F_compressFrameBound(input.size(), &preferences));
  frame.resize(LZ4F_compressFrame(frame.data(), frame.size(), input.data(), input.size(), &preferences));
  EXPECT_EQ(error_of(Codec::kLz4, frame), CompressionErrc::kCorrupt);

  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  frame.resize(LZ4F_compressFrameBound(input.size(), &preferences));
  frame.resize(LZ4F_compressFrame(frame.data(), frame.size(), input.data(), input.size(), &preferences));
  Decompressor decompressor;
  EXPECT_EQ(decompress(decompressor, Codec::kLz4, frame, input.size()).value(), input);
  Bytes damaged = frame;
  damaged.back() ^= 1;  // of the content's checksum
  EXPECT_EQ(error_of(Codec::kLz4, damaged), CompressionErrc::kCorrupt);
  frame.push_back(0);
  EXPECT_EQ(error_of(Codec::kLz4, frame), CompressionErrc::kCorrupt);
}

TEST(Compression, GzipAndZstdTakeSeveralMembersButNoOtherBytesBehind) {
  Bytes input = sample(1'000, true);
  Decompressor decompressor;
  for (Codec codec : {Codec::kGzip, Codec::kZstd}) {
    Bytes packed = compressed(codec, input);
    Bytes twice = packed;
    twice.insert(twice.end(), packed.begin(), packed.end());
    EXPECT_EQ(decompress(decompressor, codec, twice, kMiB).value().size(), 2000u);
    twice.push_back('x');
    EXPECT_EQ(error_of(codec, twice), CompressionErrc::kCorrupt);
  }
}

// C105: 300 MB behind a few kilobytes.
TEST(Compression, ABombStopsAtTheLimitAndIsReadInPiecesWithinIt) {
  constexpr size_t kBombBytes = 300'000'000;
  // zstd stores a run of one byte in blocks of 128 KiB; gluing frames is quicker than compressing it all.
  const Bytes part = compressed(Codec::kZstd, Bytes(kBombBytes / 100));
  Bytes bomb;
  for (int i = 0; i < 100; ++i) bomb.insert(bomb.end(), part.begin(), part.end());
  ASSERT_LT(bomb.size(), 50'000u);
  EXPECT_EQ(error_of(Codec::kZstd, bomb, 16 * kMiB), CompressionErrc::kTooLarge);

  Decompressor decompressor;
  decompressor.start(Codec::kZstd, bomb, kBombBytes);
  Bytes piece(65'536);
  size_t total = 0;
  while (true) {
    auto got = decompressor.read(piece);
    ASSERT_TRUE(got.has_value());
    if (*got == 0) break;
    total += *got;
  }
  EXPECT_EQ(total, kBombBytes);
}

}  // namespace
}  // namespace varve
