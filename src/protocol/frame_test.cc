#include "protocol/frame.h"

#include <gtest/gtest.h>

#include "protocol/message_printer.h"
#include "protocol/messages/fetch.h"
#include "protocol/messages/metadata.h"
#include "protocol/messages/produce.h"

namespace varve::protocol {
namespace {

Slice bytes_of(std::initializer_list<int> values) {
  std::vector<uint8_t> bytes;
  for (int value : values) bytes.push_back(static_cast<uint8_t>(value));
  return Slice::take(std::move(bytes));
}

Slice joined(const std::vector<Slice>& slices) {
  SliceChain chain;
  for (const Slice& slice : slices) chain.append(slice);
  return chain.joined();
}

// A frame as it would come from the socket, without its length.
Slice without_length(const std::vector<Slice>& frame) {
  Slice whole = joined(frame);
  EXPECT_EQ(load_be<int32_t>(whole.data()), static_cast<int32_t>(whole.size() - 4));
  return whole.sub(4, whole.size() - 4);
}

TEST(Frame, LengthIsJudgedBeforeAnyMemoryIsTaken) {
  constexpr size_t kMax = size_t{100} << 20;
  EXPECT_EQ(frame_size({0, 0, 0, 9}, kMax).value(), 9u);
  EXPECT_EQ(frame_size({0x06, 0x40, 0, 0}, kMax).value(), size_t{100} << 20);
  EXPECT_EQ(frame_size({0x06, 0x40, 0, 1}, kMax).error().code, FrameErrc::kTooLarge);
  EXPECT_EQ(frame_size({0x7f, 0xff, 0xff, 0xff}, 1000).error().code, FrameErrc::kTooLarge);
  EXPECT_EQ(frame_size({0xff, 0xff, 0xff, 0xff}, 1000).error().code, FrameErrc::kBadLength);
}

// Case C003: a null and an empty client id, and unknown tagged fields in header and body.
TEST(Frame, C003ClientIdMayBeNullOrEmptyAndUnknownTagsAreIgnored) {
  const std::initializer_list<int> body = {0, 1, 0, 0, 0};  // topics null, three flags, tags
  MetadataRequest expected;
  expected.topics.reset();
  expected.allow_auto_topic_creation = true;

  auto null_id = parse_request(bytes_of({0, 3, 0, 9, 0, 0, 0, 7, 0xff, 0xff, 0, 0, 1, 0, 0, 0}));
  ASSERT_TRUE(null_id);
  EXPECT_EQ(null_id->header.client_id, std::nullopt);
  EXPECT_EQ(null_id->header.correlation_id, 7);
  EXPECT_EQ(null_id->body, bytes_of(body));
  EXPECT_EQ(*decode_message<MetadataRequest>(null_id->body, 9), expected);

  auto empty_id = parse_request(bytes_of({0, 3, 0, 9, 0, 0, 0, 7, 0, 0, 0, 0, 1, 0, 0, 0}));
  ASSERT_TRUE(empty_id);
  EXPECT_EQ(empty_id->header.client_id, "");
  EXPECT_EQ(empty_id->body, bytes_of(body));

  auto tags = parse_request(bytes_of({0, 3, 0, 9, 0, 0,  0, 7, 0xff, 0xff, 1, 99, 3, 1, 2, 3,  // header
                                      0, 1, 0, 0, 1, 99, 3, 4, 5,    6}));
  ASSERT_TRUE(tags);
  EXPECT_EQ(*decode_message<MetadataRequest>(tags->body, 9), expected);
}

// Case C001: any version of ApiVersions can be answered, in version 0.
TEST(Frame, C001UnknownApiVersionsVersionIsAnsweredInVersionZero) {
  auto request = parse_request(bytes_of({0, 18, 0, 9, 0, 0, 0, 7, 0, 1, 'c', 0, 2, 'x', 2, '1', 0}));
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->api_versions_unsupported);
  auto frame = response_frame(unsupported_api_versions_response(), 0, request->header.correlation_id);
  EXPECT_EQ(joined(frame), bytes_of({0, 0, 0, 16, 0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5}));

