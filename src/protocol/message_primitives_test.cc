#include <gtest/gtest.h>

#include "protocol/message_codec.h"
#include "protocol/message_printer.h"
#include "protocol/messages/alter_configs.h"
#include "protocol/messages/fetch.h"
#include "protocol/messages/join_group.h"
#include "protocol/messages/list_offsets.h"
#include "protocol/messages/metadata.h"
#include "protocol/messages/produce.h"
#include "protocol/messages/sync_group.h"

namespace varve::protocol {
namespace {

Slice bytes_of(std::initializer_list<int> values) {
  std::vector<uint8_t> bytes;
  for (int value : values) bytes.push_back(static_cast<uint8_t>(value));
  return Slice::take(std::move(bytes));
}

TEST(Decode, CountsBeyondTheBytesThatAreThereFailAtOnce) {
  // Metadata version 0: a count of 2147483647 topics and nothing else.
  EXPECT_FALSE(decode_message<MetadataRequest>(bytes_of({0x7f, 0xff, 0xff, 0xff}), 0));
  // Flexible: a varint of five bytes.
  EXPECT_FALSE(decode_message<MetadataRequest>(bytes_of({0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0}), 9));
  // A count that the bytes could hold only if items took less than they do.
  std::vector<uint8_t> bytes(1000, 0);
  store_be<int32_t>(bytes.data(), 600);
  EXPECT_FALSE(decode_message<MetadataRequest>(Slice::take(bytes), 0));
}

TEST(Decode, ManyTinyItemsStopAtTheMemoryLimit) {
  // 300,000 topics with empty names: two bytes each here, many times that decoded.
  constexpr int32_t kTopics = 300'000;
  MetadataRequest request;
  request.topics->resize(kTopics);
  Slice bytes = encode_message(request, 4);
  ASSERT_LT(bytes.size(), 700'000u);
  EXPECT_TRUE(decode_message<MetadataRequest>(bytes, 4));
  auto limited = decode_message<MetadataRequest>(bytes, 4, {.decoded_bytes = 1 << 20});
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code, CodecErrc::kMalformed);
}

TEST(Decode, NullsWhereThereIsNoneFail) {
  // Version 0 has no null list of topics, version 1 has.
  Slice null_topics = bytes_of({0xff, 0xff, 0xff, 0xff});
  EXPECT_FALSE(decode_message<MetadataRequest>(null_topics, 0));
  auto request = decode_message<MetadataRequest>(null_topics, 1);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->topics, std::nullopt);
  // A topic name is never null in version 1.
  EXPECT_FALSE(decode_message<MetadataRequest>(bytes_of({0, 0, 0, 1, 0xff, 0xff}), 1));
}

TEST(Decode, StringsAreAtMost32767BytesInBothForms) {
  for (size_t size : {32767u, 32768u}) {
    ByteWriter writer;
    writer.unsigned_varint(2);  // one topic
    writer.unsigned_varint(size + 1);
    writer.raw(std::vector<uint8_t>(size, 'a'));
    writer.raw(std::vector<uint8_t>{0, 1, 0, 0, 0});
    EXPECT_EQ(decode_message<MetadataRequest>(Slice::take(writer.take()), 9).has_value(), size == 32767u);
  }
}

TEST(Decode, StringsAreBytesThatNeedNotBeText) {
  MetadataRequest request;
  request.topics->push_back({.name = std::string("\xff\x00\xc3(", 4)});
  for (int16_t version : {0, 12}) {
    EXPECT_EQ(decode_message<MetadataRequest>(encode_message(request, version), version)->topics,
              request.topics);
  }
}

TEST(Decode, AFieldMissingFromTheVersionHasItsDefault) {
  FetchRequest request;
  request.session_epoch = 5;
  request.rack_id = "r";
  request.max_wait_ms = 500;
  auto old = decode_message<FetchRequest>(encode_message(request, 4), 4);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->session_epoch, -1);
  EXPECT_EQ(old->rack_id, "");
  EXPECT_EQ(old->max_wait_ms, 500);
}

TEST(Decode, ATaggedFieldThatLiesAboutItsSizeFails) {
  // Fetch version 12: the cluster id (tag 0) holds "ab".
  FetchRequest request;
  request.cluster_id = "ab";
  Slice good = encode_message(request, 12);
  ASSERT_TRUE(decode_message<FetchRequest>(good, 12));
  std::vector<uint8_t> bytes(good.view().begin(), good.view().end());
  ASSERT_EQ(bytes[bytes.size() - 4], 3);  // size of the field: the length of the string and its two bytes
  for (int size : {2, 4, 100}) {
    bytes[bytes.size() - 4] = static_cast<uint8_t>(size);
    EXPECT_FALSE(decode_message<FetchRequest>(Slice::copy_of(bytes), 12)) << size;
  }
}

