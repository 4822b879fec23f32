#include "broker/s3_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::broker {
namespace {

using object_store::s3::Endpoint;
using testing::HasSubstr;
using testing::Not;

Settings settings_of(Environment environment) {
  environment.emplace("KAFSCALE_S3_BUCKET", "records");
  auto loaded = load_settings(environment, std::nullopt);
  EXPECT_TRUE(loaded) << loaded.error().to_string();
  return loaded->settings;
}

std::string error_of(Environment environment) {
  auto options = s3_options_of(settings_of(std::move(environment)));
  return options ? "no error" : options.error().to_string();
}

TEST(S3Bucket, WithoutAnEndpointItIsAwsAndTheBucketIsInTheHostsName) {
  auto options = s3_options_of(settings_of({{"KAFSCALE_S3_REGION", "eu-west-1"},
                                            {"KAFSCALE_S3_ACCESS_KEY", "AK"},
                                            {"KAFSCALE_S3_SECRET_KEY", "secret"},
                                            {"KAFSCALE_S3_SESSION_TOKEN", "token"},
                                            {"KAFSCALE_S3_KMS_ARN", "arn:k"}}));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->endpoint, (Endpoint{true, "s3.eu-west-1.amazonaws.com", 443}));
  EXPECT_EQ(options->bucket, "records");
  EXPECT_EQ(options->region, "eu-west-1");
  EXPECT_FALSE(options->path_style);
  EXPECT_EQ(options->credentials.access_key, "AK");
  EXPECT_EQ(options->credentials.secret_key, "secret");
  EXPECT_EQ(options->credentials.session_token, "token");
  EXPECT_EQ(options->kms_key, "arn:k");
}

TEST(S3Bucket, WithAnEndpointTheBucketIsInThePathUnlessSaidOtherwise) {
  Environment environment = {{"KAFSCALE_S3_ENDPOINT", "http://127.0.0.1:9000"},
                             {"KAFSCALE_S3_ACCESS_KEY", "AK"},
                             {"KAFSCALE_S3_SECRET_KEY", "s"}};
  auto options = s3_options_of(settings_of(environment));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->endpoint, (Endpoint{false, "127.0.0.1", 9000}));
  EXPECT_TRUE(options->path_style);
  environment["KAFSCALE_S3_PATH_STYLE"] = "false";
  EXPECT_FALSE(s3_options_of(settings_of(environment))->path_style);
}

TEST(S3Bucket, KeysAreOnesOwnOrThoseOfAwsTools) {
  Environment environment = {
      {"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "B"}, {"AWS_SESSION_TOKEN", "C"}};
  EXPECT_EQ(s3_options_of(settings_of(environment))->credentials.session_token, "C");
  environment["KAFSCALE_S3_ACCESS_KEY"] = "AK";
  EXPECT_THAT(error_of(environment), HasSubstr("KAFSCALE_S3_SECRET_KEY")) << "pairs are not mixed";
  environment["KAFSCALE_S3_SECRET_KEY"] = "own";
  auto credentials = s3_options_of(settings_of(environment))->credentials;
  EXPECT_EQ(credentials.access_key, "AK");
  EXPECT_EQ(credentials.secret_key, "own");
  EXPECT_EQ(credentials.session_token, "");
}

TEST(S3Bucket, WhatIsMissingOrWrongIsNamedWithoutSecrets) {
  EXPECT_THAT(error_of({}), HasSubstr("KAFSCALE_S3_ACCESS_KEY"));
  EXPECT_THAT(error_of({{"AWS_ACCESS_KEY_ID", "hunter1"}}), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  EXPECT_THAT(error_of({{"AWS_ACCESS_KEY_ID", "hunter1"}}), Not(HasSubstr("hunter1")));
  EXPECT_EQ(error_of({{"KAFSCALE_S3_ENDPOINT", "ftp://x"}}),
            "setting KAFSCALE_S3_ENDPOINT=ftp://x: the scheme is neither http nor https");
}

}  // namespace
}  // namespace varve::broker
