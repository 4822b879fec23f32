// Batches that Kafka's own classes wrote, and their answers to odd ones: vectors/README.md.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "base/crc32c.h"
#include "protocol/records/builder.h"
#include "protocol/records/record_iterator.h"
#include "protocol/records/validate.h"

namespace varve::protocol::records {
namespace {

using Bytes = std::vector<uint8_t>;
using Words = std::vector<std::string>;

constexpr WallTime kNow{1'700'000'000'000};  // of the generator

std::vector<Words> lines_of(const std::string& name) {
  std::ifstream file("src/protocol/records/vectors/" + name);
  std::vector<Words> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

Bytes from_hex(std::string_view hex) {
  auto digit = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Bytes bytes(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  }
  return bytes;
}

// As the generator prints bytes.
std::string text_of(const std::optional<ByteView>& bytes) {
  if (!bytes.has_value()) return "null";
  if (bytes->size() <= 64) return "'" + to_hex(*bytes) + "'";
  return fmt::format("{}:{:08x}", bytes->size(), crc32c(*bytes));
}

struct JavaBatch {
  std::string name;
  Bytes bytes;
  std::vector<Words> records;
};

std::vector<JavaBatch> java_batches() {
  std::vector<JavaBatch> batches;
  for (Words& words : lines_of("java_batches.txt")) {
    if (words.at(0) == "batch") {
      batches.push_back({words.at(1), from_hex(words.at(2)), {}});
    } else {
      words.erase(words.begin());
      batches.back().records.push_back(std::move(words));
    }
  }
  return batches;
}

TEST(JavaVectors, EveryBatchReadsAsJavaReadsIt) {
  DecodeScratch scratch;
  for (const JavaBatch& java : java_batches()) {
    SCOPED_TRACE(java.name);
    auto batch = BatchView::first_of(java.bytes);
    ASSERT_TRUE(batch.has_value()) << batch.error().message;
    ASSERT_TRUE(batch->checksum_matches());
    ASSERT_EQ(batch->bytes().size(), java.bytes.size());
    RecordIterator iterator(*batch, scratch, kMiB);
    std::vector<Words> records;
    while (true) {
      auto record = iterator.next();
      ASSERT_TRUE(record.has_value()) << record.error().message;
      if (!record->has_value()) break;
      Words words = {fmt::format("{}", (*record)->offset), fmt::format("{}", (*record)->timestamp),
                     text_of((*record)->key), text_of((*record)->value)};
      for (const HeaderView& header : (*record)->headers) {
        words.push_back(text_of(as_bytes(header.key)) + "=" + text_of(header.value));
      }
      records.push_back(std::move(words));
    }
    EXPECT_EQ(records, java.records);
  }
}

TEST(JavaVectors, TheBuilderWritesTheBytesThatJavaWrites) {
  DecodeScratch scratch;
  int compared = 0;
  for (const JavaBatch& java : java_batches()) {
    SCOPED_TRACE(java.name);
    auto batch = BatchView::first_of(java.bytes);
    const BatchHeader& header = batch->header();
    if (header.codec() != Codec::kNone || header.log_append_time() || header.record_count == 0) continue;
    BatchBuilder builder({.base_offset = header.base_offset,
                          .partition_leader_epoch = header.partition_leader_epoch,
                          .producer_id = header.producer_id,
                          .producer_epoch = header.producer_epoch,
                          .base_sequence = header.base_sequence,
                          .transactional = header.transactional(),
                          .control = header.control()});
    RecordIterator iterator(*batch, scratch, kMiB);
    while (true) {
      auto record = iterator.next().value();
      if (!record.has_value()) break;
      std::vector<HeaderView> headers(record->headers.begin(), record->headers.end());
      builder.add({record->timestamp, record->key, record->value, headers});
    }
    EXPECT_EQ(to_hex(builder.build()), to_hex(java.bytes));
    ++compared;
  }
  EXPECT_EQ(compared, 9);
}

TEST(JavaVectors, EmptyBatchesAreWrittenAsJavaWritesThem) {
  std::map<std::string, Bytes> by_name;
  for (JavaBatch& java : java_batches()) by_name[java.name] = java.bytes;
  BatchOptions empty{.base_offset = Offset(40),
                     .partition_leader_epoch = 6,
                     .producer_id = ProducerId(5),
                     .producer_epoch = ProducerEpoch(1),
                     .base_sequence = Sequence(9)};
  EXPECT_EQ(to_hex(build_empty_batch(empty, Offset(49), kNow)), to_hex(by_name.at("no-records")));
}

TEST(JavaVectors, WhatTheJavaProducerSendsIsStoredUnchanged) {
  DecodeScratch scratch;
  Limits limits;
  ProduceRules rules{.now = kNow};
  int taken = 0;
  for (JavaBatch& java : java_batches()) {
    SCOPED_TRACE(java.name);
    BatchHeader header = BatchHeader::decode(java.bytes);
    if (header.control() || header.log_append_time() || header.record_count == 0) continue;
    set_base_offset(java.bytes, Offset(0));
    auto result = validate_produced(java.bytes, rules, limits, scratch);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    EXPECT_FALSE(result->repaired);
    ++taken;
  }
  EXPECT_EQ(taken, 39);
}

// The mapping that broker/handlers makes, as numbers, for this comparison only.
int kafka_code(RecordErrc code) {
  switch (code) {
    case RecordErrc::kCorruptFrame:
    case RecordErrc::kCorruptChecksum:
      return 2;
    case RecordErrc::kBatchTooLarge:
    case RecordErrc::kDecompressedTooLarge:
      return 10;
    case RecordErrc::kTimestamp:
      return 32;
    case RecordErrc::kCodec:
      return 76;
    case RecordErrc::kInternal:
      return -1;
    default:
      return 87;
  }
}

// Where varve answers otherwise, on purpose; nullopt: it must answer as Kafka does.
std::optional<std::string> deviation(int kafka, const Result<ProducedBatch, RecordError>& ours,
                                     int16_t foreign_flags) {
  if (!ours.has_value() && kafka == -1) return "an error that Kafka does not name";
  if (!ours.has_value() && ours.error().code == RecordErrc::kOffsetDelta && kafka != 2) {
    return "wrong offset deltas are refused, not kept or renumbered";
  }
  if (!ours.has_value() && (kafka == 0 || kafka == 32) &&
      (ours.error().code == RecordErrc::kCorruptRecord ||
       ours.error().code == RecordErrc::kCorruptCompression)) {
    return "a payload that a consumer cannot read is refused, although Kafka looks at a part of it only";
  }
  if (ours.has_value() && kafka == 0 && foreign_flags != 0)
    return "flags that are not a producer's are dropped";
  if ((foreign_flags & kLogAppendTimeFlag) != 0 && kafka != 2) {
    return "a producer's append time does not hide its records' own timestamps";
  }
  return std::nullopt;
}

TEST(KafkaVerdicts, OddBatchesAreAnsweredAsKafkaAnswers) {
  DecodeScratch scratch;
  Limits limits;
  std::map<std::string, int> deviations;
  int compared = 0;
  for (const Words& words : lines_of("kafka_verdicts.txt")) {
    ProduceRules rules;
    rules.now = kNow;
    rules.keys_required = words.at(1) == "1";
    rules.timestamp_type = words.at(2) == "1" ? TimestampType::kLogAppendTime : TimestampType::kCreateTime;
    rules.zstd_allowed = std::stoi(words.at(3)) >= 7;
    rules.timestamp_before_ms_max = std::stoll(words.at(4));
    rules.timestamp_after_ms_max = std::stoll(words.at(5));
    rules.batch_bytes_max = std::stoull(words.at(6));
    Bytes bytes = from_hex(words.at(7));
    int kafka = std::stoi(words.at(8));
    SCOPED_TRACE(words.at(7) + " -> " + words.at(8));

    auto ours = validate_produced(bytes, rules, limits, scratch);
    int16_t flags = bytes.size() >= kBatchHeaderBytes ? BatchHeader::decode(bytes).attributes : int16_t{0};
    int16_t foreign = static_cast<int16_t>(flags & ~(kCodecMask | kTransactionalFlag | kControlFlag));
    if (auto reason = deviation(kafka, ours, foreign)) {
      ++deviations[*reason];
      continue;
    }
    ++compared;
    EXPECT_EQ(ours.has_value() ? 0 : kafka_code(ours.error().code), kafka)
        << (ours.has_value() ? "" : ours.error().message);
    if (ours.has_value() && kafka == 0) {
      Bytes header(kBatchHeaderBytes);
      ours->header.encode(header);
      if (rules.timestamp_type == TimestampType::kLogAppendTime) stamp_log_append_time(header, kNow);
      EXPECT_EQ(to_hex(header), words.at(9));
    } else if (!ours.has_value() && !ours.error().bad_records.empty()) {
      std::string indexes;
      for (const BadRecord& bad : ours.error().bad_records) {
        indexes += (indexes.empty() ? "" : ",") + std::to_string(bad.batch_index);
      }
      EXPECT_EQ(indexes, words.at(9));
    }
  }
  for (const auto& [reason, count] : deviations) RecordProperty(reason, count);
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace varve::protocol::records
