#include "protocol/records/validate.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/compression_testing.h"
#include "base/random.h"
#include "protocol/records/builder.h"

namespace varve::protocol::records {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr WallTime kNow{1'700'000'000'000};
constexpr int64_t kHourMs = 3'600'000;

// Three records, now, now + 5 and now + 9 ms.
Bytes good_batch(Codec codec = Codec::kNone) {
  BatchBuilder builder({.codec = codec});
  for (int delta : {0, 5, 9}) builder.add({kNow.plus(delta), as_bytes("key"), as_bytes("value")});
  return builder.build();
}

// The batch with a header changed by `change`, its checksum right.
Bytes changed(Bytes batch, const std::function<void(BatchHeader&)>& change) {
  BatchHeader header = BatchHeader::decode(batch);
  change(header);
  header.encode(batch);
  seal(batch);
  return batch;
}

// A batch whose payload is these bytes, compressed by `codec` unless they are so already.
Bytes with_payload(ByteView payload, int32_t count, Codec codec = Codec::kNone, bool pack = true) {
  ByteWriter bytes;
  bytes.raw(Bytes(kBatchHeaderBytes));
  EXPECT_TRUE(compress(pack ? codec : Codec::kNone, payload, bytes).has_value());
  Bytes batch = bytes.take();
  BatchHeader header;
  header.batch_length = static_cast<int32_t>(batch.size() - kBatchOverheadBytes);
  header.attributes = static_cast<int16_t>(codec);
  header.record_count = count;
  header.last_offset_delta = count - 1;
  header.base_timestamp = header.max_timestamp = kNow;
  header.encode(batch);
  seal(batch);
  return batch;
}

struct Validate : ::testing::Test {
  Validate() { rules.now = kNow; }

  Result<ProducedBatch, RecordError> run(ByteView records) {
    return validate_produced(records, rules, limits, scratch);
  }
  // The error, or nullopt.
  std::optional<RecordErrc> error_of(ByteView records) {
    auto result = run(records);
    if (result.has_value()) return std::nullopt;
    return result.error().code;
  }

  ProduceRules rules;
  Limits limits;
  DecodeScratch scratch;
};

class ValidateEachCodec : public Validate, public ::testing::WithParamInterface<Codec> {};
INSTANTIATE_TEST_SUITE_P(Validate, ValidateEachCodec, ::testing::ValuesIn(kAllCodecs),
                         [](const auto& test) { return std::string(codec_name(test.param)); });

TEST_P(ValidateEachCodec, AGoodBatchIsTakenAsItIs) {
  Bytes bytes = good_batch(GetParam());
  auto result = run(bytes);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_FALSE(result->repaired);
  EXPECT_EQ(result->header, BatchHeader::decode(bytes));
  EXPECT_EQ(result->batch.bytes().data(), bytes.data());
  EXPECT_EQ(result->batch.bytes().size(), bytes.size());
  EXPECT_EQ(result->uncompressed_bytes, good_batch().size() - kBatchHeaderBytes);
}

TEST_F(Validate, NoBatchAndABatchCutShortAreInvalid) {
  Bytes bytes = good_batch();
  EXPECT_EQ(error_of({}), RecordErrc::kNoBatch);
  EXPECT_EQ(error_of(ByteView(bytes).first(bytes.size() - 1)), RecordErrc::kNoBatch);
}

TEST_F(Validate, ExactlyOneBatchIsTaken) {
  Bytes bytes = good_batch();
  Bytes two = bytes;
  two.insert(two.end(), bytes.begin(), bytes.end());
  EXPECT_EQ(error_of(two), RecordErrc::kMoreThanOneBatch);
  two[bytes.size() + kMagicAt] = 1;  // an old one counts too
  EXPECT_EQ(error_of(two), RecordErrc::kMoreThanOneBatch);
  two[bytes.size() + kMagicAt] = 2;
  // Behind the first: an incomplete batch is dropped, as Kafka does, an impossible one is corrupt.
  two.pop_back();
  auto result = run(two);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->batch.bytes().size(), bytes.size());
  two[bytes.size() + kMagicAt] = 9;
  EXPECT_EQ(error_of(two), RecordErrc::kCorruptFrame);
}

