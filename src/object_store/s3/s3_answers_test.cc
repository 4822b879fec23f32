#include "object_store/s3/s3_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::object_store::s3 {
namespace {

using runtime::http::Message;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Message answer_of(unsigned status, std::string_view body, runtime::http::Headers headers = {}) {
  Message message;
  message.status = status;
  message.headers = std::move(headers);
  message.body = Slice::copy_of(as_bytes(body));
  return message;
}

StoreError error_of_code(unsigned status, std::string_view code) {
  return error_of(answer_of(status, fmt::format("<Error><Code>{}</Code></Error>", code)), "PUT k", "now");
}

TEST(S3Answers, AListingIsReadWithItsKeysDecoded) {
  auto page = parse_list(as_bytes(
      R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><EncodingType>url</EncodingType>
<IsTruncated>true</IsTruncated><Contents><Key>a/b%20c%2B+d%0A</Key><Size>7</Size><ETag>&quot;x&quot;</ETag></Contents>
<Contents><Key>z</Key><Size>0</Size></Contents></ListBucketResult>)"));
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->is_truncated);
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(page->objects[0].key, "a/b c+ d\n");
  EXPECT_EQ(page->objects[0].size, 7u);
}

TEST(S3Answers, KeysThatAreNotEncodedStayAsTheyAre) {
  auto page =
      parse_list(as_bytes("<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a%41&amp;+</"
                          "Key><Size>1</Size></Contents>"
                          "</ListBucketResult>"));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->objects.at(0).key, "a%41&+");
  EXPECT_FALSE(page->is_truncated);
}

TEST(S3Answers, WhatIsNoListingIsNone) {
  for (std::string_view text :
       {"", "<html>hello</html>", "<ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key></Key><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key><Size>1</Size></"
        "Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>"}) {
    EXPECT_FALSE(parse_list(as_bytes(text))) << text;
  }
}

TEST(S3Answers, ADeletionNamesWhatIsLeft) {
  auto kept = parse_delete(as_bytes(
      "<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code></Error>"
      "<Error><Key>c</Key><Code>NoSuchKey</Code></Error></DeleteResult>"));
  ASSERT_TRUE(kept);
  EXPECT_THAT(*kept, ElementsAre("b"));
  EXPECT_FALSE(parse_delete(as_bytes("<Error/>")));
}

TEST(S3Answers, ADeletionsBodyEscapesItsKeys) {
  auto body = delete_body({"a&b", "<c>", "\"d\""});
  ASSERT_TRUE(body);
  EXPECT_THAT(*body, HasSubstr("<Object><Key>a&amp;b</Key></Object><Object><Key>&lt;c&gt;</Key></Object>"));
  EXPECT_FALSE(delete_body({"a", "line\nbreak"})) << "XML cannot say that as it is";
}

TEST(S3Answers, CodesTellMoreThanTheStatus) {
  EXPECT_EQ(error_of_code(404, "NoSuchKey").code, StoreErrc::kNotFound);
  EXPECT_EQ(error_of_code(404, "NoSuchBucket").code, StoreErrc::kDenied);
  EXPECT_EQ(error_of_code(400, "ExpiredToken").code, StoreErrc::kDenied);
  EXPECT_EQ(error_of_code(400, "RequestTimeout").code, StoreErrc::kTimeout);
  EXPECT_EQ(error_of_code(400, "BadDigest").code, StoreErrc::kCorrupt);
  EXPECT_EQ(error_of_code(409, "ConditionalRequestConflict").code, StoreErrc::kConflict);
  EXPECT_EQ(error_of_code(412, "PreconditionFailed").code, StoreErrc::kPreconditionFailed);
  EXPECT_EQ(error_of_code(503, "SlowDown").code, StoreErrc::kThrottled);
  EXPECT_EQ(error_of_code(503, "ServiceUnavailable").code, StoreErrc::kUnavailable);
  EXPECT_EQ(error_of_code(500, "InternalError").code, StoreErrc::kUnavailable);
  EXPECT_EQ(error_of_code(400, "NeverHeardOf").code, StoreErrc::kBadRequest);
}

TEST(S3Answers, WithoutACodeTheStatusTells) {
  auto code_of = [](unsigned status) { return error_of(answer_of(status, ""), "HEAD k", "now").code; };
  EXPECT_EQ(code_of(404), StoreErrc::kNotFound);
  EXPECT_EQ(code_of(403), StoreErrc::kDenied);
  EXPECT_EQ(code_of(412), StoreErrc::kPreconditionFailed);
  EXPECT_EQ(code_of(416), StoreErrc::kInvalidRange);
  EXPECT_EQ(code_of(429), StoreErrc::kThrottled);
  EXPECT_EQ(code_of(502), StoreErrc::kUnavailable);
  EXPECT_EQ(code_of(507), StoreErrc::kNoSpace);
  EXPECT_EQ(code_of(418), StoreErrc::kBadRequest);
}

TEST(S3Answers, AnErrorSaysWhatToDo) {
  StoreError error = error_of(
      answer_of(
          403,
          "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large</Message></Error>",
          {{"Date", "Tue, 01 Dec 2026 03:00:00 GMT"}, {"x-amz-request-id", "R7"}}),
      "PUT k", "20261201T032000Z");
  EXPECT_EQ(error.message,
            "PUT k: 403 RequestTimeTooSkewed: The difference is too large (set the clock of this machine); "
            "here it is "
            "20261201T032000Z, at the store Tue, 01 Dec 2026 03:00:00 GMT [request R7]");
  error = error_of(
      answer_of(301, "<Error><Code>PermanentRedirect</Code></Error>", {{"x-amz-bucket-region", "eu-west-1"}}),
      "GET k", "now");
  EXPECT_EQ(error.code, StoreErrc::kDenied);
  EXPECT_THAT(error.message, HasSubstr("the bucket's region is eu-west-1"));
}

TEST(S3Answers, WhatAStoreSaysIsBoundedAndOneLine) {
  StoreError error = error_of(
      answer_of(500, "<Error><Code>A\nB</Code><Message>" + std::string(10'000, 'x') + "</Message></Error>"),
      "GET k", "now");
  EXPECT_THAT(error.message, Not(HasSubstr("\n")));
  EXPECT_LT(error.message.size(), 1'000u);
}

}  // namespace
}  // namespace varve::object_store::s3
