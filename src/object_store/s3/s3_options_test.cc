#include "object_store/s3/s3_options.h"

#include <gtest/gtest.h>

namespace varve::object_store::s3 {
namespace {

TEST(S3Endpoint, IsReadWithItsSchemeHostAndPort) {
  EXPECT_EQ(parse_endpoint("http://127.0.0.1:9000"), (Endpoint{false, "127.0.0.1", 9000}));
  EXPECT_EQ(parse_endpoint("http://minio/"), (Endpoint{false, "minio", 80}));
  EXPECT_EQ(parse_endpoint("https://s3.example.com"), (Endpoint{true, "s3.example.com", 443}));
  EXPECT_EQ(parse_endpoint("s3.example.com:8443"), (Endpoint{true, "s3.example.com", 8443}));
  EXPECT_EQ(parse_endpoint("http://[::1]:9000"), (Endpoint{false, "::1", 9000}));
}

TEST(S3Endpoint, WhatCannotBeUsedIsNamed) {
  for (std::string_view text :
       {"", "ftp://host", "http://", "http://host:0", "http://host:65536", "http://host:", "http://host:9x",
        "http://host/bucket", "http://user@host", "http://[::1", "http://[::1]x"}) {
    auto parsed = parse_endpoint(text);
    EXPECT_FALSE(parsed) << text;
    if (!parsed) EXPECT_FALSE(parsed.error().empty());
  }
}

TEST(S3Endpoint, TheHostHeaderHasAPortOnlyWhereItIsUnusual) {
  EXPECT_EQ((Endpoint{true, "h", 443}).authority(), "h");
  EXPECT_EQ((Endpoint{true, "h", 80}).authority(), "h:80");
  EXPECT_EQ((Endpoint{false, "h", 80}).authority(), "h");
  EXPECT_EQ((Endpoint{false, "::1", 9000}).authority(), "[::1]:9000");
}

TEST(S3Endpoint, AwsHasOneForEachRegion) {
  EXPECT_EQ(aws_endpoint("eu-west-1").authority(), "s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(aws_endpoint("cn-north-1").authority(), "s3.cn-north-1.amazonaws.com.cn");
}

}  // namespace
}  // namespace varve::object_store::s3