TEST_F(Validate, OldFormatsAreRefused) {
  for (int8_t magic : {0, 1}) {
    EXPECT_EQ(error_of(changed(good_batch(), [&](auto& h) { h.magic = magic; })), RecordErrc::kOldFormat);
  }
}

TEST_F(Validate, AWrongChecksumIsCorruptWhereverTheDamageIs) {
  Bytes good = good_batch();
  for (size_t at : {kCrcAt, kAttributesAt, kRecordCountAt, good.size() - 1}) {
    Bytes bytes = good;
    bytes[at] ^= 0x10;
    EXPECT_EQ(error_of(bytes), RecordErrc::kCorruptChecksum) << at;
  }
}

// C040: the limit is on the whole batch as it came, compressed.
TEST_F(Validate, C040ABatchAboveMaxMessageBytesIsTooLarge) {
  Bytes bytes = good_batch();
  rules.batch_bytes_max = bytes.size();
  EXPECT_EQ(error_of(bytes), std::nullopt);
  rules.batch_bytes_max = bytes.size() - 1;
  EXPECT_EQ(error_of(bytes), RecordErrc::kBatchTooLarge);
  bytes.back() ^= 1;  // before the checksum, as in Kafka
  EXPECT_EQ(error_of(bytes), RecordErrc::kBatchTooLarge);
}

TEST_F(Validate, TheBaseOffsetMustBeZero) {
  EXPECT_EQ(error_of(changed(good_batch(), [](auto& h) { h.base_offset = Offset(1); })),
            RecordErrc::kBaseOffset);
}

TEST_F(Validate, CountAndLastOffsetDeltaMustAgree) {
  struct Case {
    int32_t count, last_offset_delta;
  };
  for (Case c : {Case{3, 1}, Case{2, 2}, Case{0, -1}, Case{0, 2}, Case{-1, -2}, Case{3, -1},
                 Case{INT32_MIN, INT32_MAX}, Case{4, 2}}) {
    EXPECT_EQ(error_of(changed(good_batch(),
                               [&](auto& h) {
                                 h.record_count = c.count;
                                 h.last_offset_delta = c.last_offset_delta;
                               })),
              RecordErrc::kRecordCount)
        << c.count << ' ' << c.last_offset_delta;
  }
}

TEST_P(ValidateEachCodec, TheCountMustBeThatOfTheRecords) {
  for (int32_t count : {1, 2, 4, 1000}) {
    EXPECT_EQ(error_of(changed(good_batch(GetParam()),
                               [&](auto& h) {
                                 h.record_count = count;
                                 h.last_offset_delta = count - 1;
                               })),
              RecordErrc::kCorruptRecord)
        << count;
  }
}

TEST_F(Validate, MoreRecordsThanTheLimitAreRefusedBeforeReadingThem) {
  limits.records_per_batch_max = 2;
  EXPECT_EQ(error_of(good_batch()), RecordErrc::kRecordCount);
}

TEST_F(Validate, ClientsMayNotWriteControlBatches) {
  EXPECT_EQ(error_of(changed(good_batch(), [](auto& h) { h.attributes |= kControlFlag; })),
            RecordErrc::kControlBatch);
}

// C028, last clause.
TEST_F(Validate, C028ANegativeSequenceWithAProducerIdIsInvalid) {
  auto with = [](int64_t producer, int32_t sequence) {
    return changed(good_batch(), [&](auto& h) {
      h.producer_id = ProducerId(producer);
      h.producer_epoch = ProducerEpoch(0);
      h.base_sequence = Sequence(sequence);
    });
  };
  EXPECT_EQ(error_of(with(7, -5)), RecordErrc::kSequence);
  EXPECT_EQ(error_of(with(7, -1)), RecordErrc::kSequence);
  EXPECT_EQ(error_of(with(-1, -1)), std::nullopt);
  EXPECT_EQ(error_of(with(7, 0)), std::nullopt);
  EXPECT_EQ(error_of(with(7, 2147483647)), std::nullopt);
  // A negative id is none, whatever stands beside it.
  EXPECT_EQ(error_of(with(-7, -5)), std::nullopt);
}

