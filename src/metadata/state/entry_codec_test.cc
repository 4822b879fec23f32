#include <gtest/gtest.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/random.h"
#include "metadata/state/entry.h"
#include "metadata/state/random_entry.h"

namespace varve::metadata {
namespace {

TEST(EntryCodec, AnyEntryRoundTripsWhateverItsValues) {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    Entry entry = random_entry(random);
    auto decoded = decode_entry(encode_entry(entry));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    ASSERT_EQ(*decoded, entry) << "round " << i;
  }
}

TEST(EntryCodec, TheBoundHoldsForAnyCommand) {
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    Entry entry = random_entry(random);
    size_t bound = kEntryFrameBytesMax;
    for (const Command& command : entry.commands) bound += encoded_size_bound(command);
    ASSERT_LE(encode_entry(entry).size(), bound) << "round " << i;
  }
}

TEST(EntryCodec, EveryFlippedBitAndEveryCutIsNoticed) {
  Random random(3);
  for (int i = 0; i < 50; ++i) {
    std::vector<uint8_t> bytes = encode_entry(random_entry(random));
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::vector<uint8_t> damaged = bytes;
      damaged[at] ^= static_cast<uint8_t>(1u << random.below(8));
      ASSERT_FALSE(decode_entry(damaged).has_value());
      ASSERT_FALSE(decode_entry(ByteView(bytes).first(at)).has_value());
    }
  }
}

// Puts the right checksum under bytes that were changed.
std::vector<uint8_t> resealed(std::vector<uint8_t> bytes) {
  size_t covered = bytes.size() - 4;
  store_be(bytes.data() + covered, crc32c(ByteView(bytes).first(covered)));
  return bytes;
}

TEST(EntryCodec, DamageUnderARightChecksumDecodesToSomethingOrNothingButNeverCrashes) {
  Random random(4);
  int decoded = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> bytes = encode_entry(random_entry(random));
    for (uint64_t n = random.below(4) + 1; n > 0; --n) {
      bytes[1 + random.below(bytes.size() - 5)] = static_cast<uint8_t>(random.next());
    }
    auto entry = decode_entry(resealed(bytes));
    if (!entry) continue;
    ++decoded;
    auto again = decode_entry(encode_entry(*entry));
    ASSERT_TRUE(again.has_value());
    ASSERT_EQ(*again, *entry);
  }
  EXPECT_GT(decoded, 1000);
}

TEST(EntryCodec, TrailingBytesAreMalformed) {
  std::vector<uint8_t> bytes = encode_entry(Entry{.commands = {FenceBroker{Incarnation(7)}}});
  bytes.insert(bytes.end() - 4, 0);
  EXPECT_EQ(decode_entry(resealed(bytes)).error().code, EntryErrc::kMalformed);
}

TEST(EntryCodec, AnUnknownVersionAndALevelOfTheFutureAreToldApartFromDamage) {
  std::vector<uint8_t> bytes = encode_entry(Entry{});
  bytes[0] = 2;
  EXPECT_EQ(decode_entry(resealed(bytes)).error().code, EntryErrc::kUnknownVersion);
  Entry future{.level = FeatureLevel(kHighestFeatureLevel.value() + 1)};
  EXPECT_EQ(decode_entry(encode_entry(future)).error().code, EntryErrc::kUnknownVersion);
  EXPECT_EQ(decode_entry_header(encode_entry(future))->level, future.level);
  bytes = encode_entry(Entry{});
  bytes.back() ^= 1;
  EXPECT_EQ(decode_entry(bytes).error().code, EntryErrc::kBadChecksum);
}

TEST(EntryCodec, ACountThatNoBytesBackIsMalformedAndReservesNothing) {
  // The last byte before the checksum is the count of objects: none. Say two billion instead.
  std::vector<uint8_t> bytes = encode_entry(Entry{.commands = {ObjectsDeleted{}}});
  bytes.erase(bytes.end() - 5);
  for (uint8_t byte : {0xff, 0xff, 0xff, 0xff, 0x07}) bytes.insert(bytes.end() - 4, byte);
  EXPECT_EQ(decode_entry(resealed(bytes)).error().code, EntryErrc::kMalformed);
}

TEST(EntryCodec, ConfigsOutOfOrderAreMalformed) {
  CreateTopic topic{.name = "t", .partitions = 1, .configs = {{"a", "1"}, {"b", "2"}}};
  std::vector<uint8_t> bytes = encode_entry(Entry{.commands = {topic}});
  auto a = std::find(bytes.begin() + 30, bytes.end(), 'a');
  auto b = std::find(bytes.begin() + 30, bytes.end(), 'b');
  std::iter_swap(a, b);
  EXPECT_EQ(decode_entry(resealed(bytes)).error().code, EntryErrc::kMalformed);
}

TEST(EntryCodec, EveryKindHasAName) {
  for (uint8_t kind = 1; kind <= std::variant_size_v<Command>; ++kind) {
    EXPECT_NE(name_of(CommandKind{kind}), "unknown");
  }
  EXPECT_EQ(name_of(CommandKind{0}), "unknown");
  EXPECT_EQ(name_of(CommandKind{200}), "unknown");
}

}  // namespace
}  // namespace varve::metadata