TEST(Decode, ATagGivenTwiceCountsOnce) {
  FetchResponse response;
  response.node_endpoints.push_back({.node_id = BrokerId(1), .host = "h", .port = 2});
  Slice once = encode_message(response, 16);
  std::vector<uint8_t> bytes(once.view().begin(), once.view().end());
  // Behind the fixed fields: the number of tags, then the only one.
  const size_t tags_at = 4 + 2 + 4 + 1;
  ASSERT_EQ(bytes[tags_at], 1);
  std::vector<uint8_t> field(bytes.begin() + tags_at + 1, bytes.end());
  bytes[tags_at] = 2;
  bytes.insert(bytes.end(), field.begin(), field.end());
  EXPECT_EQ(*decode_message<FetchResponse>(Slice::take(bytes), 16), response);
}

TEST(Encode, WhatAVersionCannotSayIsWrittenEmpty) {
  MetadataRequest all_topics;
  all_topics.topics.reset();
  auto old = decode_message<MetadataRequest>(encode_message(all_topics, 0), 0);
  ASSERT_TRUE(old);
  ASSERT_TRUE(old->topics);
  EXPECT_TRUE(old->topics->empty());
}

TEST(Encode, RecordsInPiecesAreWrittenInOrder) {
  SliceChain chain;
  Slice small = Slice::copy_of(as_bytes("head"));
  Slice large = Slice::take(std::vector<uint8_t>(MessageWriter::kReferenceFrom, 'x'));
  chain.append(small);
  chain.append(large);
  chain.append(Slice());
  chain.append(small);
  EXPECT_EQ(chain.pieces(), 3u);
  FetchResponse response;
  response.responses.emplace_back().partitions.resize(2);
  response.responses[0].partitions[0].records = chain;
  response.responses[0].partitions[1].records = large;
  MessageWriter writer;
  response.write(writer, 11);
  size_t size = writer.size();
  std::vector<Slice> slices = writer.finish();
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[1].data(), large.data());
  EXPECT_EQ(slices[3].data(), large.data());
  SliceChain whole;
  for (Slice& slice : slices) whole.append(slice);
  EXPECT_EQ(whole.size(), size);
  EXPECT_EQ(*decode_message<FetchResponse>(whole.joined(), 11), response);
}

TEST(SliceChain, IsComparedByContentNotByCut) {
  SliceChain a(Slice::copy_of(as_bytes("abcdef")));
  SliceChain b(Slice::copy_of(as_bytes("ab")));
  b.append(Slice::copy_of(as_bytes("cde")));
  EXPECT_FALSE(a == b);
  b.append(Slice::copy_of(as_bytes("f")));
  EXPECT_TRUE(a == b);
  EXPECT_EQ(as_text(b.joined().view()), "abcdef");
  EXPECT_FALSE(a == SliceChain(Slice::copy_of(as_bytes("abcdeg"))));
  EXPECT_TRUE(SliceChain() == SliceChain(Slice()));
}

TEST(Print, HidesSecretsAndPayloadsAndEscapesOddBytes) {
  AlterConfigsRequest request;
  auto& resource = request.resources.emplace_back();
  resource.resource_name = "a\"\n";
  resource.configs.push_back({.name = "sasl.jaas.config", .value = "hunter2"});
  std::string text = to_string(request);
  EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  EXPECT_EQ(
      text,
      "{resources=[{resource_type=0, resource_name=\"a\\x22\\x0a\", configs=[{name=\"sasl.jaas.config\", "
      "value=***}]}], validate_only=false}");

  SyncGroupRequest sync;
  sync.assignments.push_back({.member_id = "m", .assignment = Slice::copy_of(as_bytes("secret bytes"))});
  EXPECT_NE(to_string(sync).find("assignment=<12 bytes>"), std::string::npos) << to_string(sync);
  ListOffsetsResponse offsets;
  offsets.topics.emplace_back().partitions.emplace_back().error_code = ErrorCode::kNotLeaderOrFollower;
  EXPECT_NE(to_string(offsets).find("error_code=NOT_LEADER_OR_FOLLOWER"), std::string::npos);
}

TEST(Print, StopsAtItsLimit) {
  MetadataRequest request;
  request.topics->resize(1'000'000);
  std::string text = to_string(request, 100);
  EXPECT_EQ(text.size(), 103u);
  EXPECT_TRUE(text.ends_with("..."));
}

TEST(ErrorCodes, HaveNamesAndRetriability) {
  EXPECT_EQ(error_name(ErrorCode::kCorruptMessage), "CORRUPT_MESSAGE");
  EXPECT_EQ(error_name(static_cast<ErrorCode>(9999)), "UNLISTED_ERROR");
  EXPECT_TRUE(is_retriable(ErrorCode::kNotLeaderOrFollower));
  EXPECT_FALSE(is_retriable(ErrorCode::kOffsetOutOfRange));
  EXPECT_EQ(static_cast<int>(ErrorCode::kUnknownServerError), -1);
}

}  // namespace
}  // namespace varve::protocol