  auto known = parse_request(bytes_of({0, 18, 0, 0, 0, 0, 0, 8, 0, 0}));
  ASSERT_TRUE(known);
  EXPECT_FALSE(known->api_versions_unsupported);
}

TEST(Frame, ApiVersionsResponseKeepsTheOldHeaderInFlexibleVersions) {
  auto frame = response_frame(ApiVersionsResponse{}, 3, 7);
  // No tag byte behind the correlation id.
  EXPECT_EQ(joined(frame), bytes_of({0, 0, 0, 12, 0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0}));
  auto other = response_frame(MetadataResponse{}, 9, 7);
  EXPECT_EQ(joined(other).sub(4, 5), bytes_of({0, 0, 0, 7, 0}));
}

TEST(Frame, UnknownApisAndVersionsAndBrokenHeadersAreRefused) {
  auto code = [](std::initializer_list<int> bytes) { return parse_request(bytes_of(bytes)).error().code; };
  EXPECT_EQ(code({0, 3}), FrameErrc::kMalformedHeader);
  EXPECT_EQ(code({}), FrameErrc::kMalformedHeader);
  EXPECT_EQ(code({0x7f, 0, 0, 0, 0, 0, 0, 7, 0, 0}), FrameErrc::kUnknownApi);
  EXPECT_EQ(code({0xff, 0xff, 0, 0, 0, 0, 0, 7, 0, 0}), FrameErrc::kUnknownApi);
  EXPECT_EQ(code({0, 3, 0, 99, 0, 0, 0, 7, 0, 0}), FrameErrc::kUnsupportedVersion);
  EXPECT_EQ(code({0, 3, 0xff, 0xff, 0, 0, 0, 7, 0, 0}), FrameErrc::kUnsupportedVersion);
  // Listed, and refused all the same.
  EXPECT_EQ(code({0, 0, 0, 2, 0, 0, 0, 7, 0, 0}), FrameErrc::kUnsupportedVersion);
  EXPECT_EQ(code({0, 3, 0, 9, 0, 0, 0, 7, 0, 5, 'a'}), FrameErrc::kMalformedHeader);
  EXPECT_EQ(code({0, 3, 0, 9, 0, 0, 0, 7, 0xff, 0xfe, 9}), FrameErrc::kMalformedHeader);
  EXPECT_EQ(code({0, 3, 0, 9, 0, 0, 0, 7, 0, 0, 1, 99, 100}), FrameErrc::kMalformedHeader);
}

TEST(Frame, ProduceIsListedFromZeroAndServedFromThree) {
  const ApiInfo& produce = api_info(ApiKey::kProduce);
  EXPECT_EQ(produce.listed_from, 0);
  EXPECT_EQ(produce.min_version, 3);
  EXPECT_FALSE(produce.supports(2));
  bool seen = false;
  for (const auto& row : api_versions_response().api_keys) {
    const ApiInfo* api = find_api(row.api_key);
    ASSERT_NE(api, nullptr);
    EXPECT_TRUE(api->served);
    if (api->key == ApiKey::kProduce) {
      seen = true;
      EXPECT_EQ(row.min_version, 0);
      EXPECT_EQ(row.max_version, produce.max_version);
    }
  }
  EXPECT_TRUE(seen);
}

TEST(Frame, TableIsOrderedAndOldVersionsOfThreeApisAreServed) {
  int last = -1;
  for (const ApiInfo& api : known_apis()) {
    EXPECT_GT(static_cast<int>(api.key), last);
    last = static_cast<int>(api.key);
    EXPECT_EQ(find_api(static_cast<int16_t>(api.key)), &api);
  }
  EXPECT_TRUE(api_info(ApiKey::kListOffsets).supports(0));
  EXPECT_TRUE(api_info(ApiKey::kCreateTopics).supports(0));
  EXPECT_TRUE(api_info(ApiKey::kDeleteTopics).supports(0));
  // Version 6 is marked unstable in Kafka 4.4.
  EXPECT_FALSE(api_info(ApiKey::kInitProducerId).supports(6));
}

TEST(Frame, RequestOfAClientIsReadBack) {
  MetadataRequest request;
  request.topics->push_back({.name = "orders"});
  for (int16_t version = MetadataRequest::kMinVersion; version <= MetadataRequest::kMaxVersion; ++version) {
    auto parsed = parse_request(without_length(request_frame(request, version, 41, "me")));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->version(), version);
    EXPECT_EQ(parsed->header.client_id, "me");
    auto body = decode_message<MetadataRequest>(parsed->body, version);
    ASSERT_TRUE(body);
    EXPECT_EQ(body->topics, request.topics);
  }
}

TEST(Frame, ResponseIsReadBackAndMustAnswerTheRequestDue) {
  const ApiInfo& api = api_info(ApiKey::kMetadata);
  MetadataResponse response;
  response.controller_id = BrokerId(3);
  for (int16_t version : {1, 9}) {
    Slice frame = without_length(response_frame(response, version, 41));
    auto body = parse_response(frame, api, version, 41);
    ASSERT_TRUE(body);
    EXPECT_EQ(*decode_message<MetadataResponse>(*body, version), response);
    EXPECT_EQ(parse_response(frame, api, version, 42).error().code, FrameErrc::kUnexpectedResponse);
    EXPECT_EQ(parse_response(frame.sub(0, 3), api, version, 41).error().code, FrameErrc::kMalformedHeader);
  }
}

TEST(Frame, RecordsOfAFetchAreReferencedAndOfAProduceShareTheFrame) {
  Slice batch = Slice::take(std::vector<uint8_t>(5000, 'r'));
  FetchResponse response;
  response.responses.emplace_back().partitions.emplace_back().records = batch;
  auto frame = response_frame(response, 12, 1);
  ASSERT_EQ(frame.size(), 3u);
  EXPECT_EQ(frame[1].data(), batch.data());
  auto fetched = decode_message<FetchResponse>(
      *parse_response(without_length(frame), api_info(ApiKey::kFetch), 12, 1), 12);
  ASSERT_TRUE(fetched);
  EXPECT_EQ(*fetched, response);

  ProduceRequest request;
  request.topic_data.emplace_back().partition_data.emplace_back().records = batch;
  Slice received = without_length(request_frame(request, 9, 1, std::nullopt));
  auto produced = decode_message<ProduceRequest>(parse_request(received)->body, 9);
  ASSERT_TRUE(produced);
  const SliceChain& records = *produced->topic_data[0].partition_data[0].records;
  ASSERT_EQ(records.pieces(), 1u);
  EXPECT_EQ(records.piece(0).owner(), received.owner());
  EXPECT_GE(records.piece(0).data(), received.data());
  EXPECT_EQ(records, SliceChain(batch));
}

}  // namespace
}  // namespace varve::protocol