TEST_F(Validate, CodecsMustExistAndZstdNeedsProduce7) {
  for (int16_t id : {5, 6, 7}) {
    EXPECT_EQ(error_of(changed(good_batch(), [&](auto& h) { h.attributes = id; })), RecordErrc::kCodec);
  }
  rules.zstd_allowed = false;
  EXPECT_EQ(error_of(good_batch(Codec::kZstd)), RecordErrc::kCodec);
  EXPECT_EQ(error_of(good_batch(Codec::kLz4)), std::nullopt);
}

// C105, last clause: the CRC is right, the payload is no payload.
TEST_P(ValidateEachCodec, C105GarbageWithAGoodChecksumIsRefused) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    Bytes garbage(1 + random.below(300));
    for (uint8_t& byte : garbage) byte = static_cast<uint8_t>(random.next());
    auto error =
        error_of(with_payload(garbage, 1 + static_cast<int32_t>(random.below(3)), GetParam(), false));
    EXPECT_TRUE(error == RecordErrc::kCorruptCompression || error == RecordErrc::kCorruptRecord ||
                error == RecordErrc::kDecompressedTooLarge)
        << round;
  }
}

// C105: a small batch that expands beyond all bounds is refused, without holding what it expands to.
TEST_P(ValidateEachCodec, C105ABombIsRefusedWithinItsWindow) {
  limits.decompressed_batch_bytes_max = limits.decompressed_batch_bytes_free = 1'000'000;
  BatchBuilder builder({.codec = GetParam()});
  Bytes zeros(900'000);
  builder.add({kNow, std::nullopt, ByteView(zeros)});
  Bytes within = builder.build();
  rules.batch_bytes_max = within.size() * 3;
  EXPECT_EQ(error_of(within), std::nullopt);
  builder.add({kNow, std::nullopt, ByteView(zeros)});
  builder.add({kNow, std::nullopt, ByteView(zeros)});
  EXPECT_EQ(error_of(builder.build()), RecordErrc::kDecompressedTooLarge);
  EXPECT_LE(scratch.window.capacity(), 64 * kKiB);
}

TEST_P(ValidateEachCodec, BytesBehindTheLastRecordAreRefused) {
  Bytes plain = good_batch();
  Bytes payload(plain.begin() + kBatchHeaderBytes, plain.end());
  EXPECT_EQ(error_of(with_payload(payload, 3, GetParam())), std::nullopt);
  payload.push_back(0);
  EXPECT_EQ(error_of(with_payload(payload, 3, GetParam())), RecordErrc::kCorruptRecord);
}

// A record from its parts, for the framing rules.
Bytes record(int64_t timestamp_delta, int32_t offset_delta, ByteView rest) {
  ByteWriter body;
  body.u8(0);
  body.varint(timestamp_delta);
  body.varint(offset_delta);
  body.raw(rest);
  ByteWriter out;
  out.varint(static_cast<int64_t>(body.size()));
  out.raw(body.view());
  return out.take();
}

TEST_P(ValidateEachCodec, EachLengthInsideARecordMustFitIt) {
  auto varints = [](std::initializer_list<int64_t> values) {
    ByteWriter out;
    for (int64_t value : values) out.varint(value);
    return out.take();
  };
  // key length, value length, header count, then header key and value lengths
  EXPECT_EQ(error_of(with_payload(record(0, 0, varints({-1, -1, 0})), 1, GetParam())), std::nullopt);
  EXPECT_EQ(error_of(with_payload(record(0, 0, varints({0, 0, 1, 0, -1})), 1, GetParam())), std::nullopt);
  for (auto rest : {varints({-2, -1, 0}), varints({-1, -2, 0}), varints({-1, -1, -1}), varints({1, -1, 0}),
                    varints({-1, 1, 0}), varints({-1, -1, 1}), varints({-1, -1, 1, -1, -1}),
                    varints({-1, -1, 1, 0, -2}), varints({-1, -1, 1, 0, 1}), varints({-1, -1, 1, 1, -1}),
                    varints({-1, -1, 0, 0}), varints({-1, -1}), varints({INT32_MAX, -1, 0}),
                    varints({-1, -1, INT32_MAX}), varints({int64_t{1} << 40, -1, 0}), varints({})}) {
    Bytes one = record(0, 0, rest);
    Bytes two = one;
    Bytes next = record(0, 1, varints({-1, -1, 0}));
    two.insert(two.end(), next.begin(), next.end());
    EXPECT_EQ(error_of(with_payload(one, 1, GetParam())), RecordErrc::kCorruptRecord) << to_hex(rest);
    EXPECT_EQ(error_of(with_payload(two, 2, GetParam())), RecordErrc::kCorruptRecord) << to_hex(rest);
  }
}

TEST_P(ValidateEachCodec, OffsetDeltasMustCountFromZero) {
  const Bytes rest = {1, 1, 0};  // null key, null value, no headers
  for (auto deltas : {std::pair{1, 2}, std::pair{0, 0}, std::pair{0, 2}, std::pair{1, 0}, std::pair{0, -1}}) {
    Bytes payload = record(0, deltas.first, rest);
    Bytes second = record(0, deltas.second, rest);
    payload.insert(payload.end(), second.begin(), second.end());
    EXPECT_EQ(error_of(with_payload(payload, 2, GetParam())), RecordErrc::kOffsetDelta);
  }
}

// C036: the header says -1, as old Sarama does, or anything else.
TEST_P(ValidateEachCodec, C036AWrongMaxTimestampIsRepairedWithTheChecksum) {
  for (int64_t wrong : {int64_t{-1}, kNow.value(), kNow.value() + 100, INT64_MIN}) {
    Bytes bytes = changed(good_batch(GetParam()), [&](auto& h) { h.max_timestamp = WallTime(wrong); });
    auto result = run(bytes);
    ASSERT_TRUE(result.has_value()) << wrong;
    EXPECT_TRUE(result->repaired);
    EXPECT_EQ(result->header.max_timestamp, kNow.plus(9));
    result->header.encode(bytes);
    EXPECT_EQ(bytes, good_batch(GetParam()));
  }
}

// C038: before and after, with the indexes of the bad ones.
TEST_P(ValidateEachCodec, C038TimestampsOutOfRangeNameTheirIndexes) {
  rules.timestamp_after_ms_max = kHourMs;
  rules.timestamp_before_ms_max = 24 * kHourMs;
  BatchBuilder builder({.codec = GetParam()});
  for (int64_t delta : {int64_t{0}, 2 * kHourMs, -48 * kHourMs, kHourMs, -24 * kHourMs}) {
    builder.add({kNow.plus(delta), as_bytes("k"), std::nullopt});
  }
  Bytes bytes = builder.build();
  auto result = run(bytes);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, RecordErrc::kTimestamp);
  EXPECT_EQ(result.error().bad_records,
            (std::vector<BadRecord>{{1, RecordErrc::kTimestamp}, {2, RecordErrc::kTimestamp}}));
  rules.timestamp_type = TimestampType::kLogAppendTime;
  EXPECT_EQ(error_of(bytes), std::nullopt);
}

