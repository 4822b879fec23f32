#include "object_store/s3/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::object_store::s3 {
namespace {

using testing::EndsWith;

// The examples of AWS's page "Signature Calculations for the Authorization Header", with its keys, date and bucket.
class AwsExamples : public testing::Test {
 protected:
  static constexpr std::string_view kDate = "20130524T000000Z";

  std::string signature_of(Signable request) const {
    request.headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
    request.headers.emplace_back("x-amz-content-sha256", request.payload);
    request.headers.emplace_back("x-amz-date", kDate);
    std::string text = authorization(request, credentials_, "us-east-1", kDate);
    return text.substr(text.find("Signature=") + 10);
  }

  const Credentials credentials_{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  const std::string empty_ = sha256_hex({});
};

TEST_F(AwsExamples, GetOfARange) {
  EXPECT_EQ(signature_of({"GET", "/test.txt", {}, {{"range", "bytes=0-9"}}, empty_}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_F(AwsExamples, PutOfAnOddKey) {
  EXPECT_EQ(signature_of(
                {"PUT",
                 "/" + uri_encoded("test$file.text", true),
                 {},
                 {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                 sha256_hex(as_bytes("Welcome to Amazon S3."))}),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST_F(AwsExamples, AQueryWithoutAValue) {
  EXPECT_EQ(signature_of({"GET", "/", {{"lifecycle", ""}}, {}, empty_}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST_F(AwsExamples, AQueryInAnyOrder) {
  EXPECT_EQ(signature_of({"GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, {}, empty_}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, TheHeaderNamesKeyScopeAndHeadersInOrder) {
  Signable request{"GET", "/k", {}, {{"x-amz-date", "d"}, {"host", "h"}}, "UNSIGNED-PAYLOAD"};
  std::string text = authorization(request, {"AK", "secret", ""}, "eu-west-1", "20240229T120000Z");
  EXPECT_TRUE(text.starts_with(
      "AWS4-HMAC-SHA256 "
      "Credential=AK/20240229/eu-west-1/s3/aws4_request,SignedHeaders=host;x-amz-date,Signature="))
      << text;
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST(SigV4, SpacesOfValuesAreOne) {
  Signable request{"GET", "/", {}, {{"a", "  one   two "}}, "p"};
  Signable same{"GET", "/", {}, {{"a", "one two"}}, "p"};
  EXPECT_EQ(authorization(request, {}, "r", "20240101T000000Z"),
            authorization(same, {}, "r", "20240101T000000Z"));
}

TEST(SigV4, EncodesAllButWhatTheRuleNames) {
  EXPECT_EQ(uri_encoded("aZ09-._~", false), "aZ09-._~");
  EXPECT_EQ(uri_encoded("a/b c+%", true), "a/b%20c%2B%25");
  EXPECT_EQ(uri_encoded("a/b", false), "a%2Fb");
  EXPECT_EQ(uri_encoded("\xc3\xa9\n", false), "%C3%A9%0A");
  EXPECT_EQ(encoded_query({{"b", "2 /"}, {"a", ""}}), "a=&b=2%20%2F");
}

TEST(SigV4, DatesAreUtc) {
  EXPECT_EQ(amz_date(WallTime(0)), "19700101T000000Z");
  EXPECT_EQ(amz_date(WallTime(1'709'210'096'789)), "20240229T123456Z");
}

}  // namespace
}  // namespace varve::object_store::s3