TEST_F(Validate, NoTimestampIsInRangeAndExtremesDoNotOverflow) {
  rules.timestamp_before_ms_max = 1;
  rules.timestamp_after_ms_max = 1;
  auto at = [&](int64_t time) {
    return changed(with_payload(record(0, 0, Bytes{1, 1, 0}), 1),
                   [&](auto& h) { h.base_timestamp = h.max_timestamp = WallTime(time); });
  };
  EXPECT_EQ(error_of(at(-1)), std::nullopt);
  for (int64_t time : {INT64_MIN, INT64_MAX, int64_t{0}, kNow.value() - 2, kNow.value() + 2}) {
    EXPECT_EQ(error_of(at(time)), RecordErrc::kTimestamp) << time;
  }
  rules.timestamp_before_ms_max = rules.timestamp_after_ms_max = INT64_MAX;
  EXPECT_EQ(error_of(at(INT64_MIN)), std::nullopt);
  EXPECT_EQ(error_of(at(INT64_MAX)), std::nullopt);
}

// C039: the index of the one without a key; an empty value and a null value are both fine.
TEST_P(ValidateEachCodec, C039ACompactedTopicNeedsKeys) {
  BatchBuilder builder({.codec = GetParam()});
  builder.add({kNow, as_bytes("a"), std::nullopt});
  builder.add({kNow, std::nullopt, as_bytes("v")});
  builder.add({kNow, ByteView{}, ByteView{}});
  Bytes bytes = builder.build();
  EXPECT_EQ(error_of(bytes), std::nullopt);
  rules.keys_required = true;
  auto result = run(bytes);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, RecordErrc::kMissingKey);
  EXPECT_EQ(result.error().bad_records, (std::vector<BadRecord>{{1, RecordErrc::kMissingKey}}));
}

TEST_F(Validate, OneBadTimestampDecidesTheCodeAndTheListIsBounded) {
  rules.keys_required = true;
  limits.record_errors_listed_max = 3;
  BatchBuilder builder({});
  for (int i = 0; i < 10; ++i)
    builder.add({i == 9 ? kNow.plus(2 * kHourMs) : kNow, std::nullopt, std::nullopt});
  Bytes bytes = builder.build();
  auto all_keyless = run(bytes);
  EXPECT_EQ(all_keyless.error().code, RecordErrc::kMissingKey);
  EXPECT_EQ(all_keyless.error().bad_records.size(), 3u);
  rules.keys_required = false;
  auto late = run(bytes);
  EXPECT_EQ(late.error().code, RecordErrc::kTimestamp);
  EXPECT_EQ(late.error().bad_records, (std::vector<BadRecord>{{9, RecordErrc::kTimestamp}}));

  rules.keys_required = true;
  BatchBuilder mixed({});
  mixed.add({kNow, std::nullopt, std::nullopt});
  mixed.add({kNow.plus(2 * kHourMs), as_bytes("k"), std::nullopt});
  auto both = run(mixed.build());
  EXPECT_EQ(both.error().code, RecordErrc::kTimestamp);
  EXPECT_EQ(both.error().bad_records,
            (std::vector<BadRecord>{{0, RecordErrc::kMissingKey}, {1, RecordErrc::kTimestamp}}));
}

// C037: what a producer says about append time never survives.
TEST_P(ValidateEachCodec, C037TheBrokersFlagsAreNotTheProducers) {
  Bytes bytes = changed(good_batch(GetParam()), [](auto& h) {
    h.attributes |= kLogAppendTimeFlag | kDeleteHorizonFlag;
    h.max_timestamp = WallTime(5);
  });
  auto result = run(bytes);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->repaired);
  result->header.encode(bytes);
  EXPECT_EQ(bytes, good_batch(GetParam()));

  rules.timestamp_type = TimestampType::kLogAppendTime;
  auto refused = run(changed(good_batch(GetParam()), [](auto& h) { h.attributes |= kLogAppendTimeFlag; }));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, RecordErrc::kTimestamp);
  EXPECT_EQ(refused.error().bad_records.size(), 3u);
}

TEST_P(ValidateEachCodec, ATransactionalBatchKeepsItsProducer) {
  Bytes bytes = changed(good_batch(GetParam()), [](auto& h) {
    h.attributes |= kTransactionalFlag;
    h.producer_id = ProducerId(4);
    h.producer_epoch = ProducerEpoch(2);
    h.base_sequence = Sequence(2147483646);
  });
  auto result = run(bytes);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->header.transactional());
  EXPECT_EQ(result->header.last_sequence(), Sequence(0));
}

// Whatever bytes pass validation are readable to the last record: a consumer is never blocked by a stored batch.
TEST_P(ValidateEachCodec, WhatPassesCanBeReadBack) {
  Random random(23);
  const Bytes good = good_batch(GetParam());
  int passed = 0;
  for (int round = 0; round < 5'000; ++round) {
    Bytes bytes = good;
    for (uint64_t i = 0; i <= random.below(2); ++i) {
      bytes[kBatchHeaderBytes + random.below(bytes.size() - kBatchHeaderBytes)] ^= 1u << random.below(8);
    }
    seal(bytes);
    rules.timestamp_after_ms_max = INT64_MAX;
    auto result = run(bytes);
    if (!result) continue;
    ++passed;
    RecordIterator iterator(result->batch, scratch, kMiB);
    int records = 0;
    while (true) {
      auto next = iterator.next();
      ASSERT_TRUE(next.has_value()) << next.error().message;
      if (!next->has_value()) break;
      EXPECT_EQ((*next)->offset, Offset(records++));
    }
    EXPECT_EQ(records, 3);
  }
  if (GetParam() == Codec::kNone) {
    EXPECT_GT(passed, 1000);
  }
}

}  // namespace
}  // namespace varve::protocol::records
